/** Time and chance, as one value that is handed in: nothing below the shell reads a clock of its own. */

export interface Clock {
  /** Epoch milliseconds. May jump either way: for records and for times that people set. */
  wallMs(): number;
  /** Milliseconds that only ever grow: for every measured duration. */
  monotonicMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
}

export function wallSeconds(clock: Clock): number {
  return Math.floor(clock.wallMs() / 1000);
}
