/** Finds the lines of one lease near the end of a journal. Recovery uses it to find out what a dead worker had done. */
import fs from "node:fs";
import { parseObject } from "../core/json-object.ts";
import { leaseOfLine, submissionOf } from "../core/names.ts";
import { NAMED, openToRead } from "../host/regular-file.ts";
import { linesWith } from "./read-back.ts";
import { lastRotated } from "./rotated.ts";

/** The last lines of a dead process are near the end. Only this many bytes are read. */
const TAIL_BYTES = 8 * 1024 * 1024;

/** With O_NONBLOCK, opening a pipe at this path does not wait for a writer. */

type Line = Record<string, unknown>;

/** Whether the end of the journal has a record of this lease whose `event` or `status` is `what`. */
export function hasRecord(path: string, lease: string, what: string): boolean {
  return someLine(readTail(path), submissionOf(lease) || lease, (line) => isOf(line, lease, what));
}

/**
 * Whether the worker with this lease has written that its run begins. A worker writes this before it calls a function.
 * @returns undefined when the journal does not reach back to the claim
 */
export function hasStarted(path: string, lease: string): boolean | undefined {
  const submission = submissionOf(lease);
  const isStart = (line: Line): boolean => isOf(line, lease, "started");
  const tail = readTail(path);
  // For a short time after a rotation, a writer may still write to the old file.
  const rotated = lastRotated(path);
  const earlier = rotated === undefined ? undefined : readTail(rotated);
  if ([tail, earlier].some((part) => someLine(part, submission, isStart))) return true;
  // A task is selected before it starts. If this file has the line of the selection, it would also have that of the start.
  const isSelection = (line: Line): boolean =>
    line["event"] === "selected" && submissionOf(leaseOfLine(line)) === submission;
  return someLine(tail, submission, isSelection) ? false : undefined;
}

function isOf(line: Line, lease: string, what: string): boolean {
  return leaseOfLine(line) === lease && (line["event"] === what || line["status"] === what);
}

/** Whether one of the lines that contain this text passes `test`. The last line is tried first. */
function someLine(tail: Buffer | undefined, text: string, test: (line: Line) => boolean): boolean {
  if (tail === undefined) return false;
  for (const { line } of linesWith(tail, [text])) {
    const record = parseObject(line);
    if (record !== undefined && test(record)) return true;
  }
  return false;
}

/** The end of a file; undefined when the file cannot be read. */
function readTail(path: string): Buffer | undefined {
  let fd: number;
  try {
    fd = openToRead(path, NAMED);
  } catch {
    return undefined;
  }
  try {
    const { size } = fs.fstatSync(fd);
    const buffer = Buffer.allocUnsafe(Math.min(size, TAIL_BYTES));
    const got = fs.readSync(fd, buffer, 0, buffer.length, size - buffer.length);
    return buffer.subarray(0, got);
  } finally {
    fs.closeSync(fd);
  }
}
