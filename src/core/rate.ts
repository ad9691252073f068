/**
 * How many starts a rate allows. Pure. It keeps one number: the time at which the bucket of starts is full again. So in any span of
 * time there are at most `burst` starts, and one more for each `intervalUs`.
 */

export interface Rate {
  /** As written: `60/min`. */
  text: string;
  /** Time for one start (µs, rounded up, so that no fraction lets a start through). */
  intervalUs: number;
  /** At most this many starts may come at once. */
  burst: number;
  /** It counts over hours or days: a restart of the machine must not make it wait for all of that time. */
  isLong: boolean;
}

const UNITS_US = { s: 1_000_000, min: 60_000_000, h: 3_600_000_000, d: 86_400_000_000 } as const;
const RATE = /^([1-9]\d{0,8})\/(s|min|h|d)$/;

/** For schemas. */
export const RATE_PATTERN = RATE.source;

/** Undefined when the text is no rate. */
export function parseRate(text: string, burst = 1): Rate | undefined {
  const [, count, unit] = RATE.exec(text) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const periodUs = UNITS_US[unit as keyof typeof UNITS_US];
  const intervalUs = Math.ceil(periodUs / Number(count));
  return { text, intervalUs, burst, isLong: periodUs >= UNITS_US.h };
}

/** Ms until the next start. @param fullUs when the bucket is full again; @param nowUs on the same clock */
export function waitMsOf(rate: Rate, fullUs: number, nowUs: number): number {
  const fromUs = fullUs - (rate.burst - 1) * rate.intervalUs;
  return Math.max(0, Math.ceil((fromUs - nowUs) / 1000));
}

/** Whether a start is allowed now. */
export function allows(rate: Rate, fullUs: number, nowUs: number): boolean {
  return fullUs - (rate.burst - 1) * rate.intervalUs <= nowUs;
}

/** When the bucket is full again after a start now. */
export function afterStart(rate: Rate, fullUs: number, nowUs: number): number {
  return Math.max(fullUs, nowUs) + rate.intervalUs;
}

/** When the bucket would be full again if all its starts had come just now. `fullUs` is never later than this. */
export function emptyUs({ burst, intervalUs }: Rate, nowUs: number): number {
  return nowUs + burst * intervalUs;
}
