/** `schedule`: shows schedules and their times, pauses and resumes them, and submits the task of one now. */
import {
  type Context,
  defineCommand,
  ErrUsage,
  numberOption,
} from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existingTree, openMailbox, openSettings } from "../../cli/shell/options.ts";
import { derivedId } from "../../core/derived-id.ts";
import { type ErrInvalidConfig, ErrInvalidTransition, MailchuteError } from "../../core/errors.ts";
import { isId } from "../../core/names.ts";
import { randomToken } from "../../mailbox/files/random.ts";
import { isInFlight } from "../../mailbox/find/locate.ts";
import { submit } from "../../mailbox/submit/submit.ts";
import { clockTime, localTime } from "../../text/local-time.ts";
import { countText, duration, safe, table } from "../../text/render.ts";
import { firingText } from "./firing.ts";
import type { Schedule } from "./schedule.ts";
import {
  loadSchedule,
  pathOf,
  placeOf,
  readControl,
  readLog,
  type ScheduleFile,
  type ScheduleSource,
  scheduleNames,
  writeControl,
} from "./schedule-files.ts";
import { localZone, timesAfter } from "./times.ts";

const NEXT_COUNT = 5;

export const command = defineCommand({
  usage: "ls | show NAME | next [NAME] | run NAME | pause NAME | resume NAME",
  subcommands: {
    ls: "list the schedules, when each fires next, and what fired last",
    show: "show a schedule, its next times, and how often it fired",
    next: "print its next times, one a line; without NAME the next time of each",
    run: "submit its task now; its times stay as they are",
    pause: "its times pass without a task, until it is resumed",
    resume: "its times count again, from now on",
  },
  otherWays: {
    add: "write state/schedules/NAME.yaml with two lines, `every: 15m` and `task: {exec: [date]}`; a running supervisor takes it at once",
    remove: "remove its file, state/schedules/NAME.yaml, or its lines in config.yaml",
  },
  args: { min: 0, max: 1 },
  details: [
    "A schedule is a file state/schedules/NAME.yaml, or schedules.NAME in config.yaml, with cron, every or at, and a task. A supervisor submits the tasks (`mailchute run`). See docs/schedules.md.",
  ],
  examples: ["schedule next nightly -n 3", "schedule run nightly"],
  options: {
    count: {
      ...numberOption("N", "with next: how many times (default 5; without NAME: 1 of each)", {
        min: 1,
        max: 1000,
      }),
      short: "n",
    },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const source = { stateDir: tree.dir, given: (await openSettings(ctx)).settings.schedules };
    const [name] = ctx.positionals;
    if (ctx.subcommand === "ls") {
      if (name !== undefined) throw new ErrUsage("schedule ls takes no name");
      return list(ctx, source);
    }
    const count = ctx.options.count ?? NEXT_COUNT;
    if (name === undefined && ctx.subcommand === "next")
      return nextOfAll(ctx, source, ctx.options.count ?? 1);
    if (name === undefined)
      throw new ErrUsage(
        `schedule ${ctx.subcommand} needs a name`,
        "mailchute schedule ls lists them",
      );
    const found = findSchedule(source, name);
    // The name of a schedule becomes a file name, so a name that is no id must not go on.
    if (!isId(name) && found.error !== undefined) throw found.error;
    if (ctx.subcommand === "pause" || ctx.subcommand === "resume")
      return setPaused(ctx, tree.dir, name, ctx.subcommand === "pause");
    if (ctx.subcommand === "show") return show(ctx, source, found);
    if (found.error !== undefined) throw found.error;
    const schedule = found.schedule as Schedule;
    if (ctx.subcommand === "next") return next(ctx, schedule, count);
    return runNow(ctx, tree.dir, schedule);
  },
});

function findSchedule(source: ScheduleSource, name: string): ScheduleFile {
  if (scheduleNames(source).includes(name)) return loadSchedule(source, name);
  throw new MailchuteError("ErrTaskNotFound", `there is no schedule ${JSON.stringify(name)}`, {
    path: pathOf(source, name),
    phase: "schedule",
    hint: "mailchute schedule ls lists them; docs/schedules.md says how to write one",
  });
}

/** Shows the seconds only when the time is not a whole minute. */
function timeText(ms: number): string {
  return ms % 60_000 === 0 ? localTime(ms) : `${localTime(ms).slice(0, 11)}${clockTime(ms)}`;
}

interface Entry {
  name: string;
  when: string;
  paused: boolean;
  /** Epoch ms; null when it fires no more or is paused. */
  next_ms: number | null;
  last_ms: number | null;
  last_id: string | null;
  fired: number;
  skipped: number;
  error: string | null;
  /** Fields of its task that have no effect. */
  warnings: readonly string[];
}

function entryOf(stateDir: string, { name, schedule, error }: ScheduleFile): Entry {
  const log = readLog(stateDir, name);
  const control = readControl(stateDir, name);
  const nowMs = Date.now();
  const [nextMs = null] = schedule === undefined ? [] : timesAfter(schedule, nowMs, 1);
  const isPaused = control.paused || schedule?.isPaused === true;
  return {
    name,
    when: schedule === undefined ? "" : whenOf(schedule),
    paused: isPaused,
    next_ms: isPaused ? null : nextMs,
    last_ms: log?.last?.nominal_ms ?? null,
    last_id: log?.last?.id ?? null,
    fired: log?.fired ?? 0,
    skipped: log?.skipped ?? 0,
    error: (error as ErrInvalidConfig | undefined)?.message ?? null,
    warnings: schedule?.warnings ?? [],
  };
}

function whenOf({ cron, everyMs, atMs = [], timezone }: Schedule): string {
  if (everyMs !== undefined) return `every ${duration(everyMs)}`;
  if (cron !== undefined) return `${cron} (${timezone})`;
  return `at ${atMs.length === 1 ? timeText(atMs[0] ?? 0) : `${countText(atMs.length)} times`}`;
}

function list(ctx: Context, source: ScheduleSource): number {
  const entries = scheduleNames(source).map((name) =>
    entryOf(source.stateDir, loadSchedule(source, name)),
  );
  if (ctx.json) ctx.out.json({ schedules: entries });
  else if (entries.length === 0)
    ctx.out.note("there are no schedules; docs/schedules.md says how to write one");
  else {
    const columns = [
      { title: "NAME", min: 10 },
      { title: "WHEN", min: 12 },
      { title: `NEXT (${localZone()})` },
      { title: "LAST" },
      { title: "FIRED", align: "right" as const },
    ];
    const cells = entries.map((one) => [
      safe(one.name),
      safe(one.when),
      stateOf(one),
      one.last_ms === null ? "" : timeText(one.last_ms),
      countText(one.fired),
    ]);
    for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
  }
  for (const { name, error, warnings } of ctx.json ? [] : entries)
    for (const what of error === null ? warnings : [error])
      ctx.out.note(`${safe(placeOf(source, name))}: ${safe(what)}`);
  return entries.some(({ error }) => error !== null) ? EXIT.failed : EXIT.ok;
}

function stateOf({ error, paused: isPaused, next_ms: nextMs }: Entry): string {
  if (error !== null) return "bad file";
  if (isPaused) return "paused";
  return nextMs === null ? "no more" : timeText(nextMs);
}

function show(ctx: Context, source: ScheduleSource, found: ScheduleFile): number {
  const entry = entryOf(source.stateDir, found);
  const { schedule } = found;
  const nextMs = schedule === undefined ? [] : timesAfter(schedule, Date.now(), NEXT_COUNT);
  if (ctx.json) {
    ctx.out.json({
      ...entry,
      next: nextMs,
      overlap: schedule?.overlap,
      missed: schedule?.missed,
      task: schedule?.task,
    });
    return entry.error === null ? EXIT.ok : EXIT.failed;
  }
  const line = (key: string, value: string): void =>
    ctx.out.line(`${key.padEnd(10)}${safe(value)}`);
  line("schedule", entry.name);
  line("file", pathOf(source, entry.name));
  if (entry.error !== null) line("error", entry.error);
  if (schedule === undefined) return EXIT.failed;
  line("when", entry.when);
  line("missed", schedule.missed);
  line("overlap", schedule.overlap);
  line("task", JSON.stringify(schedule.task));
  for (const warning of entry.warnings) line("warning", warning);
  line("fired", `${countText(entry.fired)}, ${countText(entry.skipped)} skipped`);
  if (entry.last_id !== null) line("last", `${entry.last_id} (mailchute show ${entry.last_id})`);
  const times = nextMs.length === 0 ? "no more" : nextMs.map(timeText).join(", ");
  line(
    "next",
    entry.paused ? "paused" : `${times} ${nextMs.length === 0 ? "" : localZone()}`.trim(),
  );
  return EXIT.ok;
}

function next(ctx: Context, schedule: Schedule, count: number): number {
  const times = timesAfter(schedule, Date.now(), count);
  if (ctx.json) ctx.out.json({ name: schedule.name, next: times });
  else for (const ms of times) ctx.out.line(`${timeText(ms)} ${localZone()}`);
  if (times.length === 0) ctx.out.note(`${safe(schedule.name)} fires no more`);
  return EXIT.ok;
}

/** The next times of each schedule, the earliest first. A paused schedule has none. @param count of each, so that a frequent one hides no other */
function nextOfAll(ctx: Context, source: ScheduleSource, count: number): number {
  const files = scheduleNames(source).map((name) => loadSchedule(source, name));
  const bad = files.filter(({ error }) => error !== undefined);
  const nowMs = Date.now();
  const times = files.flatMap(({ name, schedule }) =>
    schedule === undefined || schedule.isPaused || readControl(source.stateDir, name).paused
      ? []
      : timesAfter(schedule, nowMs, count).map((at) => ({ name, at_ms: at })),
  );
  const next = times.sort((a, b) => a.at_ms - b.at_ms);
  if (ctx.json) ctx.out.json({ next });
  else
    for (const { name, at_ms: at } of next)
      ctx.out.line(`${timeText(at)} ${localZone()}  ${safe(name)}`);
  if (next.length === 0) ctx.out.note("no schedule fires any more");
  for (const { name } of bad)
    ctx.out.note(`${safe(placeOf(source, name))} cannot be used; mailchute schedule ls says why`);
  return bad.length > 0 ? EXIT.failed : EXIT.ok;
}

/** @throws ErrInvalidTransition while the task of an earlier time has not ended, unless the schedule allows overlap */
async function runNow(ctx: Context, stateDir: string, schedule: Schedule): Promise<number> {
  const { name, overlap } = schedule;
  const { trays } = await openMailbox(ctx);
  const control = readControl(stateDir, name);
  const earlier = [readLog(stateDir, name)?.last?.id, control.manual_id];
  const busy = earlier.find((id) => id !== undefined && id !== null && isInFlight(trays, id));
  if (overlap !== "allow" && busy !== undefined)
    throw new ErrInvalidTransition(`the task ${busy} of the schedule ${name} has not ended`, {
      id: busy ?? name,
      phase: "schedule run",
      hint: `mailchute wait ${busy}, or mailchute cancel ${busy}`,
    });
  const nowMs = Date.now();
  const id = derivedId(name, `.manual-${randomToken(8)}`);
  await submit(trays, {
    id,
    bytes: Buffer.from(firingText({ ...schedule, jitterMs: 0 }, nowMs, id), "utf8"),
  });
  writeControl(stateDir, name, { ...control, manual_id: id });
  if (ctx.json) ctx.out.json({ name, id });
  else ctx.out.line(id);
  return EXIT.ok;
}

function setPaused(ctx: Context, stateDir: string, name: string, isPaused: boolean): number {
  const control = readControl(stateDir, name);
  const isChanged = control.paused !== isPaused;
  if (isChanged)
    writeControl(stateDir, name, {
      ...control,
      paused: isPaused,
      at_ms: isPaused ? control.at_ms : Date.now(),
    });
  if (ctx.json) ctx.out.json({ name, paused: isPaused });
  else
    ctx.out.line(
      `${safe(name)} ${isChanged ? "is" : "was"} ${isPaused ? "paused" : "resumed"}${isChanged ? "" : " already"}`,
    );
  return EXIT.ok;
}
