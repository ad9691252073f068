/** Files where programs may put what they like: a pipe keeps nobody waiting for its other end, a link leads nowhere else. */
import fs from "node:fs";
import { KV_DOCUMENT_BYTES_MAX } from "../core/limits.ts";

/** Nothing that we write is longer (bytes): a longer file would take minutes, or all memory. */
const TEXT_BYTES_MAX = 2 * KV_DOCUMENT_BYTES_MAX;

const { O_RDONLY, O_WRONLY, O_APPEND, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
const SAFELY = (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);

/** @returns a descriptor. @throws a system error: ENOENT, ELOOP (a link), EINVAL (no regular file), … */
export function openToRead(path: string): number {
  return openRegular(path, O_RDONLY);
}

/** Made when it is missing. @throws like `openToRead` */
export function openToAppend(path: string): number {
  return openRegular(path, O_WRONLY | O_APPEND | O_CREAT);
}

/** All of it as text. @throws like `openToRead`; EFBIG when it is larger than anything of ours: then it is not read */
export function readRegularText(path: string): string {
  return usingFile(openToRead(path), (fd) => {
    const { size } = fs.fstatSync(fd);
    if (size > TEXT_BYTES_MAX)
      throw Object.assign(new Error(`EFBIG: it has ${size} bytes, '${path}'`), { code: "EFBIG" });
    return fs.readFileSync(fd, "utf8");
  });
}

/** After what it holds. @throws like `openToRead` */
export function appendRegularText(path: string, text: string): void {
  usingFile(openToAppend(path), (fd) => fs.writeFileSync(fd, text));
}

/** In place of what it held. @throws like `openToRead` */
export function writeRegularText(path: string, text: string): void {
  usingFile(openRegular(path, O_WRONLY | O_CREAT | O_TRUNC), (fd) => fs.writeFileSync(fd, text));
}

function openRegular(path: string, flags: number): number {
  const fd = fs.openSync(path, flags | SAFELY, 0o600);
  if (fs.fstatSync(fd).isFile()) return fd;
  fs.closeSync(fd);
  throw Object.assign(new Error(`EINVAL: it is no regular file, '${path}'`), { code: "EINVAL" });
}

function usingFile<T>(fd: number, use: (fd: number) => T): T {
  try {
    return use(fd);
  } finally {
    fs.closeSync(fd);
  }
}
