/** How long a look at the tree rests. Pure. */

/** To read the names of thousands of tasks takes long. A look then rests for a multiple of that time, so that all use a part of a core. */
const REST_FACTOR = 20;
/** It rests for so long at most: a process that was stopped in the middle of a look would else do nothing for minutes (ms). */
export const REST_MS_MAX = 3000;

/** @param tookMs the time that the look has taken */
export function restAfter(tookMs: number): number {
  return Math.min(REST_FACTOR * tookMs, REST_MS_MAX);
}
