/** The clock and the random numbers of this machine. Other code gets them as a `Clock`. */
import type { Clock } from "../core/clock.ts";

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  random: () => Math.random(),
};
