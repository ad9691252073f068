/** Finds the lines of one lease near the end of a journal. Recovery asks which lines are written, and what a dead worker had begun. */
import fs from "node:fs";
import { parseObject } from "../core/json-object.ts";
import { leaseOfLine, submissionOf } from "../core/names.ts";
import { lastRotated } from "./journal.ts";
import { linesWith } from "./read-back.ts";

/** The last lines of a dead process stand near the end. Only so many bytes of it are read. */
const TAIL_BYTES = 8 * 1024 * 1024;

/** O_NONBLOCK: opening a pipe in its place must not wait for a writer. */
const TO_READ = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0);

type Line = Record<string, unknown>;

/** True when a record of this lease with `event` or `status` equal to `what` stands in the journal's tail. */
export function hasRecord(path: string, lease: string, what: string): boolean {
  return someLine(readTail(path), submissionOf(lease) || lease, (line) => isOf(line, lease, what));
}

/**
 * Whether the worker with this lease has written that its run begins. It writes that before it calls a function.
 * @returns undefined when the journal does not reach back to before the claim
 */
export function hasStarted(path: string, lease: string): boolean | undefined {
  const submission = submissionOf(lease);
  const isStart = (line: Line): boolean => isOf(line, lease, "started");
  const tail = readTail(path);
  // After a rotation a writer may write to the old file for a moment.
  const rotated = lastRotated(path);
  const earlier = rotated === undefined ? undefined : readTail(rotated);
  if ([tail, earlier].some((part) => someLine(part, submission, isStart))) return true;
  // A task is selected before it is claimed. If this file holds that line, it would hold a later one, too.
  const isSelection = (line: Line): boolean =>
    line["event"] === "selected" && submissionOf(leaseOfLine(line)) === submission;
  return someLine(tail, submission, isSelection) ? false : undefined;
}

function isOf(line: Line, lease: string, what: string): boolean {
  return leaseOfLine(line) === lease && (line["event"] === what || line["status"] === what);
}

/** Whether `test` holds for one of the lines that contain this text, the last line first. */
function someLine(tail: Buffer | undefined, text: string, test: (line: Line) => boolean): boolean {
  if (tail === undefined) return false;
  for (const { line } of linesWith(tail, [text])) {
    const record = parseObject(line);
    if (record !== undefined && test(record)) return true;
  }
  return false;
}

/** Undefined when it cannot be read. */
function readTail(path: string): Buffer | undefined {
  let fd: number;
  try {
    fd = fs.openSync(path, TO_READ);
  } catch {
    return undefined;
  }
  try {
    const stats = fs.fstatSync(fd);
    if (!stats.isFile()) return undefined;
    const { size } = stats;
    const buffer = Buffer.allocUnsafe(Math.min(size, TAIL_BYTES));
    const got = fs.readSync(fd, buffer, 0, buffer.length, size - buffer.length);
    return buffer.subarray(0, got);
  } finally {
    fs.closeSync(fd);
  }
}
