/** The interface that the tick of a supervisor calls, in the order of `assemble.ts`. */

/** One round over all services. Times are monotonic ms. */
export interface Tick {
  readonly nowMs: number;
  /** Services do the work that is due by this time. After a look at `processing/` it lies after `nowMs`, to include work that is due soon. */
  dueMs: number;
}

export interface Service {
  work(tick: Tick): void;
  /** When the service has to work again: now or earlier means at once, Infinity means not by itself. */
  nextMs(nowMs: number): number;
  /** Called after the last tick: stops watches and listings. */
  stop?(): void;
}

/** A service that never has to work by itself. */
export const NEVER = Number.POSITIVE_INFINITY;
