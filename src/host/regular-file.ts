/** Reads and writes files in places where programs may put anything: a pipe does not block us, and a link is not followed. */
import fs from "node:fs";
import { KV_DOCUMENT_BYTES_MAX } from "../core/limits.ts";

/** Our files are never larger than this (bytes). Reading a larger one could take minutes, or all memory. */
const TEXT_BYTES_MAX = 2 * KV_DOCUMENT_BYTES_MAX;

const { O_RDONLY, O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
const SAFELY = (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);

/** @returns a descriptor. @throws a system error: ENOENT, ELOOP (a link), EINVAL (no regular file), … */
export function openToRead(path: string): number {
  return openRegular(path, O_RDONLY);
}

/** Makes the file when it is missing. @throws like `openToRead` */
export function openToAppend(path: string): number {
  return openRegular(path, O_WRONLY | O_APPEND | O_CREAT);
}

/** @throws like `openToRead`; EFBIG when it is larger than any file of ours and is not read */
export function readRegularText(path: string): string {
  return usingFile(openToRead(path), (fd) => {
    const { size } = fs.fstatSync(fd);
    if (size > TEXT_BYTES_MAX)
      throw Object.assign(new Error(`EFBIG: it has ${size} bytes, '${path}'`), { code: "EFBIG" });
    return fs.readFileSync(fd, "utf8");
  });
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

/** @throws like `openToRead` */
export function appendRegularText(path: string, text: string): void {
  usingFile(openToAppend(path), (fd) => fs.writeFileSync(fd, text));
}

/** Replaces the text of the file. @throws like `openToRead` */
export function writeRegularText(path: string, text: string): void {
  usingFile(openRegular(path, O_WRONLY | O_CREAT), (fd) => {
    // Do not use O_TRUNC: the checks after opening may refuse the file.
    fs.ftruncateSync(fd);
    fs.writeFileSync(fd, text);
  });
}

/** Removes the existing file and writes a new one. @throws a system error */
export function writeAnew(path: string, text: string): void {
  fs.rmSync(path, { force: true });
  usingFile(openRegular(path, O_WRONLY | O_CREAT | O_EXCL), (fd) => fs.writeFileSync(fd, text));
}

/** Removes a link that is in the place of a file of ours. The target of the link stays. @throws a system error */
export function dropLink(path: string): void {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stats !== undefined && (stats.isSymbolicLink() || stats.nlink > 1))
    fs.rmSync(path, { force: true });
}

function openRegular(path: string, flags: number): number {
  const fd = fs.openSync(path, flags | SAFELY, 0o600);
  const stats = fs.fstatSync(fd);
  // A file with a second name may belong to another user.
  const isShared = stats.nlink > 1 && flags !== O_RDONLY;
  if (stats.isFile() && !isShared) return fd;
  fs.closeSync(fd);
  const why = stats.isFile() ? "it has a second name" : "it is not a regular file";
  throw Object.assign(new Error(`EINVAL: ${why}, '${path}'`), { code: "EINVAL" });
}

function usingFile<T>(fd: number, use: (fd: number) => T): T {
  try {
    return use(fd);
  } finally {
    fs.closeSync(fd);
  }
}
