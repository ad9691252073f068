/** Time and random numbers. The caller passes a clock in; pure code never reads the system's clock. */

export interface Clock {
  /** Epoch milliseconds. Can jump forwards and backwards. Used in records and for times that people set. */
  wallMs(): number;
  /** Milliseconds that never go back. Used to measure every duration. */
  monotonicMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
}

export function wallSeconds(clock: Clock): number {
  return Math.floor(clock.wallMs() / 1000);
}
