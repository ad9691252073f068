/** Reads parts of files. */
import fs from "node:fs";
import { openToRead } from "../../../host/regular-file.ts";

/** Reads a whole file. @throws a system error, ENOENT when the file was removed */
export function readBytes(path: string): Buffer {
  const fd = openToRead(path);
  try {
    return readAt(fd, 0, fs.fstatSync(fd).size);
  } finally {
    fs.closeSync(fd);
  }
}

/** Reads the bytes between two offsets; fewer if the file ends earlier. */
export function readAt(fd: number, from: number, to: number): Buffer {
  return readInto(Buffer.allocUnsafe(Math.max(0, to - from)), fd, from);
}

/** Fills the buffer; reads fewer bytes if the file ends earlier. @returns the part of the buffer that was filled */
export function readInto(buffer: Buffer, fd: number, from: number): Buffer {
  let got = 0;
  while (got < buffer.length) {
    const count = fs.readSync(fd, buffer, got, buffer.length - got, from + got);
    if (count === 0) break;
    got += count;
  }
  return buffer.subarray(0, got);
}
