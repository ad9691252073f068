/** Keeps values that were read from a state tree until their files and directories have changed. Reads only. */
import { type BackOffByCost, backOffByCost } from "../core/back-off.ts";
import { tryStatOf } from "../host/regular-file.ts";

/** Two changes within this time may leave the same file time (ms). */
const SAME_TIME_MS = 50;
/** A value that took longer than this to read (ms) is kept for a while. */
const DEAR_MS = 5;
const REST: BackOffByCost = { times: 20, mostMs: 10_000 };

let freshLooks = 0;

/** Differs from the earlier stamp when the file or directory has changed since. It also differs when the file changed only just now. */
export function stampOf(path: string): string {
  const stats = tryStatOf(path);
  if (stats === undefined) return "";
  const { ino, size, ctimeMs } = stats;
  const look = Date.now() - ctimeMs < SAME_TIME_MS ? ++freshLooks : 0;
  return `${ino}.${size}.${ctimeMs}.${look}`;
}

/** One value that is read again when its stamp has changed. A value that takes long to read is read less often. */
export class Kept<T> {
  private value: T | undefined;
  private stamp = "";
  private againMs = 0;

  get(stamp: string, make: () => T): T {
    const fromMs = monotonicMs();
    if (this.value !== undefined && (stamp === this.stamp || fromMs < this.againMs))
      return this.value;
    this.value = make();
    this.stamp = stamp;
    const toMs = monotonicMs();
    const tookMs = toMs - fromMs;
    this.againMs = tookMs > DEAR_MS ? toMs + backOffByCost(tookMs, REST) : 0;
    return this.value;
  }
}

/** Uses the uptime: a command that looks once would load Node's module for `performance` only for this. */
function monotonicMs(): number {
  return process.uptime() * 1000;
}
