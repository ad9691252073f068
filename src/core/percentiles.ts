/**
 * Percentiles of durations without keeping the durations: counts in fixed logarithmic bins, as in DDSketch. Pure. Used
 * wherever percentiles are shown, so that two places never disagree; bins of two periods are merged by adding their counts.
 */

/** Each bin reaches this factor further than the one before: a value read from a bin is off by at most 2 %. */
const GAMMA = 1.04;
const LN_GAMMA = Math.log(GAMMA);
/** The middle of a bin, as a part of its upper end: the same relative error towards both ends. */
const MIDDLE = 2 / (1 + GAMMA);
/** Shorter than a microsecond counts as 0. */
const ZERO_BIN = Math.ceil(Math.log(0.001) / LN_GAMMA);
/** Some 30 years. Longer ones are counted here, so that a foreign line cannot add bins without end. */
const LAST_BIN = Math.ceil(Math.log(1e12) / LN_GAMMA);

/** Count by number of bin. Bin n holds the values from 1.04^(n-1), exclusive, to 1.04^n milliseconds. */
export type DurationBins = Record<string, number>;

/** Counts one value (ms, not negative). */
export function addDuration(bins: DurationBins, ms: number): void {
  const bin = Math.min(LAST_BIN, Math.max(ZERO_BIN, Math.ceil(Math.log(ms) / LN_GAMMA)));
  bins[bin] = (bins[bin] ?? 0) + 1;
}

/** The bins of a document that anything may have written: what is no bin with a count is left out. */
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
 * The smallest value that at least this share of all values do not exceed, in ms, at most 2 % off; null without values.
 * @param share from 0 to 1
 * @param maxMs the greatest value, when it is known: no percentile is shown above it
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
    // More digits would only pretend to be exact.
    return bin <= ZERO_BIN ? 0 : Math.min(maxMs, Number((MIDDLE * GAMMA ** bin).toPrecision(5)));
  }
  return null;
}
