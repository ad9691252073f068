/**
 * Computes percentiles of durations without keeping the durations: it counts them in fixed logarithmic bins, as DDSketch does.
 * Pure. All percentiles are made here, so that two places never disagree. The bins of two periods are merged by adding counts.
 */

/** The end of each bin is the end of the bin before times this factor. So a value read from a bin is off by at most 2 %. */
const GAMMA = 1.04;
const LN_GAMMA = Math.log(GAMMA);
/** A bin counts as one value: this part of its upper end. That value has the same relative error towards both ends of the bin. */
const MIDDLE = 2 / (1 + GAMMA);
/** The bin for durations below one microsecond, which count as 0. */
const ZERO_BIN = Math.ceil(Math.log(0.001) / LN_GAMMA);
/** The bin for about 30 years and longer, so that a line from another program cannot add bins without end. */
const LAST_BIN = Math.ceil(Math.log(1e12) / LN_GAMMA);

/** How many values are in each bin, by its number. Bin n holds the values above 1.04^(n-1) and up to 1.04^n milliseconds. */
export type DurationBins = Record<string, number>;

/** Counts one value (ms, not negative). */
export function addDuration(bins: DurationBins, ms: number): void {
  const bin = Math.min(LAST_BIN, Math.max(ZERO_BIN, Math.ceil(Math.log(ms) / LN_GAMMA)));
  bins[bin] = (bins[bin] ?? 0) + 1;
}

/** Reads bins from a document that any program may have written. Members that are not a bin with a count are left out. */
export function durationBinsOf(value: unknown): DurationBins {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).filter(([bin, count]) => {
      const isBin =
        /^(?:0|-?[1-9]\d*)$/.test(bin) && Number(bin) >= ZERO_BIN && Number(bin) <= LAST_BIN;
      return isBin && Number.isSafeInteger(count) && count > 0;
    }),
  );
}

/**
 * A percentile (ms): this share of all values is not above it. It is at most 2 % off; null without values.
 * @param share from 0 to 1
 * @param maxMs the greatest value, when it is known; no percentile is above it
 */
export function percentileOf(
  bins: Readonly<DurationBins>,
  share: number,
  maxMs = Number.POSITIVE_INFINITY,
): number | null {
  const sorted = Object.entries(bins)
    .map(([bin, count]): [number, number] => [Number(bin), count])
    .sort((a, b) => a[0] - b[0]);
  let left = share * sorted.reduce((total, [, count]) => total + count, 0);
  for (const [index, [bin, count]] of sorted.entries()) {
    left -= count;
    if (left > 0 && index < sorted.length - 1) continue;
    // More than five digits would suggest a precision that the bins do not have.
    return bin <= ZERO_BIN ? 0 : Math.min(maxMs, Number((MIDDLE * GAMMA ** bin).toPrecision(5)));
  }
  return null;
}
