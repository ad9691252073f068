/** Shows the runs of a task as a drawing to scale and as a table. Pure. */
import { bytesText } from "../../../core/bytes-text.ts";
import { duration } from "../../../text/render.ts";
import type { Past, RunCost } from "../../../view/task-past.ts";
import type { TaskRun } from "../../../view/task-runs.ts";
import {
  type Block,
  type Cell,
  type Chart,
  type Look,
  priceText,
  type Shape,
  shown,
  timeOf,
} from "../page.ts";

const WIDTH = 1000;
const HEIGHT = 24;
/** A wait is drawn to scale, but at most this wide, because a long empty area tells nothing. */
const WAIT_WIDTH_MAX = 120;
const RUN_WIDTH_MIN = 6;
/** At most this many runs are drawn, the last ones. */
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

/** @param logsOf the page with the logs of a run; null: they are gone. A single run is no drawing */
export function runBlocks(
  { runs, costs }: Pick<Past, "runs" | "costs">,
  nowMs: number,
  logsOf: (run: TaskRun) => string | null,
): Block[] {
  if (runs.length === 0) return [];
  const last = runs.slice(-RUNS_MAX);
  const columns = COLUMNS.map(([name, cellOf]): [string, Cell[]] => [
    name,
    last.map((run) => cellOf({ run, nowMs, used: costs.get(run.lease), logs: logsOf(run) })),
  ]).filter(([name, cells]) => name === "end" || cells.some((cell) => cell !== "–"));
  const table: Block = {
    kind: "table",
    title: runs.length > last.length ? `The last ${last.length} of ${runs.length} runs` : "Runs",
    columns: columns.map(([name]) => name),
    rows: last.map((_, at) => columns.map(([, cells]) => cells[at] ?? "")),
    none: "",
  };
  return [...(last.length > 1 ? [chartOf(last, nowMs)] : []), table];
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

/** In whole seconds while it runs, so that the text changes only each second. */
function tookText({ began_ms: beganMs, ended_ms: endedMs }: TaskRun, nowMs: number): string {
  if (endedMs !== null) return duration(endedMs - beganMs);
  return duration(Math.max(0, Math.floor((nowMs - beganMs) / 1000) * 1000));
}

function chartOf(runs: readonly TaskRun[], nowMs: number): Chart {
  const tookMs = runs.map((run) => Math.max(1, (run.ended_ms ?? nowMs) - run.began_ms));
  const waitsMs = runs.map((run) => run.waited_ms ?? 0);
  const scale = WIDTH / (sum(tookMs) + sum(waitsMs));
  const wide = runs.map((run, i) => ({
    run,
    wait: Math.min(WAIT_WIDTH_MAX, (waitsMs[i] ?? 0) * scale),
    took: Math.max(RUN_WIDTH_MIN, (tookMs[i] ?? 0) * scale),
  }));
  // Shortened waits make the drawing narrower than `WIDTH`. The browser stretches it to the page.
  const width = Math.ceil(sum(wide.map(({ wait, took }) => wait + took)));
  let x = 0;
  const shapes: Shape[] = [];
  const put = (size: number, look: string, tip: string): void => {
    const [top, height] = look === "soft" ? [HEIGHT / 2 - 2, 4] : [0, HEIGHT];
    shapes.push({ is: "band", look, box: [round(x), top, round(size), height], tip });
    x += size;
  };
  for (const { run, wait, took } of wide) {
    if (wait > 0) put(wait, "soft", `waited ${duration(run.waited_ms ?? 0)}`);
    put(took, lookOf(run.end), `run ${run.attempt}: ${tookText(run, nowMs)}, ${endText(run)}`);
  }
  return {
    kind: "chart",
    title: "Timeline",
    size: [width, HEIGHT],
    shapes,
    top: "",
    from: timeOf((runs[0]?.began_ms ?? 0) - (runs[0]?.waited_ms ?? 0)),
    to: runs.at(-1)?.end === null ? "now" : timeOf(runs.at(-1)?.ended_ms ?? null),
    legend: [
      { text: "runs or is done", look: "good" },
      { text: "failed", look: "bad" },
      { text: "requeued", look: "warn" },
      { text: "waits (long waits are shortened)", look: "soft" },
    ],
    table: null,
  };
}

function lookOf(end: string | null): Look {
  if (end === null || end === "completed") return "good";
  return end === "failed" || end === "retry_scheduled" ? "bad" : "warn";
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}
