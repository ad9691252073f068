/** Finds a program as the shell does: a path is used as it is, a name is searched in PATH. */
import fs from "node:fs";
import { delimiter, join, resolve, sep } from "node:path";

/**
 * @param path the value of PATH
 * @param cwd for a relative path
 * @returns its path; undefined when no such program can be run
 */
export function findProgram(
  name: string,
  path: string | undefined,
  cwd: string,
): string | undefined {
  if (name.includes(sep)) return isProgram(resolve(cwd, name)) ? resolve(cwd, name) : undefined;
  const dirs = (path ?? "").split(delimiter).filter((dir) => dir !== "");
  return dirs.map((dir) => join(dir, name)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    fs.accessSync(path, fs.constants.X_OK);
    return fs.statSync(path).isFile();
  } catch {
    return false;
  }
}
