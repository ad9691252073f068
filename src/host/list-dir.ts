/** Lists a directory that may be missing. */
import fs from "node:fs";
import { systemCode } from "../core/errors.ts";

/** The names in the directory; an empty list when it cannot be listed. */
export function listDir(path: string): string[] {
  return tryListDir(path) ?? [];
}

/** The names in the directory; an empty list when it is missing. Undefined when it cannot be listed: its names are then unknown. */
export function tryListDir(path: string): string[] | undefined {
  try {
    return listDirForSure(path);
  } catch {
    return undefined;
  }
}

/** The names in the directory; an empty list when it is missing. @throws a system error when it cannot be listed */
export function listDirForSure(path: string): string[] {
  try {
    return fs.readdirSync(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
}
