/** Reads the small JSON documents of a state tree, and makes new ones. `replace-document.ts` replaces them. */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { systemCode } from "../core/errors.ts";
import { parseObject } from "../core/json-object.ts";
import type { Shape } from "../core/shape.ts";
import { makeDirs } from "./make-dirs.ts";
import { readRegularText, writeAnew } from "./regular-file.ts";

export interface ReplaceOptions {
  /** Where the file is staged, on the same file system. Default: `.tmp` beside it. */
  stagingDir?: string;
  /** Of a new file: its name while it is staged. Needed where processes of two containers write, which may have the same number. */
  stagedAs?: string;
  /** The largest number of directories that are created, counting `stagingDir`. Default: 1. */
  missingMax?: number;
  /** True: the document survives a power cut once this returns. Otherwise a power cut may lose both the old and the new document. */
  isDurable?: boolean;
  /** The new file gets the mode and, if this process may do so, the owner of this one. Default: mode 0600, our own. */
  like?: fs.Stats;
  /** Called right before the rename. */
  beforePublish?: () => void;
}

/** Creates a file with this text, whole or not at all. @returns false when the name is taken. @throws a system error */
export function createText(
  path: string,
  text: string | Buffer,
  options: ReplaceOptions = {},
): boolean {
  const isDurable = options.isDurable === true;
  const stagingDir = options.stagingDir ?? join(dirname(path), ".tmp");
  makeDirs(stagingDir, options.missingMax);
  const staged = join(stagingDir, options.stagedAs ?? `${basename(path)}.${process.pid}`);
  try {
    writeAnew(staged, text, { isDurable });
    fs.linkSync(staged, path);
    if (isDurable) syncDir(dirname(path));
    return true;
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
    return false;
  } finally {
    fs.rmSync(staged, { force: true });
  }
}

export function syncDir(dir: string): void {
  const fd = fs.openSync(dir, "r");
  try {
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

/** Sets the mtime of a document to now, as a sign of life. A document that is missing stays so. */
export function touchDocument(path: string): void {
  const now = Date.now() / 1000;
  try {
    fs.utimesSync(path, now, now);
  } catch {
    // It is gone, or not ours: nothing can be concluded from it then.
  }
}

/** The mtime of a document (ms); undefined when it is missing, or cannot be looked at now. */
export function mtimeOfDocument(path: string): number | undefined {
  try {
    return fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  } catch {
    return undefined;
  }
}

/** Removes a document that nothing depends on. One that stays does no harm: readers check whether the process that it names lives. */
export function removeDocument(path: string): void {
  try {
    fs.rmSync(path, { force: true });
  } catch {
    // Its directory is no directory, or the disk refuses.
  }
}

/** Errors of `readRegularText` that another try does not change: there is no document of ours. */
const NO_DOCUMENT: ReadonlySet<string> = new Set([
  "ENOENT",
  "ENOTDIR",
  "ELOOP",
  "ENXIO",
  "EINVAL",
  "EFBIG",
]);

/**
 * The document, or undefined when it is missing, not a JSON object, or not of this shape.
 * @throws a system error when it cannot be read: its content is then unknown
 */
export function loadDocument<T extends object>(path: string, shape?: Shape<T>): T | undefined {
  try {
    const found = parseObject(readRegularText(path));
    return found === undefined || shape === undefined ? (found as T | undefined) : shape(found);
  } catch (error) {
    if (NO_DOCUMENT.has(systemCode(error))) return undefined;
    throw error;
  }
}

/** Like `loadDocument`; one that cannot be read counts as missing. */
export function readDocument<T extends object>(path: string, shape?: Shape<T>): T | undefined {
  try {
    return loadDocument(path, shape);
  } catch {
    return undefined;
  }
}
