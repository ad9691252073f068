/** Lists a directory that need not be there. */
import fs from "node:fs";
import { systemCode } from "../core/errors.ts";

/** Its names; none when it cannot be listed. */
export function listDir(path: string): string[] {
  return tryListDir(path) ?? [];
}

/** Its names; none when it is not there. Undefined when it cannot be listed: then its names are not known. */
export function tryListDir(path: string): string[] | undefined {
  try {
    return fs.readdirSync(path);
  } catch (error) {
    return systemCode(error) === "ENOENT" ? [] : undefined;
  }
}
