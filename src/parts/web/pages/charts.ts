/** The charts of the overview: tasks that ended, their waits and runs, and how they failed, over an hour, a day or a week. Pure. */
import { countText, duration } from "../../../text/render.ts";
import { type Point, type Series, SPAN_NAMES, type SpanName } from "../../../view/series.ts";
import type { Times } from "../../../view/tally.ts";
import type { Look } from "../../../view/timeline/lay-out.ts";
import {
  type Block,
  type Cell,
  type Chart,
  factsOf,
  linksOf,
  pathWith,
  type Shape,
  shown,
  timeOf,
} from "../page.ts";

const WIDTH = 600;
const HEIGHT = 90;
/** At most this many kinds of failure have their own colour. */
const KINDS_MAX = 3;
const KIND_LOOKS: readonly Look[] = ["bad", "warn", "other", "soft"];

/** @param name the name of the shown span */
export function chartBlocks(series: Series, name: SpanName): Block[] {
  const { points, known_from_ms: knownFromMs, is_complete: isComplete } = series;
  const charts = [
    countsChart(
      series,
      "Tasks that ended",
      { names: ["done", "failed"], looks: ["good", "bad"] },
      ({ row }) => [row?.completed ?? 0, row?.failed ?? 0],
    ),
    timesChart(series, "Queue wait", ({ row }) => row?.waited_ms),
    timesChart(series, "Run time", ({ row }) => row?.ran_ms),
    kindChart(series),
  ];
  const links = SPAN_NAMES.map((one) => {
    const text = one.replace("h", " h").replace("d", " d");
    return [text, pathWith("/", { over: one }), one === name] as const;
  });
  const isCut = knownFromMs !== null && (points[0]?.from_ms ?? 0) < knownFromMs;
  return [
    linksOf("time that the charts show", links),
    factsOf([
      [
        "what they count",
        "each end in this time: a task that was retried may end twice. Failed means here and above: with cancelled tasks, without skipped ones",
      ],
      ["charts", isComplete ? null : "the journals are being read: more is to come"],
      ["the journals begin", isCut ? timeOf(knownFromMs) : null],
    ]),
    { kind: "grid", name: "charts", blocks: charts },
  ];
}

type Made = Pick<Chart, "title" | "shapes" | "top" | "legend" | "table">;

function chartOf({ points, step_ms: stepMs }: Series, made: Made): Chart {
  return {
    kind: "chart",
    size: [WIDTH, HEIGHT],
    from: timeOf(points[0]?.from_ms ?? null),
    to: timeOf((points.at(-1)?.from_ms ?? 0) + stepMs),
    ...made,
  };
}

/** A stack of bands for each step. */
function countsChart(
  series: Series,
  title: string,
  kinds: { names: readonly string[]; looks: readonly Look[] },
  countsOf: (point: Point) => number[],
): Chart {
  const names = kinds.names.map(shown);
  const counts = series.points.map(countsOf);
  const lookAt = (at: number): Look => kinds.looks[at] ?? "soft";
  const total = (at: number): number => sum(counts.map((one) => one[at] ?? 0));
  return chartOf(series, {
    title,
    ...stacked(counts, names, lookAt),
    legend: names.map((name, at) => ({
      text: `${name} ${countText(total(at))}`,
      look: lookAt(at),
    })),
    table: {
      columns: ["from", ...names],
      rows: rowsOf(series, (point) => countsOf(point).map((count) => countText(count))),
    },
  });
}

function timesChart(
  series: Series,
  title: string,
  timesOf: (point: Point) => Times | undefined,
): Chart {
  const { points } = series;
  const values = (of: "p50" | "p95"): (number | null)[] =>
    points.map((point) => timesOf(point)?.[of] ?? null);
  const [p50, p95] = [values("p50"), values("p95")];
  const max = Math.max(1, ...p95.map((ms) => ms ?? 0));
  const text = (ms: number | null): string => (ms === null ? "–" : duration(ms));
  return chartOf(series, {
    title,
    shapes: [
      { is: "line", look: "other", d: pathOf(p95, max), tip: "p95" },
      { is: "line", look: "good", d: pathOf(p50, max), tip: "p50" },
    ],
    top: p95.some((ms) => ms !== null) ? duration(max) : "",
    legend: [
      { text: "p50", look: "good" },
      { text: "p95", look: "other" },
    ],
    table: {
      columns: ["from", "p50", "p95", "longest"],
      rows: rowsOf(series, (point) => {
        const times = timesOf(point);
        return [text(times?.p50 ?? null), text(times?.p95 ?? null), text(times?.max ?? null)];
      }),
    },
  });
}

function kindChart(series: Series): Chart {
  const totals: Record<string, number> = {};
  for (const { kinds } of series.points)
    for (const [kind, count] of Object.entries(kinds)) totals[kind] = (totals[kind] ?? 0) + count;
  const sorted = Object.keys(totals).sort((a, b) => (totals[b] ?? 0) - (totals[a] ?? 0));
  const named = sorted.slice(0, KINDS_MAX);
  const others = sorted.slice(KINDS_MAX);
  const names = others.length === 0 ? named : [...named, "other"];
  const countsOf = ({ kinds }: Pick<Point, "kinds">): number[] => [
    ...named.map((kind) => kinds[kind] ?? 0),
    ...(others.length === 0 ? [] : [sum(others.map((kind) => kinds[kind] ?? 0))]),
  ];
  return countsChart(series, "Failures by kind", { names, looks: KIND_LOOKS }, countsOf);
}

/** Only steps in which a task ended. */
function rowsOf({ points }: Series, cells: (point: Point) => string[]): Cell[][] {
  return points
    .filter(({ row }) => row !== undefined)
    .map((point) => [timeOf(point.from_ms), ...cells(point)]);
}

function stacked(
  counts: readonly number[][],
  names: readonly string[],
  lookAt: (at: number) => Look,
): { shapes: Shape[]; top: string } {
  const max = Math.max(0, ...counts.map(sum));
  const width = WIDTH / counts.length;
  const shapes = counts.flatMap((column, i) => {
    let y = HEIGHT;
    return column.flatMap((count, at): Shape[] => {
      if (count === 0) return [];
      // Even the smallest count must be visible.
      const height = Math.max(2, (count / max) * HEIGHT);
      y -= height;
      const box: Shape["box"] = [round(i * width), round(y), round(width * 0.85), round(height)];
      const tip = `${countText(count)} ${names[at]}`;
      return [{ is: "band", look: lookAt(at), box, tip }];
    });
  });
  return { shapes, top: max === 0 ? "" : `${countText(max)}` };
}

/** A step without a value is a gap. */
function pathOf(values: readonly (number | null)[], max: number): string {
  const width = WIDTH / values.length;
  let isOpen = false;
  const parts = values.map((ms, i) => {
    const wasOpen = isOpen;
    isOpen = ms !== null;
    if (ms === null) return "";
    const y = round(HEIGHT - 2 - (ms / max) * (HEIGHT - 4));
    const [left, right] = [round(i * width), round((i + 1) * width)];
    return `${wasOpen ? "L" : "M"}${left} ${y}H${right}`;
  });
  return parts.join("");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}
