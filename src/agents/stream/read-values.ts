/**
 * Reads counts, prices, times and names that a program reports. An impossible value counts as missing, because it would spoil sums or
 * stop the next run. Pure.
 */

/** No run uses more tokens, or more millionths of a dollar. A greater number is a mistake of the program. */
const COUNT_MAX = 1e12;
/** Seconds since 1970. A greater number is in another unit. */
const EPOCH_S_MAX = 1e11;
/** The id becomes an argument of the program, so it must not look like an option. */
const SESSION_ID = /^(?!-)[!-~]{1,200}$/;

/** Tokens, as a whole number; null when it is no count. */
export function readCount(value: unknown): number | null {
  const isCount = typeof value === "number" && value >= 0 && value <= COUNT_MAX;
  return isCount ? Math.round(value) : null;
}

/** Dollars, in millionths; null when it is no price. */
export function readUsdMicro(value: unknown): number | null {
  return typeof value === "number" ? readCount(value * 1e6) : null;
}

/** Seconds since 1970, in ms; null when it is no time. */
export function readEpochMs(value: unknown): number | null {
  const isTime = typeof value === "number" && value >= 0 && value <= EPOCH_S_MAX;
  return isTime ? value * 1000 : null;
}

/** The id of a session, if a program can resume the session with it. */
export function readSessionId(value: unknown): string | undefined {
  return typeof value === "string" && SESSION_ID.test(value) ? value : undefined;
}
