/**
 * The only way to the content of files: no folder beside `host/` opens a path itself (test/architecture.test.ts). A run, a sender or
 * another program may have put anything there, so opening never waits, and only a regular file of a limited size is read. There are two
 * doors. Through the first goes what a run or a sender may place: it is never a link. Through the second, `NAMED`, goes what a person
 * names, such as settings: it may be a link to a regular file.
 */
import fs from "node:fs";
import { systemCode } from "../core/errors.ts";
import { KV_DOCUMENT_BYTES_MAX } from "../core/limits.ts";

/** Our files are never larger than this (bytes). Reading a larger one could take minutes, or all memory. */
const TEXT_BYTES_MAX = 2 * KV_DOCUMENT_BYTES_MAX;

const { O_RDONLY, O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NOATIME, O_NOFOLLOW } = fs.constants;
const WITHOUT_WAITING = fs.constants.O_NONBLOCK | fs.constants.O_NOCTTY;

export interface Reading {
  /** True: a person named the file, so it may be a link. */
  isNamed?: boolean;
  /** A larger file is not read. Default: the largest file of ours. */
  bytesMax?: number;
}
/** The door for what a person names. */
export const NAMED: Reading = { isNamed: true };

export interface Looked {
  stats: fs.Stats;
  /**
   * What it held when it was opened; one byte more when it has grown since. Undefined when it is not a regular file, or too large.
   */
  bytes: Buffer | undefined;
}

/** What the path leads to; undefined when it leads to nothing. @throws a system error when that cannot be known, such as EACCES */
export function statOf(path: string): fs.Stats | undefined {
  try {
    return fs.statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // A circle of links leads to nothing.
    if (systemCode(error) === "ELOOP") return undefined;
    throw error;
  }
}

/** @returns a descriptor. @throws a system error: ENOENT, ELOOP (a link), EINVAL (no regular file), … */
export function openToRead(path: string, { isNamed = false }: Reading = {}): number {
  const fd = openForReading(path, isNamed);
  refuseOthers(fd, path);
  return fd;
}

/** Makes the file when it is missing. @throws like `openToRead` */
export function openToAppend(path: string): number {
  return openToWrite(path, O_APPEND | O_CREAT);
}

/** Reads a regular file, and tells what else has the name. @throws a system error when nothing has it, or it cannot be opened */
export function lookInto(path: string, reading: Reading = {}): Looked {
  const { isNamed = false } = reading;
  let fd: number;
  try {
    fd = openForReading(path, isNamed);
  } catch (error) {
    // A link (ELOOP), a socket or a device (ENXIO) is not opened.
    const stats = (isNamed ? fs.statSync : fs.lstatSync)(path, { throwIfNoEntry: false });
    if (stats === undefined || stats.isFile()) throw error;
    return { stats, bytes: undefined };
  }
  return usingFile(fd, () => {
    const stats = fs.fstatSync(fd);
    const isRead = stats.isFile() && stats.size <= bytesMaxOf(reading);
    return { stats, bytes: isRead ? readOpened(fd, stats.size) : undefined };
  });
}

/** @throws a system error: like `openToRead`; EINVAL also for a link; EFBIG when it is too large and is not read */
export function readRegular(path: string, reading: Reading = {}): Buffer {
  const { stats, bytes } = lookInto(path, reading);
  if (bytes !== undefined) return bytes.subarray(0, stats.size);
  if (!stats.isFile()) throw notRegular(path, stats);
  throw fault("EFBIG", `it has ${stats.size} bytes, more than ${bytesMaxOf(reading)}`, path);
}

/** @throws like `readRegular` */
export function readRegularText(path: string, reading: Reading = {}): string {
  return readRegular(path, reading).toString("utf8");
}

/** The text of the file; undefined when it cannot be read. */
export function tryReadText(path: string, reading: Reading = {}): string | undefined {
  try {
    return readRegularText(path, reading);
  } catch {
    return undefined;
  }
}

/** The end of a file that a program writes, as text; "" when it cannot be read. @param bytesMax reads at most this much */
export function readEnd(path: string, bytesMax: number): string {
  try {
    return usingFile(openToRead(path), (fd) => {
      const { size } = fs.fstatSync(fd);
      const buffer = Buffer.alloc(Math.min(size, bytesMax));
      const got = fs.readSync(fd, buffer, 0, buffer.length, size - buffer.length);
      return buffer.toString("utf8", 0, got);
    });
  } catch {
    return "";
  }
}

/** How much of a batch is looked at before its lines run (bytes). */
export const BATCH_HEAD_BYTES = 64 * 1024;

/** The whole lines at the beginning of a file, as text; "" when it cannot be read. @param bytesMax reads at most this much */
export function readHead(path: string, bytesMax: number): string {
  try {
    return usingFile(openToRead(path), (fd) => {
      const buffer = Buffer.alloc(Math.min(fs.fstatSync(fd).size, bytesMax));
      const got = fs.readSync(fd, buffer, 0, buffer.length, 0);
      const isCut = fs.fstatSync(fd).size > got;
      return buffer.toString("utf8", 0, isCut ? buffer.lastIndexOf("\n", got) + 1 : got);
    });
  } catch {
    return "";
  }
}

/** @throws like `openToRead` */
export function appendRegularText(path: string, text: string): void {
  usingFile(openToAppend(path), (fd) => fs.writeFileSync(fd, text));
}

/** Replaces the text of the file. @throws like `openToRead` */
export function writeRegularText(path: string, text: string): void {
  usingFile(openToWrite(path, O_CREAT), (fd) => {
    // Do not use O_TRUNC: the checks after opening may refuse the file.
    fs.ftruncateSync(fd);
    fs.writeFileSync(fd, text);
  });
}

/** Removes the existing file and writes a new one. @throws a system error */
export function writeAnew(path: string, text: string): void {
  fs.rmSync(path, { force: true });
  usingFile(openToWrite(path, O_CREAT | O_EXCL), (fd) => fs.writeFileSync(fd, text));
}

/** Removes a link that is in the place of a file of ours. The target of the link stays. @throws a system error */
export function dropLink(path: string): void {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stats !== undefined && (stats.isSymbolicLink() || stats.nlink > 1))
    fs.rmSync(path, { force: true });
}

/** Opens without updating the access time: nothing reads it, and each update would be one more disk write. */
function openForReading(path: string, isNamed: boolean): number {
  const flags = O_RDONLY | WITHOUT_WAITING | (isNamed ? 0 : O_NOFOLLOW);
  try {
    return fs.openSync(path, flags | O_NOATIME);
  } catch (error) {
    // Only the owner of a file may open it with this flag.
    if (systemCode(error) !== "EPERM") throw error;
    return fs.openSync(path, flags);
  }
}

function openToWrite(path: string, flags: number): number {
  const fd = fs.openSync(path, O_WRONLY | WITHOUT_WAITING | O_NOFOLLOW | flags, 0o600);
  const { nlink } = refuseOthers(fd, path);
  // A file with a second name may belong to another user.
  if (nlink > 1) {
    fs.closeSync(fd);
    throw fault("EINVAL", "it has a second name", path);
  }
  return fd;
}

/** Closes what is not a regular file. */
function refuseOthers(fd: number, path: string): fs.Stats {
  const stats = fs.fstatSync(fd);
  if (stats.isFile()) return stats;
  fs.closeSync(fd);
  throw notRegular(path, stats);
}

function notRegular(path: string, stats: fs.Stats): Error {
  const what = stats.isSymbolicLink() ? "a link, which is not followed" : "not a regular file";
  return fault("EINVAL", `it is ${what}`, path);
}

const bytesMaxOf = ({ bytesMax = TEXT_BYTES_MAX }: Reading): number => bytesMax;

function fault(code: string, what: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${what}, '${path}'`), { code });
}

/** The bytes of a file of this size; one more when it has grown. A read that returns no more than the size has reached the end. */
function readOpened(fd: number, size: number): Buffer {
  const buffer = Buffer.allocUnsafe(size + 1);
  let at = 0;
  do {
    const got = fs.readSync(fd, buffer, at, buffer.length - at, at);
    if (got === 0) break;
    at += got;
  } while (at < size);
  return buffer.subarray(0, at);
}

function usingFile<T>(fd: number, use: (fd: number) => T): T {
  try {
    return use(fd);
  } finally {
    fs.closeSync(fd);
  }
}
