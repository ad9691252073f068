/** Limits of time that hold as they are on a free machine, and grow with the load of a busy one. */
import os from "node:os";

/** `ms`, times the number of runnable processes for each processor (at least 1). */
export function timeLimitMs(ms: number): number {
  const load = os.loadavg()[0] ?? 0;
  return ms * Math.max(1, load / os.cpus().length);
}
