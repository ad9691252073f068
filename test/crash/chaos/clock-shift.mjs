/**
 * Preloaded into every process of a pool under chaos: shifts the wall clock that its JavaScript sees, and only that. The
 * shift is the sum (ms) of what the files `machine` and `<pid>` in MAILCHUTE_CLOCK_DIR hold, read anew every 20 ms; what
 * only grows (`performance.now`, timers) is left alone, and so are the times that the kernel writes into files.
 */
import fs from "node:fs";
import { join } from "node:path";

const READ_MS = 20;
const dir = process.env.MAILCHUTE_CLOCK_DIR;
const RealDate = Date;
const origin = performance.timeOrigin;
let shiftMs = 0;
let readAtMs = Number.NEGATIVE_INFINITY;

function read(name) {
  try {
    return Number(fs.readFileSync(join(dir, name), "utf8")) || 0;
  } catch {
    return 0;
  }
}

function shift() {
  const nowMs = performance.now();
  if (nowMs - readAtMs > READ_MS) {
    readAtMs = nowMs;
    shiftMs = read("machine") + read(String(process.pid));
  }
  return shiftMs;
}

const now = () => RealDate.now() + shift();

if (dir !== undefined) {
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new RealDate(now()).toString(),
    get: (target, key) => (key === "now" ? now : Reflect.get(target, key)),
  });
  Object.defineProperty(performance, "timeOrigin", { get: () => origin + shift() });
}
