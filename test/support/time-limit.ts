/** Limits of time that hold as they are on a free machine, and grow with the load of a busy one. */
import fs from "node:fs";
import os from "node:os";

/** `ms`, times the number of runnable processes for each processor (at least 1): of the last minute or now, if more. */
export function timeLimitMs(ms: number): number {
  const load = Math.max(os.loadavg()[0] ?? 0, runnableNow());
  return ms * Math.max(1, load / os.cpus().length);
}

/** The average of a minute takes that minute to tell that a machine got busy. 0 where it cannot be known. */
function runnableNow(): number {
  try {
    return Number(/ (\d+)\/\d+ /.exec(fs.readFileSync("/proc/loadavg", "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** A time for `--until` by which what the test starts at once is running, also on a busy machine. */
export function untilAfter(ms: number): string {
  return `${Math.ceil(timeLimitMs(ms) / 1000)}s`;
}
