/** Medians and quantiles of samples. Pure. */

/** The smallest sample that at least the share `q` of all samples do not exceed. @returns NaN without samples */
export function quantile(samples, q) {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

/** The middle sample; the mean of the two in the middle when their number is even. */
export function median(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return Number.NaN;
  return Number.isInteger(middle)
    ? (sorted[middle - 1] + sorted[middle]) / 2
    : sorted[Math.floor(middle)];
}

/** What several runs of one contestant come to, figure by figure. @param runs objects of numbers with the same keys */
export function mediansOf(runs) {
  const keys = Object.keys(runs[0] ?? {});
  return Object.fromEntries(keys.map((key) => [key, median(runs.map((run) => run[key]))]));
}
