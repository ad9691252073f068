/**
 * Counts durations below fixed bounds, as histograms of Prometheus need it. Such counts are exact, and counts of several files
 * may be added. Pure.
 */
import { isObject } from "../../core/json-object.ts";

/** The bounds suit programs that take a moment and coding agents that work for hours. */
const BOUNDS_MS: readonly number[] = [
  10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_200_000,
  1_800_000, 3_600_000, 7_200_000, 14_400_000,
];

export interface HistogramDocument {
  /** The upper bounds; a duration that equals one is below it. */
  bounds: number[];
  /** How many durations are above the bound before and up to this one. The last count is that of durations above all bounds. */
  counts: number[];
  sum: number;
}

export class Histogram {
  readonly counts: number[];
  sumMs: number;

  /** Continues a document that any program may have written. A document with other bounds is not used. */
  constructor(old: unknown) {
    const isOurs = isObject(old) && isCounts(old["counts"]) && isSame(old["bounds"]);
    this.counts = isOurs ? [...(old["counts"] as number[])] : [...BOUNDS_MS, 0].map(() => 0);
    const sum = isOurs ? old["sum"] : 0;
    this.sumMs = typeof sum === "number" && Number.isFinite(sum) && sum >= 0 ? sum : 0;
  }

  /** @param ms any other value than a number of at least 0 is ignored */
  add(ms: unknown): void {
    if (typeof ms !== "number" || !(ms >= 0 && ms < Number.POSITIVE_INFINITY)) return;
    let at = 0;
    while (ms > (BOUNDS_MS[at] ?? Number.POSITIVE_INFINITY)) at++;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sumMs += ms;
  }

  toDocument(): HistogramDocument {
    return { bounds: [...BOUNDS_MS], counts: [...this.counts], sum: this.sumMs };
  }

  /** How many durations are up to each bound (ms). The last count is that of all durations. */
  cumulative(): { upToMs: number; count: number }[] {
    let count = 0;
    return this.counts.map((own, at) => {
      count += own;
      return { upToMs: BOUNDS_MS[at] ?? Number.POSITIVE_INFINITY, count };
    });
  }
}

function isSame(bounds: unknown): boolean {
  return Array.isArray(bounds) && bounds.join() === BOUNDS_MS.join();
}

function isCounts(counts: unknown): boolean {
  return (
    Array.isArray(counts) &&
    counts.length === BOUNDS_MS.length + 1 &&
    counts.every((count) => Number.isSafeInteger(count) && count >= 0)
  );
}
