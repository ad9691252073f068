/**
 * The random id of a directory, kept in a file inside it. The file names the device and inode of the directory, and when it was made: so
 * a directory that was moved keeps its id, and a copy gets another one when its id is first asked for, even if it has the inode of one
 * that was removed. All processes that ask at once get the same id.
 */
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { systemCode } from "../core/errors.ts";
import { parseObject } from "../core/json-object.ts";
import { syncDir } from "./documents.ts";
import { makeDirs } from "./make-dirs.ts";
import { openToRead } from "./regular-file.ts";
import { isOtherTree, treeIdOf } from "./tree-id.ts";

/** The file that holds the id. */
export interface IdFile {
  path: string;
  /** The member of its JSON object that is the id. */
  key: string;
  /** How many hex digits a new id has. */
  chars: number;
  /** Where the file is staged, on the same file system; made when it is missing. Default: beside it. */
  stagingDir?: string;
}

const FILE_BYTES_MAX = 4096;
const STAGED_BYTES = 6;
/** Errors of a place in which this process may not write. */
const UNWRITABLE: ReadonlySet<string> = new Set(["EACCES", "EPERM", "EROFS"]);

interface Found {
  id: string | undefined;
  /** Device and inode of the directory, and its path, when the file was written. */
  of: unknown;
  born: unknown;
  path: unknown;
  /** Changes with the file: two processes that find the same text in the same file have the same mark. */
  mark: string;
}

/**
 * @param dir an existing directory, by its real path
 * @returns its id. If the file cannot be written, or something else is in its place, the id of its path: see `idOfPath`
 * @throws a system error, for example when the disk is full
 */
export function ownIdOf(dir: string, file: IdFile): string {
  try {
    for (;;) {
      const found = read(file);
      if (found !== undefined) return keptIn(dir, file, found);
      const id = randomBytes(file.chars / 2).toString("hex");
      publish(file, () => documentOf(dir, file, id));
    }
  } catch (error) {
    const code = systemCode(error);
    if (UNWRITABLE.has(code) || IN_ITS_PLACE.has(code)) return idOfPath(dir, file.chars);
    throw error;
  }
}

/** The id that the directory has by its file. Undefined: it has none yet, or cannot have one. Writes nothing. @throws a system error */
export function knownIdOf(dir: string, file: IdFile): string | undefined {
  try {
    const found = read(file);
    return found !== undefined && isOf(dir, found) ? found.id : undefined;
  } catch (error) {
    const code = systemCode(error);
    if (UNWRITABLE.has(code) || IN_ITS_PLACE.has(code)) return undefined;
    throw error;
  }
}

/** Errors of `openToRead` for a link, a pipe, a directory. They stay: another program made them. */
const IN_ITS_PLACE: ReadonlySet<string> = new Set(["ELOOP", "EINVAL", "ENXIO"]);

/** An id that a directory has only as long as it is not moved. @param dir need not exist @param isMade false: as if it did not */
export function idOfPath(dir: string, chars: number, isMade = true): string {
  const ino = isMade ? fs.statSync(dir, { bigint: true, throwIfNoEntry: false })?.ino : undefined;
  return hashOf(["path", dir, String(ino ?? "")], chars);
}

function keptIn(dir: string, file: IdFile, found: Found): string {
  const { id, mark, of, path } = found;
  if (id !== undefined && isOf(dir, found)) {
    if (of !== treeIdOf(dir) || path !== dir) tryReplace(file, () => documentOf(dir, file, id));
    return id;
  }
  // Made of what was found, so that all processes which replace the same file write the same id.
  const next = hashOf([mark, treeIdOf(dir) ?? ""], file.chars);
  replace(file, () => documentOf(dir, file, next));
  return next;
}

/** True if the file was written for this directory. What the file or the system does not know counts as equal. */
function isOf(dir: string, { born, of, path }: Found): boolean {
  const now = bornOf(dir);
  if (typeof born === "string" && now !== null && born !== now) return false;
  return typeof of !== "string" || !isOtherTree(of, dir) || isRemounted(dir, of, path);
}

/** When the directory was made (ns); null where the file system does not say: then it names the time of the last change. */
function bornOf(dir: string): string | null {
  const { birthtimeNs, ctimeNs } = fs.statSync(dir, { bigint: true });
  return birthtimeNs === 0n || birthtimeNs === ctimeNs ? null : String(birthtimeNs);
}

/** The number of a device may change when it is mounted again; path and inode are then the same. */
function isRemounted(dir: string, of: string, path: unknown): boolean {
  return path === dir && of.split(":")[1] === treeIdOf(dir)?.split(":")[1];
}

/** Undefined when the file is missing. @throws a system error */
function read(file: IdFile): Found | undefined {
  const { chars, key } = file;
  let fd: number;
  try {
    fd = openToRead(file.path);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
  try {
    const { ino, ctimeNs } = fs.fstatSync(fd, { bigint: true });
    const bytes = Buffer.alloc(FILE_BYTES_MAX);
    const text = bytes.toString("utf8", 0, fs.readSync(fd, bytes, 0, bytes.length, 0));
    // A replacement changes the time of the replaced file, so that its mark would be another than that of the process that replaced it.
    if (fs.fstatSync(fd).nlink === 0) return read(file);
    const value = parseObject(text) ?? {};
    const id = value[key];
    const isId = typeof id === "string" && id.length === chars && /^[0-9a-z]+$/.test(id);
    const mark = `${ino}:${ctimeNs}:${text}`;
    const { born, of, path } = value;
    return { id: isId ? id : undefined, born, of, path, mark };
  } finally {
    fs.closeSync(fd);
  }
}

function documentOf(dir: string, { key }: IdFile, id: string): string {
  const value = { v: 1, [key]: id, of: treeIdOf(dir), born: bornOf(dir), path: dir };
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Does nothing when the file exists. */
function publish(file: IdFile, text: () => string): void {
  whileStaged(file, text, (staged) => {
    try {
      fs.linkSync(staged, file.path);
    } catch (error) {
      if (systemCode(error) !== "EEXIST") throw error;
    }
  });
}

function replace(file: IdFile, text: () => string): void {
  whileStaged(file, text, (staged) => fs.renameSync(staged, file.path));
}

/** Notes where the directory is now. If that fails, the next call tries again. */
function tryReplace(file: IdFile, text: () => string): void {
  try {
    replace(file, text);
  } catch {
    // The id counts without it.
  }
}

function whileStaged(
  { path, stagingDir }: IdFile,
  text: () => string,
  use: (staged: string) => void,
): void {
  if (stagingDir !== undefined) makeDirs(stagingDir);
  const name = `${basename(path)}.${randomBytes(STAGED_BYTES).toString("hex")}`;
  const staged = join(stagingDir ?? dirname(path), name);
  try {
    // Other users may read it: they have their own mail, but must not take the directory for a new one.
    const fd = fs.openSync(staged, "wx", 0o644);
    try {
      fs.writeFileSync(fd, text());
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
    use(staged);
    syncDir(dirname(path));
  } finally {
    fs.rmSync(staged, { force: true });
  }
}

function hashOf(parts: readonly string[], chars: number): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, chars);
}
