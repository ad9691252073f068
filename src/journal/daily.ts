/** A journal that has a file for each day (UTC), `<name>.<day>.jsonl`. Earlier versions wrote one file, `<name>.jsonl`. */
import fs from "node:fs";
import { rotatedOf } from "./rotated.ts";

/** Epoch ms to `2026-11-24`. */
export function dayOf(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 10);
}

/** The file of a day. @param path the journal's path without the day */
export function fileOfDay(path: string, wallMs: number): string {
  return path.replace(/\.jsonl$/, `.${dayOf(wallMs)}.jsonl`);
}

/** All files that are there, the oldest first. @param path the journal's path without the day */
export function filesOfDays(path: string): string[] {
  return [...(fs.existsSync(path) ? [path] : []), ...rotatedOf(path)];
}
