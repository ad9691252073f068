/** Keeps what was read of a state tree until the files and directories it came from have changed. Reads only. */
import fs from "node:fs";

/** Two changes within so short a time may leave the same time behind (ms). */
const SAME_TIME_MS = 50;
/** What took longer to read than this (ms) is read again after so many times as long: it costs at most a twentieth of a core. */
const DEAR_MS = 5;
const REST_FACTOR = 20;

let freshLooks = 0;

/** Differs from the stamp before when the file or directory has changed since, or may have: when it has only just changed. */
export function stampOf(path: string): string {
  try {
    const { ino, size, ctimeMs } = fs.statSync(path);
    const look = Date.now() - ctimeMs < SAME_TIME_MS ? ++freshLooks : 0;
    return `${ino}.${size}.${ctimeMs}.${look}`;
  } catch {
    return "";
  }
}

/** One value that is made again when its stamp has changed; one that took long is made the more seldom. */
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
    this.againMs = tookMs > DEAR_MS ? toMs + REST_FACTOR * tookMs : 0;
    return this.value;
  }
}
