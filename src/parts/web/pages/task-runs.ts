/** Shows the runs of a task beside each other. Pure. */
import { bytesText } from "../../../core/bytes-text.ts";
import { duration } from "../../../text/render.ts";
import type { Past, RunCost } from "../../../view/task-past.ts";
import type { TaskRun } from "../../../view/task-runs.ts";
import {
  type Block,
  type Cell,
  type Look,
  priceText,
  seconds,
  shown,
  table,
  timeOf,
} from "../page.ts";

/** At most this many runs are shown, the last ones. */
const RUNS_MAX = 50;
const WHY_CHARS_MAX = 300;

const ENDS: Readonly<Record<string, string>> = {
  completed: "done",
  failed: "failed",
  retry_scheduled: "failed, to be tried again",
  released: "requeued",
  held: "requeued: it waits at a gate",
  reclaimed: "taken back from its worker",
  fenced: "another worker had it",
};

/** @param logsOf the page with the logs of a run; null: they are gone */
export function runBlocks(
  { runs, costs }: Pick<Past, "runs" | "costs">,
  nowMs: number,
  logsOf: (run: TaskRun) => string | null,
): Block[] {
  if (runs.length === 0) return [];
  const last = runs
    .slice(-RUNS_MAX)
    .map((run): RowOf => ({ run, nowMs, used: costs.get(run.lease), logs: logsOf(run) }));
  const columns = COLUMNS.map(([name, cellOf]): [string, Cell[]] => [
    name,
    last.map(cellOf),
  ]).filter(([name, cells]) => name === "end" || cells.some((cell) => cell !== "–"));
  const title =
    runs.length > last.length ? `The last ${last.length} of ${runs.length} runs` : "Runs";
  const rows = last.map((_, at) => columns.map(([, cells]) => cells[at] ?? ""));
  return [
    table(
      title,
      columns.map(([name]) => name),
      rows,
    ),
  ];
}

interface RowOf {
  run: TaskRun;
  nowMs: number;
  used: RunCost | undefined;
  logs: string | null;
}

/** Those that are "–" for each run are left out. */
const COLUMNS: readonly [name: string, cellOf: (row: RowOf) => Cell][] = [
  [
    "run",
    ({ run, logs: to }) => (to === null ? String(run.attempt) : { text: `${run.attempt}`, to }),
  ],
  ["agent", ({ run: { agent } }) => (agent === "exec" || agent === "" ? "–" : shown(agent))],
  ["account", ({ used }) => shown(used?.account ?? "–")],
  ["waited", ({ run: { waited_ms: ms } }) => (ms === null ? "–" : duration(ms))],
  ["began", ({ run }) => timeOf(run.began_ms)],
  ["took", ({ run, nowMs }) => tookText(run, nowMs)],
  ["CPU", ({ run: { cpu_ms: ms } }) => (ms === null ? "–" : duration(ms))],
  ["memory", ({ run: { peak_memory_bytes: is } }) => (is === null ? "–" : bytesText(is))],
  ["end", ({ run }) => ({ look: run.end === null ? "run" : lookOf(run.end), word: endText(run) })],
  ["cost", ({ used }) => (used === undefined ? "–" : priceText(used.cost))],
  ["why", ({ run }) => shown(run.why.slice(0, WHY_CHARS_MAX)) || "–"],
];

function endText({ end }: TaskRun): string {
  return end === null ? "runs" : (ENDS[end] ?? shown(end));
}

function tookText({ began_ms: beganMs, ended_ms: endedMs }: TaskRun, nowMs: number): string {
  return endedMs === null ? seconds(nowMs - beganMs) : duration(endedMs - beganMs);
}

function lookOf(end: string | null): Look {
  if (end === null || end === "completed") return "good";
  return end === "failed" || end === "retry_scheduled" ? "bad" : "warn";
}
