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
/** How a shell names a pipe that it has opened for us. */
const OWN_DESCRIPTOR = /^\/(?:dev|proc\/self)\/fd\/(\d{1,9})$/;

/** Bytes for a name that may not be UTF-8. */
type FilePath = string | Buffer;

export interface Reading {
  /** True: a person named the file, so it may be a link. */
  isNamed?: boolean;
  /** A larger file is not read. Default: the largest file of ours. */
  bytesMax?: number;
}
/** The door for what a person names. */
export const NAMED: Reading = { isNamed: true };

/** What `lookInto` found. */
interface Looked {
  stats: fs.Stats;
  /**
   * What it held when it was opened; one byte more when it has grown since. Undefined when it is not a regular file, or too large.
   */
  bytes: Buffer | undefined;
}

/** What the path leads to; undefined when it leads to nothing. @throws a system error when that cannot be known, such as EACCES */
export function statOf(path: FilePath): fs.Stats | undefined {
  try {
    return fs.statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // A file where a folder should be, or a circle of links.
    if (["ENOTDIR", "ELOOP"].includes(systemCode(error))) return undefined;
    throw error;
  }
}

/** Like `statOf`; undefined also when it cannot be known. */
export function tryStatOf(path: FilePath): fs.Stats | undefined {
  try {
    return statOf(path);
  } catch {
    return undefined;
  }
}

/** The same with times of nanoseconds. */
export function exactStatOf(path: FilePath): fs.BigIntStats | undefined {
  return fs.statSync(path, { bigint: true, throwIfNoEntry: false });
}

/** @returns a descriptor. @throws a system error: ENOENT, ELOOP (a link), EINVAL (no regular file), … */
export function openRegular(path: FilePath, flags: number, reading: Reading = {}): number {
  return openIt(path, flags, reading, false);
}

/** @returns a descriptor. @throws like `openRegular` */
export function openToRead(path: FilePath, reading: Reading = {}): number {
  return openRegular(path, O_RDONLY, reading);
}

/** Makes the file when it is missing. @throws like `openRegular`; EINVAL when a file that no person named has a second name */
export function openToAppend(path: FilePath, reading: Reading = {}): number {
  return openIt(path, O_WRONLY | O_APPEND | O_CREAT, reading, reading.isNamed !== true);
}

/** @throws a system error; EEXIST when anything has the name */
export function openNew(path: FilePath, mode = 0o600): number {
  return fs.openSync(path, O_WRONLY | O_CREAT | O_EXCL, mode);
}

/** Opens a file or directory that is only synced. @throws a system error */
export function openToSync(path: FilePath): number {
  return fs.openSync(path, O_RDONLY | WITHOUT_WAITING);
}

/** The text of an open file from this byte on. The stream closes the file. */
export function streamOf(fd: number, start?: number): fs.ReadStream {
  return fs.createReadStream("", {
    fd,
    ...(start === undefined ? {} : { start }),
    highWaterMark: 2 ** 20,
  });
}

/**
 * Opens the input that a person gives a command. A pipe of the shell, `<(…)` or /dev/stdin, is one of our descriptors and may be read;
 * the person waits for its writer.
 * @throws like `openRegular`
 */
export function openInput(path: string): number {
  const [, number = path === "/dev/stdin" ? "0" : undefined] = OWN_DESCRIPTOR.exec(path) ?? [];
  return number === undefined ? openToRead(path, NAMED) : Number(number);
}

/** @throws like `openInput`; EFBIG when a file has more than `bytesMax` */
export function readInput(path: string, bytesMax: number): Buffer {
  return usingFile(openInput(path), (fd) => {
    const { size } = fs.fstatSync(fd);
    if (size > bytesMax) throw tooLarge(path, size, bytesMax);
    return fs.readFileSync(fd);
  });
}

/** Reads a regular file, and tells what else has the name. @throws a system error when nothing has it, or it cannot be opened */
export function lookInto(path: FilePath, reading: Reading = {}): Looked {
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
export function readRegular(path: FilePath, reading: Reading = {}): Buffer {
  const { stats, bytes } = lookInto(path, reading);
  if (bytes !== undefined) return bytes.subarray(0, stats.size);
  if (!stats.isFile()) throw notRegular(path, stats);
  throw tooLarge(path, stats.size, bytesMaxOf(reading));
}

/** @throws like `readRegular` */
export function readRegularText(path: FilePath, reading: Reading = {}): string {
  return readRegular(path, reading).toString("utf8");
}

/** The text of the file; undefined when it cannot be read. */
export function tryReadText(path: FilePath, reading: Reading = {}): string | undefined {
  try {
    return readRegularText(path, reading);
  } catch {
    return undefined;
  }
}

/** The end of a file that a program writes, as text; "" when it cannot be read. @param bytesMax reads at most this much */
export function readEnd(path: FilePath, bytesMax: number, reading: Reading = {}): string {
  try {
    return usingFile(openToRead(path, reading), (fd) => {
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
export function appendRegularText(path: FilePath, text: string | Uint8Array): void {
  usingFile(openToAppend(path), (fd) => fs.writeFileSync(fd, text));
}

/** Replaces the text of the file. @throws like `openToRead` */
export function writeRegularText(path: FilePath, text: string, isDurable = false): void {
  usingFile(openIt(path, O_WRONLY | O_CREAT, {}, true), (fd) => {
    // Do not use O_TRUNC: the checks after opening may refuse the file.
    fs.ftruncateSync(fd);
    fs.writeFileSync(fd, text);
    if (isDurable) fs.fsyncSync(fd);
  });
}

interface Writing {
  /** Default: 0600. */
  mode?: number;
  /** True: it survives a power cut, but its name may not. */
  isDurable?: boolean;
}

/** Writes a new file. @throws a system error; EEXIST when anything has the name */
export function writeNew(path: FilePath, data: string | Uint8Array, writing: Writing = {}): void {
  usingFile(openNew(path, writing.mode), (fd) => {
    fs.writeFileSync(fd, data);
    if (writing.isDurable === true) fs.fsyncSync(fd);
  });
}

/** The same, durable, and without keeping this thread from other work. */
export async function writeNewLater(path: FilePath, data: string): Promise<void> {
  await fs.promises.writeFile(path, data, { flag: "wx", mode: 0o600, flush: true });
}

/** Removes the existing file and writes a new one. @throws a system error */
export function writeAnew(path: FilePath, data: string | Uint8Array, writing: Writing = {}): void {
  fs.rmSync(path, { force: true });
  writeNew(path, data, writing);
}

/** Removes a link that is in the place of a file of ours. The target of the link stays. @throws a system error */
export function dropLink(path: FilePath): void {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stats !== undefined && (stats.isSymbolicLink() || stats.nlink > 1))
    fs.rmSync(path, { force: true });
}

/** Opens without updating the access time: nothing reads it, and each update would be one more disk write. */
function openForReading(path: FilePath, isNamed: boolean): number {
  const flags = O_RDONLY | WITHOUT_WAITING | (isNamed === true ? 0 : O_NOFOLLOW);
  try {
    return fs.openSync(path, flags | O_NOATIME);
  } catch (error) {
    // Only the owner of a file may open it with this flag.
    if (systemCode(error) !== "EPERM") throw error;
    return fs.openSync(path, flags);
  }
}

/** @param isOurs true: it must not have a second name, because it may then belong to another user */
function openIt(path: FilePath, flags: number, { isNamed }: Reading, isOurs: boolean): number {
  const fd = fs.openSync(
    path,
    flags | WITHOUT_WAITING | (isNamed === true ? 0 : O_NOFOLLOW),
    0o600,
  );
  const stats = fs.fstatSync(fd);
  if (stats.isFile() && !(isOurs && stats.nlink > 1)) return fd;
  fs.closeSync(fd);
  throw stats.isFile() ? fault("EINVAL", "it has a second name", path) : notRegular(path, stats);
}

function notRegular(path: FilePath, stats: fs.Stats): Error {
  const what = stats.isSymbolicLink() ? "a link, which is not followed" : "not a regular file";
  return fault("EINVAL", `it is ${what}`, path);
}

function tooLarge(path: FilePath, size: number, bytesMax: number): Error {
  return fault("EFBIG", `it has ${size} bytes, more than the limit of ${bytesMax}`, path);
}

const bytesMaxOf = ({ bytesMax = TEXT_BYTES_MAX }: Reading): number => bytesMax;

function fault(code: string, what: string, path: FilePath): Error {
  return Object.assign(new Error(`${code}: ${what}, '${String(path)}'`), {
    code,
    path: String(path),
  });
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
