/** `status`: who runs the tree, what it holds, why nothing moves. Reads files only. */
import { setTimeout as pause } from "node:timers/promises";
import { lackText } from "../../core/free-space.ts";
import { headlineOf } from "../../core/outcome.ts";
import {
  ago,
  countText,
  describeCounts,
  duration,
  type Paint,
  paint,
  safe,
  table,
  tableWithTexts,
  wrap,
} from "../../text/render.ts";
import { batchBar } from "../../view/batches.ts";
import type { Snapshot, SupervisorView } from "../../view/snapshot.ts";
import { intakeStopped } from "../../view/supervisor.ts";
import { takeSnapshot } from "../../view/take-snapshot.ts";
import { type Context, defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree } from "../shell/options.ts";
import { whereFrom } from "../shell/state-dir.ts";
import { LiveScreen } from "../text/live-screen.ts";

/** More running tasks than this are counted, not listed. */
const RUNNING_SHOWN = 20;
const INTERVAL_MS = 1000;
/** Of an error; \`show\` has all of it. */
const ERROR_LINES_MAX = 3;

export const command = defineCommand({
  usage: "[--watch]",
  endsWithReader: true,
  details: ["Works without a supervisor: everything is read from the files of the state tree."],
  options: {
    watch: {
      type: "flag",
      short: "w",
      help: "look again every second, until Ctrl-C; with --json one line a look",
    },
    interval: {
      type: "duration",
      value: "TIME",
      unit: "s",
      help: "how often --watch looks (default 1s)",
    },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    if (!ctx.options.watch) {
      print(ctx, takeSnapshot(tree, Date.now()));
      return EXIT.ok;
    }
    const intervalMs = Math.max(100, ctx.options.interval ?? INTERVAL_MS);
    const isScreen = ctx.isTerminal && !ctx.json && ctx.env["TERM"] !== "dumb";
    const screen = isScreen ? new LiveScreen(process.stdout) : undefined;
    screen?.open();
    try {
      for (;;) {
        const snapshot = takeSnapshot(tree, Date.now());
        if (screen === undefined) print(ctx, snapshot);
        else screen.show((columns) => renderStatus(snapshot, { ...ctx, columns }));
        await pause(intervalMs);
      }
    } finally {
      screen?.close();
    }
  },
});

function print(ctx: Context, snapshot: Snapshot): void {
  if (ctx.json) ctx.out.json(snapshot);
  else for (const line of renderStatus(snapshot, ctx)) ctx.out.line(line);
}

type ViewContext = Pick<Context, "colour" | "columns" | "isTerminal" | "stateFrom">;

/** The snapshot as lines of at most `columns` cells. */
export function renderStatus(s: Snapshot, ctx: ViewContext): string[] {
  const figures = metricsText(s.metrics);
  return [
    ...headLines(s, ctx),
    "",
    ...countLines(s, ctx),
    ...(figures === undefined ? [] : ["", figures]),
    ...runningLines(s, ctx),
    ...failureLines(s, ctx),
    ...s.obstacles.flatMap((obstacle) => [
      "",
      ...warningLines(obstacle.what, ctx),
      ...wrap(`do: ${safe(obstacle.do)}`, ctx.columns - 2, 4).map((line) => `  ${line}`),
    ]),
  ];
}

/** Where, who, how many, and what is steered otherwise than usual. */
function headLines(s: Snapshot, ctx: ViewContext): string[] {
  const nowMs = Date.parse(s.at);
  const { control } = s;
  const row = (name: string, text: string): string =>
    `${paint(ctx.colour, "bold", name.padEnd(12))}${text}`;
  const yellow = (text: string): string => paint(ctx.colour, "yellow", text);
  const lines = [row("state", `${safe(s.state_dir)}${whereFrom({ from: ctx.stateFrom })}`)];
  if (!s.mailbox_dir.startsWith(s.state_dir)) lines.push(row("mailbox", safe(s.mailbox_dir)));
  lines.push(row("supervisor", supervisorText(s.supervisor, nowMs, ctx.colour)));
  const alive = s.workers.filter((worker) => worker.verdict !== "dead");
  const slots = alive.reduce((sum, worker) => sum + (control.slots[worker.id] ?? worker.slots), 0);
  const processes = `${alive.length} ${alive.length === 1 ? "process" : "processes"}`;
  lines.push(row("workers", `${processes}, ${slots} ${slots === 1 ? "slot" : "slots"}`));
  if (control.paused) {
    const { paused_at: at, paused_by: by } = control;
    const since = at === null ? "" : ` since ${ago(Date.parse(at), nowMs)}`;
    lines.push(row("paused", yellow(`yes${since}${by === null ? "" : ` by ${safe(by)}`}`)));
  }
  const stopped = intakeStopped(s.supervisor);
  if (stopped !== undefined) {
    const { free, wanted } = lackText(stopped);
    const room = `(${free} free, starts again with ${wanted})`;
    lines.push(row("intake", `${yellow(`stopped: ${safe(stopped.reason)}`)} ${room}`));
  }
  const { roadmap, roadmap_problem: problem } = s.supervisor.document ?? {};
  if (roadmap) lines.push(row("roadmap", describeCounts(roadmap)));
  if (problem !== undefined && problem !== null) lines.push(...warningLines(problem, ctx));
  return lines;
}

function warningLines(text: string, ctx: ViewContext): string[] {
  const lines = wrap(`! ${safe(text)}`, ctx.columns, 2);
  return lines.map((line) => paint(ctx.colour, "yellow", line));
}

function runningLines({ running }: Snapshot, ctx: ViewContext): string[] {
  if (running.length === 0) return [];
  const shown = running.slice(0, RUNNING_SHOWN);
  const rows = shown.map((one) => [
    safe(one.id),
    one.attempt === 0 ? "-" : String(one.attempt),
    one.pid === null ? "-" : String(one.pid),
    one.age_ms === null ? "-" : duration(one.age_ms),
    one.verdict,
  ]);
  const columns = [
    idColumn(ctx),
    { title: "ATTEMPT", align: "right" as const },
    { title: "PID", align: "right" as const },
    { title: "FOR" },
    { title: "OWNER" },
  ];
  const more = running.length - shown.length;
  return [
    "",
    paint(ctx.colour, "bold", "Running"),
    ...table(columns, rows, ctx.columns, ctx.colour),
    ...shown.flatMap((one) =>
      one.batch === undefined ? [] : [`${safe(one.id)}  ${batchBar(one.batch)}`],
    ),
    ...(more > 0 ? [`and ${more} more`] : []),
  ];
}

function failureLines({ at, recent_failures: failures }: Snapshot, ctx: ViewContext): string[] {
  if (failures.length === 0) return [];
  const nowMs = Date.parse(at);
  const rows = failures.map((one) => [safe(one.id), ago(one.failed_at_ms, nowMs), safe(one.kind)]);
  const texts = failures.map((one) => safe(headlineOf(one.error)));
  const columns = [idColumn(ctx), { title: "WHEN" }, { title: "KIND" }];
  return [
    "",
    paint(ctx.colour, "bold", "Latest failures"),
    ...tableWithTexts(columns, rows, texts, ctx.columns, ctx.colour, ERROR_LINES_MAX),
  ];
}

/** Ids are what people copy: only a terminal that is too narrow cuts them. */
export function idColumn(ctx: Pick<Context, "isTerminal">): { title: string; min?: number } {
  return ctx.isTerminal ? { title: "ID", min: 16 } : { title: "ID" };
}

function countLines(s: Snapshot, ctx: Pick<Context, "columns" | "colour">): string[] {
  const c = s.counts;
  const cells: [string, string][] = [
    ["waiting", countText(c.waiting.count, c.waiting.is_exact)],
    ["ready", countText(c.ready)],
    ["delayed", countText(c.delayed)],
    ["running", countText(c.running)],
    ["done", countText(c.done.count, c.done.is_exact)],
    ["failed", countText(c.failed.count, c.failed.is_exact)],
  ];
  if (c.settling > 0) cells.splice(4, 0, ["settling", countText(c.settling)]);
  if (c.commands_waiting > 0) cells.push(["commands waiting", countText(c.commands_waiting)]);
  const widths = cells.map(([name, value]) => Math.max(name.length, value.length));
  const row = (pick: 0 | 1, how?: Paint): string =>
    cells
      .map((cell, i) => cell[pick].padStart(widths[i] ?? 0))
      .map((text) => (how === undefined ? text : paint(ctx.colour, how, text)))
      .join("  ");
  return [row(0, "bold"), row(1)];
}

function supervisorText(view: SupervisorView, nowMs: number, colour: boolean): string {
  const d = view.document;
  if (d === null) return paint(colour, "yellow", "none");
  const since = ago(Date.parse(d.started_at), nowMs);
  switch (view.state) {
    case "dead":
      return paint(
        colour,
        "red",
        `dead: pid ${d.pid} is gone, last seen ${ago(nowMs - (view.heartbeat_age_ms ?? 0), nowMs)}`,
      );
    case "stopped":
      return `stopped ${ago(nowMs - (view.heartbeat_age_ms ?? 0), nowMs)}`;
    case "unknown":
      return paint(
        colour,
        "yellow",
        `pid ${d.pid} on ${safe(d.host)}, started ${since}; cannot be judged from here`,
      );
    default:
      return `${paint(colour, "green", view.state)}, pid ${d.pid}, started ${since}, ${d.watching === "polling" ? "polls its folders" : "hears of new files at once"}`;
  }
}

/** Success rate and durations as the supervisor counted them; undefined when it has not yet. */
function metricsText(metrics: Record<string, unknown> | null): string | undefined {
  const rate = metrics?.["success_rate"];
  if (typeof rate !== "number") return undefined;
  const durations = metrics?.["duration_ms"] as { p50?: unknown; p95?: unknown } | undefined;
  const percentiles = (["p50", "p95"] as const).flatMap((name) => {
    const ms = durations?.[name];
    return typeof ms === "number" ? [`${name} ${duration(ms)}`] : [];
  });
  const runTime = percentiles.length === 0 ? [] : [`run time ${percentiles.join(", ")}`];
  return [`success ${Math.floor(rate * 1000) / 10} %`, ...runTime].join(", ");
}
