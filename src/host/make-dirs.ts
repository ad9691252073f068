/**
 * Makes directories one at a time. Node's own recursive call never ends where the system reports ENOENT below an existing
 * directory, as below /proc. Directories inside a state tree are made with a limit: a tree that was moved away or deleted must not
 * be created again at its old place.
 */
import fs from "node:fs";
import { dirname } from "node:path";
import { systemCode } from "../core/errors.ts";

/**
 * Makes a directory with mode 0700, and its missing parents. Does nothing when it exists.
 * @param missingMax the largest number of directories that are made, counting the directory itself. Infinity: no limit
 * @throws ENOENT when more are missing, EEXIST when something else is there, and other system errors
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
      // In between, a sweep found the directory above empty and removed it.
      if (systemCode(again) !== "ENOENT") throw again;
      makeDirs(dirname(path), missingMax - 1);
      makeDirs(path);
    }
  }
}
