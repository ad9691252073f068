/**
 * Counts the tasks that ended over the last hour, day and week, how long they waited and ran, and how they failed: the numbers of
 * `stats` in equal steps of time. Reads the journal of events once, a piece in each look, and then the lines that are added.
 * Keeps only the numbers.
 */

import { parseObject } from "../core/json-object.ts";
import type { StateTree } from "../core/state-tree.ts";
import { JournalPast } from "../journal/past.ts";
import { type Row, Tally } from "./tally.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Each has a whole number of steps. */
export const SPANS = {
  "1h": { spanMs: HOUR_MS, stepMs: MINUTE_MS },
  "24h": { spanMs: 24 * HOUR_MS, stepMs: 15 * MINUTE_MS },
  "7d": { spanMs: 7 * 24 * HOUR_MS, stepMs: 2 * HOUR_MS },
} as const;
export type SpanName = keyof typeof SPANS;
export const SPAN_NAMES = Object.keys(SPANS) as SpanName[];

/** A line counts if it begins with one of these. */
const COUNTED = /^\{"event":"(?:selected|completed|failed|cancelled)"/;
const WEEK_MS = SPANS["7d"].spanMs;

export interface Point {
  from_ms: number;
  /** Undefined: no task ended. */
  row: Row | undefined;
  /** The number of failures, by kind. */
  kinds: Record<string, number>;
}

export interface Series {
  step_ms: number;
  /** The oldest first; the last one is not over yet. */
  points: Point[];
  /** When the journals begin (epoch ms), if that is within the span: nothing is known about the time before. Else null. */
  known_from_ms: number | null;
  /** False while the journals are still being read: then these are the numbers up to some time. */
  is_complete: boolean;
}

interface Counted {
  tally: Tally;
  /** Tasks that ended before `fromMs` do not count. It moves on with the time. */
  period: { fromMs: number; toMs: number };
}

export class SeriesReader {
  private readonly spans: Record<SpanName, Counted>;
  private readonly past: JournalPast;
  private firstMs: number | undefined;

  constructor(tree: StateTree) {
    this.past = new JournalPast(tree.events, WEEK_MS, (line) => this.add(line));
    const counted = (name: SpanName): Counted => {
      const period = { fromMs: 0, toMs: Number.POSITIVE_INFINITY };
      const tally = new Tally(period, (line) => String(startOf(Number(line["t"]), name)));
      return { tally, period };
    };
    this.spans = { "1h": counted("1h"), "24h": counted("24h"), "7d": counted("7d") };
  }

  look(name: SpanName, nowMs: number): Series {
    for (const one of SPAN_NAMES) this.forget(one, nowMs);
    this.past.look(nowMs);
    const { spanMs, stepMs } = SPANS[name];
    const { tally } = this.spans[name];
    const first = firstOf(name, nowMs);
    const rows = new Map(tally.rows().map((row) => [Number(row.group), row]));
    const isAllKnown = this.firstMs === undefined || this.firstMs <= first;
    return {
      step_ms: stepMs,
      points: Array.from({ length: spanMs / stepMs }, (_, i) => {
        const fromMs = first + i * stepMs;
        const row = rows.get(fromMs);
        return { from_ms: fromMs, row, kinds: row?.kinds ?? {} };
      }),
      known_from_ms: isAllKnown ? null : (this.firstMs ?? null),
      is_complete: this.past.isComplete,
    };
  }

  close(): void {
    this.past.close();
  }

  /** Forgets what is older than the span. */
  private forget(name: SpanName, nowMs: number): void {
    const { period, tally } = this.spans[name];
    const first = firstOf(name, nowMs);
    if (first === period.fromMs) return;
    period.fromMs = first;
    for (const { group } of tally.rows()) if (Number(group) < first) tally.forget(group);
  }

  private add(text: string): void {
    if (this.firstMs === undefined) {
      const atMs = Number(/"t":(\d+)/.exec(text)?.[1] ?? Number.NaN);
      if (atMs > 0) this.firstMs = atMs;
    }
    if (!COUNTED.test(text)) return;
    const line = parseObject(text);
    if (line === undefined) return;
    for (const { tally } of Object.values(this.spans)) tally.add(line);
  }
}

/** The time at which the first step begins. */
function firstOf(name: SpanName, nowMs: number): number {
  const { spanMs, stepMs } = SPANS[name];
  return startOf(nowMs, name) - spanMs + stepMs;
}

function startOf(atMs: number, name: SpanName): number {
  const { stepMs } = SPANS[name];
  return Math.floor(atMs / stepMs) * stepMs;
}
