/** Random names that cannot clash and are safe in file names. */
import { randomFillSync } from "node:crypto";

const pool = Buffer.alloc(4096);
let at = pool.length;
/** Every pair of two characters of [0-9a-v]: ten bits each. */
const PAIRS = Array.from({ length: 1024 }, (_, n) => n.toString(32).padStart(2, "0"));

/** `length` random characters of [0-9a-v], five bits each. */
export function randomToken(length: number): string {
  let token = "";
  while (token.length < length) {
    if (at + 2 > pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    token += PAIRS[pool.readUInt16LE(at) & 1023];
    at += 2;
  }
  return token.slice(0, length);
}

let lastMs = 0;
let counter = 0;

/** A new id that sorts by time: `t-<time>-<counter and random characters>`. */
export function newId(wallMs: number, prefix = "t"): string {
  if (wallMs > lastMs) {
    lastMs = wallMs;
    counter = 0;
  } else {
    counter += 1;
  }
  const count = counter.toString(36).padStart(3, "0");
  return `${prefix}-${lastMs.toString(36).padStart(9, "0")}${count}-${randomToken(5)}`;
}
