/** A wall clock that a test sets, for all processes of a pool: without it a test that runs over midnight sees two days. */
import fs from "node:fs";
import { join } from "node:path";
import { programPath } from "./programs.ts";
import { tempDir } from "./temp-dir.ts";

export interface MovedClock {
  /** For the environment of the pool. */
  env: Record<string, string>;
  /** Epoch ms. */
  nowMs(): number;
  /** It goes on from this time of day (UTC), the next one that comes. */
  goOnAt(hours: number, minutes: number): void;
  /** It is later by this much. */
  skip(ms: number): void;
}

/** A clock that begins at this time of day (UTC). */
export function newMovedClock(hours: number, minutes = 0): MovedClock {
  const path = join(tempDir(), "clock");
  let aheadMs = 0;
  const nowMs = (): number => Date.now() + aheadMs;
  const skip = (ms: number): void => {
    aheadMs += ms;
    fs.writeFileSync(`${path}.new`, String(aheadMs));
    fs.renameSync(`${path}.new`, path);
  };
  const goOnAt = (toHours: number, toMinutes: number): void => {
    const next = new Date(nowMs()).setUTCHours(toHours, toMinutes, 0, 0);
    skip((next > nowMs() ? next : next + 24 * 3_600_000) - nowMs());
  };
  goOnAt(hours, minutes);
  const env = { TEST_CLOCK: path, NODE_OPTIONS: `--require=${programPath("moved-clock.cjs")}` };
  return { env, nowMs, goOnAt, skip };
}
