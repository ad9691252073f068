/** Keeps what stands in the place of a file of ours: it is renamed, never removed. */
import fs from "node:fs";
import { systemCode } from "../core/errors.ts";

/**
 * Renames what has this name to `<path>.bad-<n>`, with the smallest free n.
 * @returns its new path; undefined when nothing has the name
 * @throws a system error when it cannot be renamed
 */
export function setAside(path: string): string | undefined {
  for (let n = 1; ; n++) {
    const aside = `${path}.bad-${n}`;
    if (fs.lstatSync(aside, { throwIfNoEntry: false }) !== undefined) continue;
    try {
      fs.renameSync(path, aside);
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      return undefined;
    }
    return aside;
  }
}
