/** The clock and the random numbers of this machine. Other code gets them as a `Clock`. */
import type { Clock } from "../core/clock.ts";

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  random: () => Math.random(),
};

/**
 * The monotonic clock of the machine (ms): the same for all processes of one boot. On Linux it does not count the time in which the machine sleeps.
 */
export function machineMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
