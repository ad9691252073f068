/** What may be swept. Pure: facts in, answer out. */

const DAY_MS = 24 * 60 * 60 * 1000;
/** Staged files younger than this may belong to a process that is just slow (ms). */
export const STAGED_MAX_AGE_MS = 60 * 60 * 1000;

/** True when a settled record of this age may go. A negative age (a clock that jumped) keeps it. */
export function isExpired(ageMs: number, days: number): boolean {
  return ageMs > days * DAY_MS;
}

/**
 * True when a staged file may go. Absence of others proves nothing (listings miss entries during renames), so it goes
 * on evidence, or by age.
 */
export function isStagedLeftover(facts: {
  ageMs: number;
  hasMarker: boolean;
  isPublished: boolean;
}): boolean {
  if (facts.hasMarker) return false;
  return facts.isPublished || facts.ageMs > STAGED_MAX_AGE_MS;
}
