/**
 * Counts the tasks that ended over the last hour, day and week, how long they waited and ran, and how they failed: the numbers of
 * `stats` in equal steps of time. Reads the journal of events once, a piece in each look, and then the lines that are added.
 * Keeps only the numbers.
 */

import { parseObject } from "../core/json-object.ts";
import type { StateTree } from "../core/state-tree.ts";
import { statOf } from "../host/regular-file.ts";
import { rotatedOf } from "../journal/rotated.ts";
import { JournalTail } from "../journal/tail.ts";
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

/** How much one look reads (bytes): about 30 ms. */
const LOOK_BYTES = 4 * 1024 * 1024;
/** Only the end of longer journals is read (bytes). */
const JOURNALS_BYTES_MAX = 256 * 1024 * 1024;
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
  /** Rotated files that are read before the current one, the oldest first. */
  private left: { path: string; ino: number; from: number }[] | undefined;
  private readonly begun = new Set<number>();
  private tail: JournalTail | undefined;
  private firstMs: number | undefined;
  private isComplete = false;

  constructor(private readonly tree: StateTree) {
    const counted = (name: SpanName): Counted => {
      const period = { fromMs: 0, toMs: Number.POSITIVE_INFINITY };
      const tally = new Tally(period, (line) => String(startOf(Number(line["t"]), name)));
      return { tally, period };
    };
    this.spans = { "1h": counted("1h"), "24h": counted("24h"), "7d": counted("7d") };
  }

  look(name: SpanName, nowMs: number): Series {
    for (const one of SPAN_NAMES) this.forget(one, nowMs);
    this.readOn(nowMs);
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
      is_complete: this.isComplete,
    };
  }

  close(): void {
    this.tail?.close();
  }

  /** Forgets what is older than the span. */
  private forget(name: SpanName, nowMs: number): void {
    const { period, tally } = this.spans[name];
    const first = firstOf(name, nowMs);
    if (first === period.fromMs) return;
    period.fromMs = first;
    for (const { group } of tally.rows()) if (Number(group) < first) tally.forget(group);
  }

  private readOn(nowMs: number): void {
    this.left ??= this.list(nowMs);
    let room = LOOK_BYTES;
    while (room > 0) {
      const before = this.tail?.offset ?? 0;
      const lines = this.tail?.nextLines(Math.min(room, LOOK_BYTES)) ?? [];
      for (const line of lines) this.add(line);
      const took = (this.tail?.offset ?? 0) - before;
      room -= Math.max(0, took);
      if (took > 0) continue;
      if (!this.isComplete && this.goOn()) continue;
      return;
    }
  }

  /** Opens the next file. @returns false when the current one is open already */
  private goOn(): boolean {
    const next = this.left?.shift() ?? this.missed();
    if (next === undefined && this.begun.has(-1)) {
      this.isComplete = true;
      return false;
    }
    this.tail?.close();
    if (next !== undefined) {
      this.begun.add(next.ino);
      this.tail = new JournalTail(next.path, next.from, next.ino);
    } else {
      // From now on the tail follows the current file through its rotations.
      this.begun.add(-1);
      this.tail = new JournalTail(this.tree.events);
    }
    return true;
  }

  /** A file that was rotated after the files were listed. */
  private missed(): { path: string; ino: number; from: number } | undefined {
    if (this.begun.has(-1)) return undefined;
    const { begun } = this;
    const file = filesOf(this.tree.events).find(({ ino }) => !begun.has(ino));
    return file && { ...file, from: 0 };
  }

  private list(nowMs: number): { path: string; ino: number; from: number }[] {
    const chosen: { path: string; ino: number; from: number }[] = [];
    let room = JOURNALS_BYTES_MAX - (sizeOf(this.tree.events) ?? 0);
    for (const { path, ino, size, mtimeMs } of filesOf(this.tree.events).reverse()) {
      const isOld = mtimeMs < nowMs - WEEK_MS;
      if (isOld || room <= 0) {
        this.begun.add(ino);
        continue;
      }
      chosen.unshift({ path, ino, from: Math.max(0, size - room) });
      room -= size;
    }
    return chosen;
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

function filesOf(path: string): { path: string; ino: number; size: number; mtimeMs: number }[] {
  return rotatedOf(path).flatMap((file) => {
    const stats = statOf(file);
    if (stats === undefined) return [];
    const { ino, size, mtimeMs } = stats;
    return [{ path: file, ino, size, mtimeMs }];
  });
}

function sizeOf(path: string): number | undefined {
  return statOf(path)?.size;
}
