/** Reads some lines of a log by their place in the file. The cost does not depend on the size of the log. Reads only. */
import fs from "node:fs";
import { openToRead } from "../host/regular-file.ts";

/** How much is read at most for one page (bytes). */
const PAGE_BYTES = 256 * 1024;
/** A page of a search reads at most this much (bytes). */
const SEARCH_BYTES = 8 * 1024 * 1024;
const NEWLINE = 0x0a;

export interface LogPage {
  lines: string[];
  /** Where each line begins (bytes). */
  starts: number[];
  /** Where the page ends, and the size of the file (bytes). */
  to: number;
  size: number;
}

const EMPTY: LogPage = { lines: [], starts: [], to: 0, size: 0 };

/**
 * The last `count` lines before `to`, or before the end of the file when `to` is undefined. A missing file has no lines.
 * @throws a system error
 */
export function readLogPage(path: string, to: number | undefined, count: number): LogPage {
  return withFile(path, EMPTY, (fd, size) => {
    const end = Math.min(to ?? size, size);
    const from = Math.max(0, end - PAGE_BYTES);
    const bytes = readBytes(fd, from, end);
    const lines: string[] = [];
    const starts: number[] = [];
    // The newline that ends the page does not begin another line.
    let lineEnd = bytes.at(-1) === NEWLINE ? bytes.length - 1 : bytes.length;
    while (lines.length < count && lineEnd >= 0 && bytes.length > 0) {
      const begin = lineEnd === 0 ? 0 : bytes.lastIndexOf(NEWLINE, lineEnd - 1) + 1;
      // A line that began before this piece is shown from the start of the piece.
      lines.push(bytes.toString("utf8", begin, lineEnd));
      starts.push(from + begin);
      if (begin === 0) break;
      lineEnd = begin - 1;
    }
    return { lines: lines.reverse(), starts: starts.reverse(), to: end, size };
  });
}

/** Where the `count` lines after `from` end; undefined when the file ends before that. @throws a system error */
export function placeAfter(path: string, from: number, count: number): number | undefined {
  return withFile(path, undefined, (fd, size) => {
    const bytes = readBytes(fd, from, Math.min(size, from + PAGE_BYTES));
    let at = 0;
    for (let n = 0; n < count; n++) {
      const end = bytes.indexOf(NEWLINE, at);
      if (end === -1) return from + bytes.length >= size ? undefined : from + bytes.length;
      at = end + 1;
    }
    return from + at >= size ? undefined : from + at;
  });
}

/**
 * Where the next line that is meant ends, before or after a place; undefined when it is not in the next 8 MiB.
 * @param isMeant gets each line as it stands in the file
 * @throws a system error
 */
export function findInLog(
  path: string,
  isMeant: (line: string) => boolean,
  from: number,
  direction: "back" | "on",
): number | undefined {
  return withFile(path, undefined, (fd, size) => {
    const isBack = direction === "back";
    const begin = isBack ? Math.max(0, from - SEARCH_BYTES) : from;
    const end = isBack ? Math.min(from, size) : Math.min(size, from + SEARCH_BYTES);
    const bytes = readBytes(fd, begin, end);
    let at = isBack ? beginOfLine(bytes, bytes.length) : 0;
    while (at >= 0 && at < bytes.length) {
      const newline = bytes.indexOf(NEWLINE, at);
      const lineEnd = newline === -1 ? bytes.length : newline;
      if (isMeant(bytes.toString("utf8", at, lineEnd)))
        return newline === -1 ? end : begin + newline + 1;
      at = isBack ? beginOfLine(bytes, at) : lineEnd + 1;
    }
    return undefined;
  });
}

/** Where the last line before a place begins; -1 when there is none. */
function beginOfLine(bytes: Buffer, before: number): number {
  return before === 0 ? -1 : before === 1 ? 0 : bytes.lastIndexOf(NEWLINE, before - 2) + 1;
}

function readBytes(fd: number, from: number, to: number): Buffer {
  const buffer = Buffer.alloc(Math.max(0, to - from));
  return buffer.subarray(0, fs.readSync(fd, buffer, 0, buffer.length, from));
}

function withFile<T>(path: string, missing: T, use: (fd: number, size: number) => T): T {
  if (fs.lstatSync(path, { throwIfNoEntry: false }) === undefined) return missing;
  const fd = openToRead(path);
  try {
    return use(fd, fs.fstatSync(fd).size);
  } finally {
    fs.closeSync(fd);
  }
}
