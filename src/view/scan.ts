/** Looks into directories that may hold a million files, at a bounded cost. Reads only. */
import fs from "node:fs";
import { join } from "node:path";
import { ErrIo, messageOf, systemCode } from "../core/errors.ts";
import { parseObject } from "../core/json-object.ts";
import { readRegularText } from "../host/regular-file.ts";

/** Counting stops here: an exact count of more would block for seconds. */
export const COUNT_MAX = 100_000;
const BUFFER_ENTRIES = 1024;

/** The names in a directory, in any order. A missing directory is empty. @throws ErrIo */
export function* namesIn(dir: string): Generator<string> {
  let handle: fs.Dir;
  try {
    handle = fs.opendirSync(dir, { bufferSize: BUFFER_ENTRIES });
  } catch (error) {
    if (systemCode(error) === "ENOENT") return;
    // The system's own error does not name the directory.
    throw new ErrIo(`cannot read ${dir}: ${messageOf(error)}`, {
      path: dir,
      phase: "look",
      cause: error,
    });
  }
  try {
    for (let entry = handle.readSync(); entry !== null; entry = handle.readSync()) yield entry.name;
  } finally {
    handle.closeSync();
  }
}

/** Calls `visit` with each name until it returns false or the directory ends. @returns false when it was stopped early. @throws ErrIo */
export function eachName(dir: string, visit: (name: string) => boolean): boolean {
  for (const name of namesIn(dir)) if (!visit(name)) return false;
  return true;
}

export interface Count {
  count: number;
  /** False when counting stopped at the limit, has not finished, or was done some time ago. */
  is_exact: boolean;
  /** Set for a count from some time ago; names may have come and gone since then. */
  is_old?: true;
}

export function countNames(
  dir: string,
  isCounted: (name: string) => boolean,
  max: number = COUNT_MAX,
): Count {
  let count = 0;
  const isExact = eachName(dir, (name) => {
    if (isCounted(name)) count++;
    return count < max;
  });
  return { count, is_exact: isExact };
}

export interface Found {
  name: string;
  path: string;
  mtimeMs: number;
  size: number;
}

/** Up to `max` matching files with their times. When there are more, it is chance which ones are found. */
export function findFiles(
  dir: string,
  isWanted: (name: string) => boolean,
  max: number,
): { files: Found[]; isAll: boolean } {
  const names: string[] = [];
  const isAll = eachName(dir, (name) => {
    if (isWanted(name)) names.push(name);
    return names.length < max;
  });
  return { files: names.flatMap((name) => lookAt(dir, name) ?? []), isAll };
}

/** Undefined when the file is missing. */
export function lookAt(dir: string, name: string): Found | undefined {
  const path = join(dir, name);
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  return stats && { name, path, mtimeMs: stats.mtimeMs, size: stats.size };
}

/** A JSON object from a regular file of at most `bytesMax`; undefined when the file is missing, too large, incomplete or no object. */
export function readJsonObject(
  path: string,
  bytesMax = 16 * 1024 * 1024,
): Record<string, unknown> | undefined {
  try {
    return parseObject(readRegularText(path, { bytesMax }).replace(/^\ufeff/, ""));
  } catch {
    return undefined;
  }
}

/** A field that should be text: as it is, or as JSON when it is something else. */
export function textOf(value: unknown, missing = ""): string {
  if (value === undefined || value === null) return missing;
  return typeof value === "string" ? value : (JSON.stringify(value) ?? missing);
}
