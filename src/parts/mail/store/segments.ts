/**
 * The files that hold the messages of a scope: `messages.<k>.jsonl`. Messages are appended to the highest `<k>`. The first line of a
 * segment gives the number of its first message. Each further line has the next number, even if it is no message. So a number never
 * changes.
 *
 * A segment that is large enough is sealed by a line. Text after the first seal does not count. So the number of its lines is final, and
 * any process can make the next segment with the same first line.
 */
import fs from "node:fs";
import { systemCode } from "../../../core/errors.ts";
import { parseObject } from "../../../core/json-object.ts";
import { listDirForSure } from "../../../host/list-dir.ts";
import { openRegular, openToRead } from "../../../host/regular-file.ts";
import type { MailFolder } from "./mail-folder.ts";
import { readAt, readBytes, readInto } from "./read-bytes.ts";

/** A segment of at least this many bytes is sealed. A seal is never before this offset. */
export const SEGMENT_BYTES = 1024 * 1024;
export const SEAL = '{"v":1,"sealed":true}';
const SEAL_LINE = `\n${SEAL}\n`;
const TO_APPEND = fs.constants.O_RDWR | fs.constants.O_APPEND;
const NEWLINE = 0x0a;
const NAME = /^messages\.([1-9]\d{0,8})\.(jsonl|index)$/;
const FIRST_LINE_BYTES_MAX = 4096;

export interface Segment {
  k: number;
  path: string;
  /** True if it is full and has an index: see `segment-index.ts`. */
  isIndexed: boolean;
}

/** The oldest first. @throws a system error */
export function listSegments(folder: MailFolder): Segment[] {
  const segments: Segment[] = [];
  const indexed = new Set<number>();
  for (const name of listDirForSure(folder.dir)) {
    const [, number, ending] = NAME.exec(name) ?? [];
    const k = Number(number);
    if (ending === "index") indexed.add(k);
    if (ending === "jsonl") segments.push({ k, path: folder.path(name), isIndexed: false });
  }
  for (const segment of segments) segment.isIndexed = indexed.has(segment.k);
  return segments.sort((a, b) => a.k - b.k);
}

/** The segment to which messages are appended. Makes the first one. @throws ErrMailboxDir, a system error */
export function currentSegment(folder: MailFolder): Segment {
  const last = listSegments(folder).at(-1);
  if (last !== undefined) return last;
  makeSegment(folder, 1, 1);
  return currentSegment(folder);
}

export function indexPathOf(folder: MailFolder, k: number): string {
  return folder.path(`messages.${k}.index`);
}

/** Opens a segment to read and append. @throws a system error */
export function openSegment({ path }: Segment): number {
  return openRegular(path, TO_APPEND);
}

/** Makes the segment after a sealed one if it is missing. @throws a system error */
export function makeNext(folder: MailFolder, segment: Segment): void {
  const bytes = readBytes(segment.path);
  const { first, from } = readHead(bytes);
  let lines = 0;
  let at = from;
  for (; ; lines++) {
    const end = bytes.indexOf(NEWLINE, at);
    if (end === -1 || isSeal(bytes, at, end)) break;
    at = end + 1;
  }
  makeSegment(folder, segment.k + 1, first + lines);
}

/** True if a segment with this many bytes is sealed. */
export function isSealed(fd: number, size: number): boolean {
  if (size < SEGMENT_BYTES) return false;
  return readAt(fd, SEGMENT_BYTES - 1, size).includes(SEAL_LINE);
}

/** Seals a segment. Two processes may do this: the first seal counts. @throws a system error */
export function seal(fd: number): void {
  // The line before it may be torn.
  fs.writeSync(fd, SEAL_LINE);
}

/** After this, all present messages of the scope survive a power cut. @throws a system error */
export function syncMessages(folder: MailFolder): void {
  const last = listSegments(folder).at(-1);
  // A segment that has a successor was synced when it was sealed.
  if (last === undefined) return;
  const fd = openSegment(last);
  try {
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

/** @param from offset at which the search begins @returns the offset of the first seal in these bytes; -1 when there is none */
export function findSeal(bytes: Buffer, from = 0): number {
  return bytes.indexOf(SEAL_LINE, from);
}

export function isSeal(bytes: Buffer, from: number, to: number): boolean {
  return to - from === SEAL.length && bytes.toString("latin1", from, to) === SEAL;
}

/** The number of the first message of a segment, and where it begins in the file (bytes). */
export interface Head {
  first: number;
  from: number;
}

/** @param bytes the beginning of a segment */
export function readHead(bytes: Buffer): Head {
  const end = bytes.indexOf(NEWLINE);
  const head = end === -1 ? undefined : parseObject(bytes.toString("utf8", 0, end));
  const first = head?.["first"];
  // If the first line is damaged, the messages are still read, and are numbered from 1.
  return { first: typeof first === "number" ? first : 1, from: end + 1 };
}

/** Undefined when the segment was removed. */
export function headOf(segment: Segment): Head | undefined {
  const fd = tryOpen(segment);
  if (fd === undefined) return undefined;
  try {
    return readHead(readInto(Buffer.allocUnsafe(FIRST_LINE_BYTES_MAX), fd, 0));
  } finally {
    fs.closeSync(fd);
  }
}

/** Opens a segment to read. @returns undefined when retention has removed the segment since it was listed */
export function tryOpen({ path }: Segment): number | undefined {
  try {
    return openToRead(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

function makeSegment(folder: MailFolder, k: number, first: number): void {
  const { project, branch } = folder.scope;
  const head = JSON.stringify({ v: 1, first, project, branch });
  // By link: another process may make it at the same moment, with the same line.
  folder.publish(`${head}\n`, `messages.${k}.jsonl`);
}
