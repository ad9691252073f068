/** `events`: prints the journal of events as JSON lines, filtered and followed on request. */
import { dirname } from "node:path";
import type { StateTree } from "../../core/state-tree.ts";
import { visibleJson } from "../../core/visible.ts";
import { ChangeSignal } from "../../host/change-signal.ts";
import { readJournal } from "../../journal/read.ts";
import { rotatedOf } from "../../journal/rotated.ts";
import { JournalTail } from "../../journal/tail.ts";
import {
  type Context,
  defineCommand,
  ErrUsage,
  numberOption,
  textOption,
} from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree } from "../shell/options.ts";
import { readPast } from "../shell/past-time.ts";

type Line = Readonly<Record<string, unknown>>;

/** Events are printed in groups of this size. */
const GROUP = 256;

const OPTIONS = {
  follow: { type: "flag", short: "f", help: "show new events until Ctrl-C" },
  task: { type: "text", value: "ID", many: true, help: "only events of this task" },
  event: {
    type: "text",
    value: "NAME",
    many: true,
    alsoCalled: ["type"],
    help: "only events of this name",
  },
  since: textOption("TIME", "only events from then on, also of rotated files"),
  until: textOption("TIME", "only events before then"),
  last: { ...numberOption("N", "only the last N of them", { min: 1, max: 100_000 }), short: "n" },
} as const;

type EventsContext = Context<typeof OPTIONS>;

export const command = defineCommand({
  usage: "[-f] [--task ID] [--event NAME] [--since TIME] [-n N]",
  endsWithReader: true,
  details: [
    "Each line is one JSON object, with or without --json. Incomplete and foreign lines are skipped; stderr says how many.",
    "TIME is a time of the day (22:00: the last time the clock showed it), a duration (12h: so long ago), or a date as 2026-03-01T22:00. " +
      "Without --since and --until only the newest file of the journal is read, and not those that were rotated away.",
  ],
  examples: [
    "events --event failed --since 22:00 | jq .task_id",
    "events -f --task nightly",
    "events -n 20",
  ],
  options: OPTIONS,
  async run(ctx) {
    const tree = existingTree(ctx);
    const isWanted = filterOf(ctx);
    const printer = new Printer(ctx);
    if (ctx.options.follow) return follow(ctx, tree, isWanted, printer);
    const counts = { records: 0, bad: 0 };
    for (const file of filesOf(ctx, tree))
      for await (const line of readJournal(file, counts))
        if (isWanted(line)) await printer.add(line);
    await printer.flush();
    if (counts.bad > 0)
      ctx.out.note(
        `${counts.bad} lines of ${tree.events} cannot be read as records and were skipped`,
      );
    return EXIT.ok;
  },
});

async function follow(
  ctx: EventsContext,
  tree: StateTree,
  isWanted: (line: Line) => boolean,
  printer: Printer,
): Promise<never> {
  if (ctx.options.until !== undefined)
    throw new ErrUsage("--follow and --until exclude each other");
  for (const file of filesOf(ctx, tree))
    if (file !== tree.events)
      for await (const line of readJournal(file)) if (isWanted(line)) await printer.add(line);
  const tail = new JournalTail(tree.events);
  for (;;) {
    for (let lines = tail.next(); lines.length > 0; lines = tail.next())
      for (const line of lines.filter(isWanted)) await printer.add(line);
    await printer.flush();
    const change = new ChangeSignal([tree.events, dirname(tree.events)]);
    await change.next();
    change.close();
  }
}

/** The journal files to read. Rotated files are only read when a time is given. */
function filesOf({ options: { since, until } }: EventsContext, { events }: StateTree): string[] {
  return since === undefined && until === undefined ? [events] : [...rotatedOf(events), events];
}

/** @throws ErrUsage */
function filterOf({ options }: EventsContext): (line: Line) => boolean {
  const { task, event, since, until } = options;
  const nowMs = Date.now();
  const fromMs = since === undefined ? undefined : readPast(since, nowMs, "--since");
  const toMs = until === undefined ? undefined : readPast(until, nowMs, "--until");
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs)
    throw new ErrUsage("--since is not before --until", "name an earlier time, as 22:00 or 12h");
  return (line) =>
    (task.length === 0 || task.includes(String(line["task_id"]))) &&
    (event.length === 0 || event.includes(String(line["event"]))) &&
    (fromMs === undefined || Number(line["t"]) >= fromMs) &&
    (toMs === undefined || Number(line["t"]) < toMs);
}

/** Prints events in groups. With `--last`, it prints only the last events of those that exist at the first flush. */
class Printer {
  private readonly out: EventsContext["out"];
  private keep: number | undefined;
  private lines: Line[] = [];

  constructor({ out, options }: EventsContext) {
    this.out = out;
    this.keep = options.last;
  }

  async add(line: Line): Promise<void> {
    this.lines.push(line);
    if (this.keep === undefined) {
      if (this.lines.length >= GROUP) await this.flush();
    } else if (this.lines.length >= 2 * this.keep) this.lines = this.lines.slice(-this.keep);
  }

  async flush(): Promise<void> {
    const lines = this.keep === undefined ? this.lines : this.lines.slice(-this.keep);
    this.keep = undefined;
    this.lines = [];
    if (lines.length > 0)
      await this.out.raw(lines.map((line) => `${visibleJson(line)}\n`).join(""));
  }
}
