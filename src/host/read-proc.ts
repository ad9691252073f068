/** Reads of `/proc`, where "not there" is one answer, and "it cannot be looked at now" another. */
import fs from "node:fs";
import { systemCode } from "../core/errors.ts";

/** The process is gone, or is not ours to see; or there is no `/proc` here. */
const NOT_THERE: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ESRCH", "EACCES", "EPERM"]);

/** @returns undefined when it is not there @throws what the system says when it has no descriptors or no memory left */
export function readProc(path: string): Buffer | undefined {
  return askProc(() => fs.readFileSync(path));
}

/** @returns none when it is not there @throws like `readProc` */
export function listProc(path: string): string[] {
  return askProc(() => fs.readdirSync(path)) ?? [];
}

/** @returns where it leads to; undefined when it is not there @throws like `readProc` */
export function readProcLink(path: string): string | undefined {
  return askProc(() => fs.readlinkSync(path));
}

function askProc<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch (error) {
    if (NOT_THERE.has(systemCode(error))) return undefined;
    throw error;
  }
}
