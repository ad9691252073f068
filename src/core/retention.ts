/** Decides which old files may be removed. Pure. */

export const DAY_MS = 24 * 60 * 60 * 1000;
/** A staged file younger than this may belong to a slow process that still needs it (ms). */
export const STAGED_MAX_AGE_MS = 60 * 60 * 1000;

/** True when a settled record of this age may be removed. One with a negative age, after the clock has jumped, is kept. */
export function isExpired(ageMs: number, days: number): boolean {
  return ageMs > days * DAY_MS;
}

/**
 * True when a staged file may be removed: it has no marker, and its record is published or the file is old. A missing marker
 * alone proves nothing, because a listing can miss a file that is renamed at that moment.
 */
export function isStagedLeftover(facts: {
  ageMs: number;
  hasMarker: boolean;
  isPublished: boolean;
}): boolean {
  if (facts.hasMarker) return false;
  return facts.isPublished || facts.ageMs > STAGED_MAX_AGE_MS;
}
