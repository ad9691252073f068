/** Epoch milliseconds as ISO 8601 in UTC. Journals ask for the same few moments again and again, so those are remembered. */

const KEPT = 64;
const moments = Array.from({ length: KEPT }, () => Number.NaN);
const texts = Array.from({ length: KEPT }, () => "");

/**
 * @param epochMs fractions are dropped
 * @returns "2026-01-31T12:00:00.000Z"
 * @throws RangeError for what no Date can show
 */
export function isoTime(epochMs: number): string {
  // Not with %, which is slow on numbers of this size.
  const slot = epochMs - Math.floor(epochMs / KEPT) * KEPT;
  const known = texts[slot];
  if (known !== undefined && moments[slot] === epochMs) return known;
  const text = new Date(epochMs).toISOString();
  if (Number.isInteger(slot)) {
    moments[slot] = epochMs;
    texts[slot] = text;
  }
  return text;
}
