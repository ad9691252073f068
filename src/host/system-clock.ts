/** The clock and the chance of this machine: what everything below is handed as a `Clock`. */
import type { Clock } from "../core/clock.ts";

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  random: () => Math.random(),
};
