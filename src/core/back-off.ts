/** Decides how long to wait after a look, so that repeated looks take a bounded share of a core, however long each is. Pure. */

export interface BackOffByCost {
  /** The wait is this many times as long as the look. */
  times: number;
  /** At most this long (ms): a process that was stopped in the middle of a look would else do nothing for minutes afterwards. */
  mostMs: number;
}

/** @param tookMs the time that the look has taken @returns ms */
export function backOffByCost(tookMs: number, { times, mostMs }: BackOffByCost): number {
  return Math.min(times * tookMs, mostMs);
}
