/** Keeps values that were read from a state tree until their files and directories have changed. Reads only. */
import fs from "node:fs";

/** Two changes within this time may leave the same file time (ms). */
const SAME_TIME_MS = 50;
/** A value that took longer than this to read (ms) is kept for a multiple of that time, so that reading uses at most a twentieth of a core. */
const DEAR_MS = 5;
const REST_FACTOR = 20;
/** And for so long at most: a process that was stopped while it read would else show old values for hours (ms). */
const REST_MS_MAX = 10_000;

let freshLooks = 0;

/** Differs from the earlier stamp when the file or directory has changed since. It also differs when the file changed only just now. */
export function stampOf(path: string): string {
  try {
    const { ino, size, ctimeMs } = fs.statSync(path);
    const look = Date.now() - ctimeMs < SAME_TIME_MS ? ++freshLooks : 0;
    return `${ino}.${size}.${ctimeMs}.${look}`;
  } catch {
    return "";
  }
}

/** One value that is read again when its stamp has changed. A value that takes long to read is read less often. */
export class Kept<T> {
  private value: T | undefined;
  private stamp = "";
  private againMs = 0;

  get(stamp: string, make: () => T): T {
    const fromMs = performance.now();
    if (this.value !== undefined && (stamp === this.stamp || fromMs < this.againMs))
      return this.value;
    this.value = make();
    this.stamp = stamp;
    const toMs = performance.now();
    const tookMs = toMs - fromMs;
    this.againMs = tookMs > DEAR_MS ? toMs + Math.min(REST_FACTOR * tookMs, REST_MS_MAX) : 0;
    return this.value;
  }
}
