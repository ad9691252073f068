/**
 * Lays out a part of the timeline: a row of bars for each run at a time of a lane, below them the waits and what happened to the pool.
 * Positions are in thousandths of the width, so that what is drawn stays small, however many runs there were. Pure.
 */
import { clockTime, localTime } from "../../text/local-time.ts";
import { counted, duration } from "../../text/render.ts";
import type { CostPoint } from "./day-costs.ts";
import { LANDINGS, type RunEnd, type Timeline, type TimelineRun } from "./timeline.ts";

export const WIDTH = 1000;
export const ROW_HEIGHT = 20;

export type Look = "good" | "bad" | "warn" | "other" | "soft";

export interface Bar {
  look: Look;
  /** Left, top, width, height. */
  box: [number, number, number, number];
  tip: string;
  /** The task; undefined for what is of no task, or of several. */
  id?: string;
  /** What can be written into the bar; undefined when there is no room. */
  text?: string;
}

export interface TimelineRow {
  /** The name of the lane in its first row, else "". */
  lane: string;
  bars: Bar[];
}

interface Span {
  fromMs: number;
  toMs: number;
  /** Runs that have not ended are drawn up to this time. */
  nowMs: number;
}

interface Piece {
  fromMs: number;
  toMs: number;
  kind: RunEnd | "running" | "wait" | "mark";
  tip: string;
  id?: string;
  text?: string;
}

/** At most so many rows for a lane: more runs at a time share the last one. */
const LANE_ROWS_MAX = 16;
const ROWS_MAX = 60;
/** In a smaller bar no text can be read. */
const TEXT_WIDTH_MIN = 40;
const TEXT_HEIGHT_MIN = 14;
const BARS_MAX = 4000;

/** What is drawn how: a failure is tall, good work lower, what goes on later lower still. The later ones win where several share a place. */
export const DRAWN: Readonly<
  Record<Piece["kind"], { look: Look; top: number; height: number; word: string }>
> = {
  wait: { look: "soft", top: 8, height: 4, word: "waits" },
  back: { look: "soft", top: 15, height: 5, word: "put back" },
  cancelled: { look: "soft", top: 3, height: 14, word: "cancelled" },
  running: { look: "other", top: 3, height: 14, word: "running" },
  done: { look: "good", top: 3, height: 14, word: "done" },
  again: { look: "warn", top: 6, height: 14, word: "tried again" },
  killed: { look: "bad", top: 6, height: 14, word: "killed" },
  failed: { look: "bad", top: 0, height: 20, word: "failed" },
  mark: { look: "bad", top: 0, height: 20, word: "a process died" },
};
const RANKS = Object.keys(DRAWN) as Piece["kind"][];

/** The cost of each day as a line that begins at 0 with the day. */
export interface CostRow {
  /** The path of the line. */
  d: string;
  /** The highest value that the row shows (millionths of a US dollar). */
  top: number;
  /** What was spent up to the end of the time shown. */
  last: number;
  limits: { y: number; text: string }[];
}

export const COST_HEIGHT = 48;

/** @param limits of a day (US dollars), by the names of their settings @returns undefined when nothing was spent */
export function layOutCosts(
  points: readonly CostPoint[],
  { fromMs, toMs, nowMs }: Span,
  limits: Readonly<Record<string, number>>,
): CostRow | undefined {
  const spent = points.reduce((most, { usd_micro: usd }) => Math.max(most, usd), 0);
  if (spent === 0) return undefined;
  const set = Object.entries(limits).filter(([, usd]) => usd > 0 && usd * 1e6 <= spent * 4);
  const top = Math.max(spent, ...set.map(([, usd]) => usd * 1e6)) * 1.05;
  const yOf = (usd: number): number => round(COST_HEIGHT - 1 - (usd / top) * (COST_HEIGHT - 2));
  const xOf = (ms: number): number =>
    round(Math.min(WIDTH, Math.max(0, ((ms - fromMs) / (toMs - fromMs)) * WIDTH)));
  let last = 0;
  let d = "";
  for (const { at_ms: atMs, usd_micro: usd } of points) {
    if (atMs >= toMs) break;
    // What came before the time shown says where the line begins.
    if (atMs >= fromMs) d += `${d === "" ? `M0 ${yOf(last)}` : ""}H${xOf(atMs)}V${yOf(usd)}`;
    last = usd;
  }
  d += `${d === "" ? `M0 ${yOf(last)}` : ""}H${xOf(Math.min(nowMs, toMs))}`;
  const lines = set.map(([name, usd]) => ({ y: yOf(usd * 1e6), text: `${name} $${usd}` }));
  return { d, top, last, limits: lines };
}

/** @returns the agents and groups by name, then landings, waits, and the pool */
export function layOut(timeline: Timeline, span: Span): TimelineRow[] {
  const isIn = (fromMs: number, toMs: number | null): boolean =>
    fromMs < span.toMs && (toMs ?? span.nowMs) >= span.fromMs;
  const lanes = new Map<string, Piece[]>();
  const add = (lane: string, piece: Piece): void => {
    const pieces = lanes.get(lane);
    if (pieces === undefined) lanes.set(lane, [piece]);
    else pieces.push(piece);
  };
  for (const run of timeline.runs)
    if (isIn(run.from_ms, run.to_ms)) add(run.lane, pieceOf(run, span));
  const names = [...lanes.keys()].sort((a, b) =>
    a === LANDINGS ? 1 : b === LANDINGS ? -1 : a < b ? -1 : 1,
  );
  const rows = names.flatMap((name) => withName(name, packed(lanes.get(name) ?? [])));
  lanes.clear();
  for (const { gate, why, from_ms: fromMs, to_ms: toMs } of timeline.waits)
    if (isIn(fromMs, toMs)) {
      const tip = `${gate}: waited ${duration((toMs ?? span.nowMs) - fromMs)}: ${why}`;
      add(gate, { fromMs, toMs: toMs ?? span.nowMs, kind: "wait", tip });
    }
  const gates = [...lanes].sort(([, a], [, b]) => (a[0]?.fromMs ?? 0) - (b[0]?.fromMs ?? 0));
  for (const [gate, pieces] of gates) rows.push({ lane: `waits: ${gate}`, pieces: union(pieces) });
  const marks = timeline.marks.filter(({ at_ms: atMs }) => isIn(atMs, atMs));
  if (marks.length > 0)
    rows.push({
      lane: "pool",
      pieces: marks.map(({ at_ms: atMs, what }) => {
        return { fromMs: atMs, toMs: atMs, kind: "mark", tip: `${clockTime(atMs)} ${what}` };
      }),
    });
  const shown = rows.slice(0, ROWS_MAX);
  let unit = 1;
  let drawn = shown.map((row) => draw(row, span, unit));
  while (unit < 32 && drawn.reduce((sum, { bars }) => sum + bars.length, 0) > BARS_MAX) {
    unit *= 2;
    drawn = shown.map((row) => draw(row, span, unit));
  }
  return drawn;
}

function pieceOf(run: TimelineRun, { nowMs }: Span): Piece {
  const { id, title, attempt, from_ms: fromMs, to_ms: toMs, end, why } = run;
  const kind = end ?? "running";
  const name = title === "" || title === id ? id : `${title} (${id})`;
  const took = duration((toMs ?? nowMs) - fromMs);
  const which = attempt > 1 ? `, run ${attempt}` : "";
  const reason = why === "" ? "" : `: ${why}`;
  const tip = `${name}${which}: ${DRAWN[kind].word}, ${clockTime(fromMs)}, ${took}${reason}`;
  return { fromMs, toMs: toMs ?? nowMs, kind, tip, id, text: title || id };
}

interface Packed {
  lane: string;
  pieces: Piece[];
}

function withName(lane: string, rows: Piece[][]): Packed[] {
  return rows.map((pieces, at) => ({ lane: at === 0 ? lane : "", pieces }));
}

/** Puts runs that overlap into different rows. The pieces are in order of their beginnings. */
function packed(pieces: readonly Piece[]): Piece[][] {
  const rows: { endMs: number; pieces: Piece[] }[] = [];
  for (const piece of pieces) {
    let row = rows.find(({ endMs }) => endMs <= piece.fromMs);
    if (row === undefined && rows.length < LANE_ROWS_MAX) {
      row = { endMs: 0, pieces: [] };
      rows.push(row);
    }
    row ??= rows.at(-1);
    if (row === undefined) continue;
    row.pieces.push(piece);
    row.endMs = Math.max(row.endMs, piece.toMs);
  }
  return rows.map((row) => row.pieces);
}

/** One piece for waits that overlap. */
function union(pieces: readonly Piece[]): Piece[] {
  const joined: Piece[] = [];
  for (const piece of pieces) {
    const last = joined.at(-1);
    if (last === undefined || last.toMs < piece.fromMs) joined.push({ ...piece });
    else last.toMs = Math.max(last.toMs, piece.toMs);
  }
  return joined;
}

/** Joins pieces that begin in the same unit of the width and are shorter than it. @param unit in thousandths of the width */
function draw({ lane, pieces }: Packed, { fromMs, toMs }: Span, unit: number): TimelineRow {
  const scale = WIDTH / (toMs - fromMs);
  const groups: { at: number; pieces: Piece[] }[] = [];
  for (const piece of pieces) {
    const at = Math.floor(((piece.fromMs - fromMs) * scale) / unit);
    const isShort = (piece.toMs - piece.fromMs) * scale < unit;
    const last = groups.at(-1);
    if (last?.at === at && isShort) last.pieces.push(piece);
    else groups.push({ at: isShort ? at : -1, pieces: [piece] });
  }
  const bars = groups.map(({ pieces: [first, ...more] }): Bar => {
    const all = [first as Piece, ...more];
    const { kind } = all.reduce((a, b) => (rankOf(a) >= rankOf(b) ? a : b));
    const { look, top, height } = DRAWN[kind];
    const x = Math.max(0, ((first?.fromMs ?? 0) - fromMs) * scale);
    const end = Math.min(
      WIDTH,
      (all.reduce((last, one) => Math.max(last, one.toMs), 0) - fromMs) * scale,
    );
    const box: Bar["box"] = [round(x), top, round(Math.max(2 * unit, end - x)), height];
    if (more.length > 0) return { look, box, tip: joinedText(all) };
    const { tip = "", id, text } = first ?? {};
    const isRoomy = text !== undefined && box[2] >= TEXT_WIDTH_MIN && height >= TEXT_HEIGHT_MIN;
    return { look, box, tip, ...(id !== undefined && { id }), ...(isRoomy && { text }) };
  });
  return { lane, bars };
}

function rankOf({ kind }: Piece): number {
  return RANKS.indexOf(kind);
}

/** `12 runs from 02:10:03: 11 done, 1 failed` */
function joinedText(pieces: readonly Piece[]): string {
  const counts = RANKS.flatMap((kind) => {
    const count = pieces.filter((one) => one.kind === kind).length;
    return count === 0 ? [] : [`${count} ${DRAWN[kind].word}`];
  });
  const from = clockTime(pieces[0]?.fromMs ?? 0);
  return `${counted(pieces.length, "run")} from ${from}: ${counts.join(", ")}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const TICK_STEPS_MS = [
  ...[1, 5, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12, 24, 48].map((hours) => hours * HOUR_MS),
];
const TICKS_MAX = 8;

/** Round times of this computer's clock in the time shown, at most eight, and where they are. */
export function ticksOf({
  fromMs,
  toMs,
}: Pick<Span, "fromMs" | "toMs">): [x: number, atMs: number][] {
  const least = (toMs - fromMs) / TICKS_MAX;
  const step = TICK_STEPS_MS.find((ms) => ms >= least) ?? Math.ceil(least / HOUR_MS) * HOUR_MS;
  const offsetMs = new Date(fromMs).getTimezoneOffset() * MINUTE_MS;
  const first = Math.ceil((fromMs - offsetMs) / step) * step + offsetMs;
  const ticks: [number, number][] = [];
  for (let ms = first; ms < toMs; ms += step)
    ticks.push([round(((ms - fromMs) / (toMs - fromMs)) * WIDTH), ms]);
  return ticks;
}

/** A tick as text, only as exact as the step. */
export function tickText(atMs: number, spanMs: number): string {
  if (spanMs > 48 * HOUR_MS) return localTime(atMs).slice(5);
  return spanMs < 8 * MINUTE_MS ? clockTime(atMs) : localTime(atMs).slice(11);
}

export interface Column {
  /** How many runs there were at a time, on average. */
  running: number;
  /** The most serious thing that ended or went on in this time; null when nothing ran or waited. */
  worst: Piece["kind"] | null;
}

/** The timeline as one line: what ran in each of so many equal parts of the time. Null for what is after `nowMs`. */
export function columnsOf(timeline: Timeline, span: Span, count: number): (Column | null)[] {
  const step = (span.toMs - span.fromMs) / count;
  const columns = Array.from({ length: count }, (): Column => ({ running: 0, worst: null }));
  const note = (kind: Piece["kind"], fromMs: number, toMs: number): void => {
    const first = Math.max(0, Math.floor((fromMs - span.fromMs) / step));
    const last = Math.min(count - 1, Math.floor((toMs - span.fromMs) / step));
    for (let at = first; at <= last; at++) {
      const column = columns[at] as Column;
      const beganMs = span.fromMs + at * step;
      if (kind !== "wait")
        column.running += (Math.min(toMs, beganMs + step) - Math.max(fromMs, beganMs)) / step;
      // How a run ended counts only where it ended.
      const here = at < last && kind !== "wait" ? "running" : kind;
      if (column.worst === null || RANKS.indexOf(here) > RANKS.indexOf(column.worst))
        column.worst = here;
    }
  };
  for (const { from_ms: fromMs, to_ms: toMs } of timeline.waits)
    note("wait", fromMs, toMs ?? span.nowMs);
  for (const { from_ms: fromMs, to_ms: toMs, end } of timeline.runs)
    note(end ?? "running", fromMs, toMs ?? span.nowMs);
  for (const { at_ms: atMs } of timeline.marks) note("mark", atMs, atMs);
  return columns.map((one, at) => (span.fromMs + at * step > span.nowMs ? null : one));
}
