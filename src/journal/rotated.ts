/** Finds the rotated files of a journal. Reads only. */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";

/** The rotated files of this journal, the oldest first. */
export function rotatedOf(path: string): string[] {
  const prefix = `${basename(path, ".jsonl")}.`;
  const dir = dirname(path);
  let names: string[];
  try {
    names = fs.readdirSync(dir);
  } catch {
    return [];
  }
  const isRotated = (name: string): boolean =>
    name.startsWith(prefix) && /^\d.*\.jsonl$/.test(name.slice(prefix.length));
  // The names hold time stamps, so sorting by name sorts by age.
  return names
    .filter(isRotated)
    .sort()
    .map((name) => join(dir, name));
}

/** The newest rotated file of this journal; undefined when there is none. */
export function lastRotated(path: string): string | undefined {
  return rotatedOf(path).at(-1);
}
