/** Epoch milliseconds as ISO 8601 in UTC. Journals ask for the same few seconds again and again, so those are remembered. */

/** A prime: no usual distance between two moments, as of a lease and its end, is a multiple of it. */
const KEPT = 61;
const seconds = Array.from({ length: KEPT }, () => Number.NaN);
/** Of each of them the text up to the fraction. */
const texts = Array.from({ length: KEPT }, () => "");
const FRACTIONS = Array.from({ length: 1000 }, (_, ms) => `${String(ms).padStart(3, "0")}Z`);

/**
 * @param epochMs fractions are dropped
 * @returns "2026-01-31T12:00:00.000Z"
 * @throws RangeError for what no Date can show
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
