/**
 * Reads `/proc` and `/sys`. A missing file and a file that cannot be read now are different answers. On a portable host all such files
 * count as missing, even where the system has them.
 */
import fs from "node:fs";
import { systemCode } from "../core/errors.ts";
import { hostKind } from "./host-kind.ts";

/** The process is gone, or we may not see it; or there is no `/proc` here. */
const NOT_THERE: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ESRCH", "EACCES", "EPERM"]);

/** @returns undefined when it is not there @throws the system's error when no descriptors or no memory are left */
export function readProc(path: string): Buffer | undefined {
  return askProc(() => fs.readFileSync(path));
}

/** @returns an empty list when it is not there @throws like `readProc` */
export function listProc(path: string): string[] {
  return askProc(() => fs.readdirSync(path)) ?? [];
}

/** @returns the target of the link; undefined when it is not there @throws like `readProc` */
export function readProcLink(path: string): string | undefined {
  return askProc(() => fs.readlinkSync(path));
}

/** @returns undefined when what it asks for is not there @throws like `readProc` */
export function askProc<T>(ask: () => T): T | undefined {
  if (hostKind() !== "proc") return undefined;
  try {
    return ask();
  } catch (error) {
    if (NOT_THERE.has(systemCode(error))) return undefined;
    throw error;
  }
}
