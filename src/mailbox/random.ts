/** Random names that cannot clash and are safe in file names. */
import { randomFillSync } from "node:crypto";

const pool = Buffer.alloc(4096);
let at = pool.length;

/** `length` characters of [0-9a-z]. */
export function randomToken(length: number): string {
  let token = "";
  while (token.length < length) {
    if (at + 4 > pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    token += pool.readUInt32LE(at).toString(36).padStart(7, "0").slice(-6);
    at += 4;
  }
  return token.slice(0, length);
}

let lastMs = 0;
let counter = 0;

/** A fresh id that sorts by time: `t-<time>-<counter and chance>`. */
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
