/** Writes epoch milliseconds as ISO 8601 in UTC. Journals need the same few seconds many times, so their texts are cached. */

/** The size of the cache (s). It is a prime, so that the start and the end of a lease rarely fall into the same place. */
const KEPT = 61;
const seconds = Array.from({ length: KEPT }, () => Number.NaN);
/** The text of each cached second, up to the fraction. */
const texts = Array.from({ length: KEPT }, () => "");
const FRACTIONS = Array.from({ length: 1000 }, (_, ms) => `${String(ms).padStart(3, "0")}Z`);

/**
 * @param epochMs fractions are dropped
 * @returns "2026-01-31T12:00:00.000Z"
 * @throws RangeError for a time that a Date cannot hold
 */
export function isoTime(epochMs: number): string {
  const wholeMs = Math.trunc(epochMs);
  const second = Math.floor(wholeMs / 1000);
  const slot = Math.abs(second % KEPT);
  if (seconds[slot] !== second) {
    const text = new Date(wholeMs).toISOString();
    seconds[slot] = second;
    texts[slot] = text.slice(0, -"000Z".length);
  }
  return `${texts[slot]}${FRACTIONS[wholeMs - second * 1000]}`;
}
