/** Whether a row of figures grows: the median of the slopes between its points, which outliers do not move. Pure. */

export interface Point {
  /** Seconds since the start. */
  seconds: number;
  value: number;
}

const POINTS_MAX = 200;

/** Growth of the value each second (Theil and Sen); 0 with fewer than two points. */
export function slopeOf(points: readonly Point[]): number {
  const step = Math.ceil(points.length / POINTS_MAX);
  const few = points.filter((_, index) => index % step === 0);
  const slopes = few.flatMap((a, index) =>
    few.slice(index + 1).map((b) => (b.value - a.value) / (b.seconds - a.seconds)),
  );
  return median(slopes);
}

/** By how much it grew over the whole row, as far as that is a trend. */
export function growthOf(points: readonly Point[]): number {
  const first = points[0];
  const last = points.at(-1);
  if (first === undefined || last === undefined) return 0;
  return slopeOf(points) * (last.seconds - first.seconds);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return 0;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}
