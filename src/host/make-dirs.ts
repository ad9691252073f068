/**
 * Makes directories one at a time. Node's own recursive form runs for ever where the system says ENOENT below a directory that
 * is there, as it does below /proc. What lies inside a state tree is made with a bound: a tree that was moved away or deleted
 * must not come into being again where it was.
 */
import fs from "node:fs";
import { dirname } from "node:path";
import { systemCode } from "../core/errors.ts";

/**
 * Makes a directory with mode 0700, and what is missing above it; harmless when it is there.
 * @param missingMax at most so many are made, with the directory itself: its depth in what has to be there. Infinity: all
 * @throws ENOENT when more are missing, EEXIST when something else stands there, and other system errors
 */
export function makeDirs(path: string, missingMax = 1): void {
  try {
    fs.mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const code = systemCode(error);
    if (code === "EEXIST" && fs.statSync(path).isDirectory()) return;
    if (code !== "ENOENT" || missingMax <= 1) throw error;
    makeDirs(dirname(path), missingMax - 1);
    try {
      makeDirs(path);
    } catch (again) {
      // A sweep that found the directory above empty has taken it away in between.
      if (systemCode(again) !== "ENOENT") throw again;
      makeDirs(dirname(path), missingMax - 1);
      makeDirs(path);
    }
  }
}
