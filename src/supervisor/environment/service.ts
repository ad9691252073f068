/** What the tick of a supervisor calls, in the order of `assemble.ts`. */

/** One round over all services. Times are monotonic ms. */
export interface Tick {
  readonly nowMs: number;
  /** What is due by then is done in this round: a look at everything brings forward what is due soon after it. */
  dueMs: number;
}

export interface Service {
  work(tick: Tick): void;
  /** When it has to work again: now or earlier, at once; Infinity, not by itself. */
  nextMs(nowMs: number): number;
  /** No tick comes any more: it lets go of what it watches or walks. */
  stop?(): void;
}

/** A service that never has to work by itself. */
export const NEVER = Number.POSITIVE_INFINITY;
