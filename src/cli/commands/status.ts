/** `status`: shows the supervisor of the tree, what the tree holds, and why tasks do not start. Reads files only. */
import { setTimeout as pause } from "node:timers/promises";
import { isObject } from "../../core/json-object.ts";
import { headlineOf } from "../../core/outcome.ts";
import {
  ago,
  counted,
  countText,
  cut,
  describeCounts,
  duration,
  paint,
  safe,
  table,
  tableWithTexts,
  wrap,
} from "../../text/render.ts";
import { batchBar } from "../../view/batches.ts";
import { readWork, type Work } from "../../view/landing.ts";
import { endsOfRate, type MetricsDocument } from "../../view/metrics/event-counts.ts";
import type { Count } from "../../view/scan.ts";
import type { Snapshot, SupervisorView } from "../../view/snapshot.ts";
import { SnapshotReader } from "../../view/snapshot-reader.ts";
import { progressText } from "../../view/task-progress.ts";
import { type Context, defineCommand, durationOption } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree } from "../shell/options.ts";
import { whereFrom } from "../shell/state-dir.ts";
import type { StatusContext, StatusView } from "../status/status-view.ts";
import { LiveScreen } from "../text/live-screen.ts";
import { TerminalWriter } from "../text/terminal-writer.ts";
import { workCounts, workLines } from "../text/work-lines.ts";

/** It lists at most this many running tasks, and counts the rest. */
const RUNNING_SHOWN = 20;
const INTERVAL_MS = 1000;
/** How many lines of an error are shown; `show` prints all of it. */
const ERROR_LINES_MAX = 3;

export const command = defineCommand({
  usage: "[--watch] [--all]",
  endsWithReader: true,
  details: ["Works without a supervisor: everything is read from the files of the state tree."],
  options: {
    watch: {
      type: "flag",
      short: "w",
      help: "look again every second, until Ctrl-C; with --json one line a look",
    },
    interval: durationOption("TIME", "how often --watch looks (default 1s)"),
    all: { type: "flag", help: "a line for each state tree that has a name: see `trees`" },
  },
  async run(ctx) {
    const view = ctx.options.all ? await viewAll(ctx) : viewOne(ctx);
    const isScreen = ctx.options.watch && ctx.isTerminal && !ctx.json && ctx.env["TERM"] !== "dumb";
    const screen = isScreen ? new LiveScreen(new TerminalWriter()) : undefined;
    screen?.open();
    try {
      for (;;) {
        const look = await view.look(Date.now());
        if (ctx.json) ctx.out.json(look.json());
        else if (screen !== undefined) screen.show((columns) => look.lines({ ...ctx, columns }));
        else for (const line of look.lines(ctx)) ctx.out.line(line);
        if (!ctx.options.watch) return EXIT.ok;
        await pause(Math.max(100, ctx.options.interval ?? INTERVAL_MS));
      }
    } finally {
      screen?.close();
      view.close();
    }
  },
});

function viewOne(ctx: Context): StatusView {
  const tree = existingTree(ctx);
  const reader = new SnapshotReader(tree);
  return {
    async look(nowMs) {
      const snapshot = reader.next(nowMs);
      const work = await readWork(tree);
      return {
        json: () => asJson(snapshot, work),
        lines: (shown) => renderStatus(snapshot, shown, work),
      };
    },
    close: () => reader.close(),
  };
}

async function viewAll(ctx: Context): Promise<StatusView> {
  const { viewNamedTrees } = await import("../status/named-trees.ts");
  return viewNamedTrees(ctx.env);
}

function asJson(snapshot: Snapshot, work: readonly Work[]): object {
  const unlanded = work.filter(({ state }) => state !== "landed");
  return { ...snapshot, work: { landed: work.length - unlanded.length, unlanded } };
}

/** The snapshot as lines of at most `columns` cells. */
export function renderStatus(
  s: Snapshot,
  ctx: StatusContext,
  work: readonly Work[] = [],
): string[] {
  const nowMs = Date.parse(s.at);
  const figures = metricsText(s.metrics);
  return [
    ...headLines(s, ctx, nowMs, workCounts(work)),
    "",
    ...countLines(s, ctx),
    ...(figures === undefined ? [] : ["", figures]),
    ...runningLines(s.running, ctx),
    ...failureLines(s.recent_failures, ctx, nowMs),
    ...workLines(work, ctx),
    ...s.obstacles.flatMap((obstacle) => [
      "",
      ...warning(obstacle.what, ctx),
      ...wrap(`do: ${safe(obstacle.do)}`, ctx.columns - 2, 4).map((line) => `  ${line}`),
    ]),
  ];
}

function headLines(
  s: Snapshot,
  ctx: StatusContext,
  nowMs: number,
  work: string | undefined,
): string[] {
  const { roadmap, roadmap_problem: problem } = s.supervisor.document ?? {};
  const rows: [name: string, text: string | undefined][] = [
    ["state", `${safe(s.state_dir)}${whereFrom({ from: ctx.stateFrom })}`],
    ["mailbox", s.mailbox_dir.startsWith(s.state_dir) ? undefined : safe(s.mailbox_dir)],
    ["supervisor", supervisorText(s.supervisor, nowMs, ctx.colour)],
    ["workers", workersText(s)],
    ["roadmap", roadmap ? describeCounts(roadmap) : undefined],
    ["work", work],
  ];
  const lines = rows.flatMap(([name, text]) =>
    text === undefined ? [] : [paint(ctx.colour, "bold", name.padEnd(12)) + text],
  );
  return typeof problem === "string" ? [...lines, ...warning(problem, ctx)] : lines;
}

function warning(text: string, ctx: StatusContext): string[] {
  const lines = wrap(`! ${safe(text)}`, ctx.columns, 2);
  return lines.map((line) => paint(ctx.colour, "yellow", line));
}

function workersText({ workers, control }: Snapshot): string {
  const alive = workers.filter((worker) => worker.verdict !== "dead");
  const slots = alive.reduce((sum, { id, slots: own }) => sum + (control.slots[id] ?? own), 0);
  return `${counted(alive.length, "process", "processes")}, ${counted(slots, "slot")}`;
}

function runningLines(running: Snapshot["running"], ctx: StatusContext): string[] {
  if (running.length === 0) return [];
  const shown = running.slice(0, RUNNING_SHOWN);
  const columns = [
    idColumn(ctx),
    { title: "ATTEMPT", align: "right" as const },
    { title: "PID", align: "right" as const },
    { title: "FOR" },
    { title: "OWNER" },
  ];
  const rows = shown.map((one) => [
    safe(one.id),
    one.attempt === 0 ? "-" : String(one.attempt),
    one.pid === null ? "-" : String(one.pid),
    one.age_ms === null ? "-" : duration(one.age_ms),
    one.machine === undefined ? one.verdict : `at ${safe(one.machine)}`,
  ]);
  const bars = shown.flatMap(({ id, batch, progress }) => {
    if (batch !== undefined) return [`${safe(id)}  ${batchBar(batch)}`];
    if (progress === undefined) return [];
    return [cut(`${safe(id)}  ${safe(progressText(progress))}`, ctx.columns)];
  });
  const more = running.length - shown.length;
  return [
    "",
    paint(ctx.colour, "bold", "Running"),
    ...table(columns, rows, ctx.columns, ctx.colour),
    ...bars,
    ...(more > 0 ? [`and ${more} more`] : []),
  ];
}

function failureLines(
  failures: Snapshot["recent_failures"],
  ctx: StatusContext,
  nowMs: number,
): string[] {
  if (failures.length === 0) return [];
  const columns = [idColumn(ctx), { title: "WHEN" }, { title: "KIND" }];
  const rows = failures.map((one) => [safe(one.id), ago(one.failed_at_ms, nowMs), safe(one.kind)]);
  const texts = failures.map((one) => safe(headlineOf(one.error)));
  return [
    "",
    paint(ctx.colour, "bold", "Latest failures"),
    ...tableWithTexts(columns, rows, texts, ctx.columns, ctx.colour, ERROR_LINES_MAX),
  ];
}

/** The column of ids. It is only cut on a terminal that is too narrow, because people copy ids. */
export function idColumn(ctx: Pick<Context, "isTerminal">): { title: string; min?: number } {
  return ctx.isTerminal ? { title: "ID", min: 16 } : { title: "ID" };
}

function countLines(s: Snapshot, ctx: StatusContext): string[] {
  const c = s.counts;
  const cells: readonly [name: string, value: string][] = [
    ["waiting", trayText(c.waiting)],
    ["ready", countText(c.ready)],
    ["delayed", countText(c.delayed)],
    ...onlyIfAny("held", c.held),
    ["running", countText(c.running)],
    ...onlyIfAny("elsewhere", c.elsewhere),
    ...onlyIfAny("settling", c.settling),
    ["done", trayText(c.done)],
    ["failed", trayText(c.failed)],
    ...(c.skipped.count > 0 ? [["skipped", trayText(c.skipped)] as [string, string]] : []),
    ...onlyIfAny("commands waiting", c.commands_waiting),
  ];
  const padded = cells.map(([name, value]) => {
    const width = Math.max(name.length, value.length);
    return { name: name.padStart(width), value: value.padStart(width) };
  });
  return [
    padded.map(({ name }) => paint(ctx.colour, "bold", name)).join("  "),
    padded.map(({ value }) => value).join("  "),
  ];
}

/** The count, with `~` before it when it is from some time ago. */
function trayText({ count, is_exact: isExact, is_old: isOld }: Count): string {
  return isOld === true ? `~${countText(count)}` : countText(count, isExact);
}

function onlyIfAny(name: string, count: number): [string, string][] {
  return count > 0 ? [[name, countText(count)]] : [];
}

function supervisorText(view: SupervisorView, nowMs: number, colour: boolean): string {
  const d = view.document;
  if (d === null) return paint(colour, "yellow", "none");
  const since = ago(Date.parse(d.started_at), nowMs);
  const seen = ago(nowMs - (view.heartbeat_age_ms ?? 0), nowMs);
  switch (view.state) {
    case "dead":
      return paint(colour, "red", `dead: pid ${d.pid} is gone, last seen ${seen}`);
    case "stopped":
      return `stopped ${seen}`;
    case "unknown": {
      const text = `pid ${d.pid} on ${safe(d.host)}, started ${since}; cannot be judged from here`;
      return paint(colour, "yellow", text);
    }
    default: {
      const how = d.watching === "polling" ? "polls its folders" : "hears of new files at once";
      return `${paint(colour, "green", view.state)}, pid ${d.pid}, started ${since}, ${how}`;
    }
  }
}

/** Success rate and durations from the supervisor; undefined when it has not counted them yet. */
function metricsText(metrics: Record<string, unknown> | null): string | undefined {
  const rate = metrics?.["success_rate"];
  if (typeof rate !== "number") return undefined;
  const ends = isObject(metrics?.["tasks"])
    ? ` of ${countText(endsOfRate(metrics as unknown as MetricsDocument))} ends`
    : "";
  const durations = metrics?.["duration_ms"] as { p50?: unknown; p95?: unknown } | undefined;
  const percentiles = (["p50", "p95"] as const).flatMap((name) => {
    const ms = durations?.[name];
    return typeof ms === "number" ? [`${name} ${duration(ms)}`] : [];
  });
  const runTime = percentiles.length === 0 ? [] : [`run time ${percentiles.join(", ")}`];
  return [
    `success ${Math.floor(rate * 1000) / 10} %${ends} (without cancelled and skipped ones)`,
    ...runTime,
  ].join(", ");
}
