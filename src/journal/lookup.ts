/** Looks for lines of one lease near the end of a journal. For recovery: what is told already, and what a dead worker had begun. */
import fs from "node:fs";
import { parseObject } from "../core/json-object.ts";
import { leaseOfLine, submissionOf } from "../core/names.ts";
import { lastRotated } from "./journal.ts";

/** What a dead process wrote last is near the end; older lines are not looked at (bytes). */
const TAIL_BYTES = 8 * 1024 * 1024;

/** A pipe in its place does not keep us waiting for a writer. */
const TO_READ = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0);

type Line = Record<string, unknown>;

/** True when a record of this lease with `event` or `status` equal to `what` stands in the journal's tail. */
export function hasRecord(path: string, lease: string, what: string): boolean {
  return someLine(readTail(path), submissionOf(lease) || lease, (line) => isOf(line, lease, what));
}

/**
 * Whether the worker that had this lease has told that its run begins, which it does before it calls a function.
 * @returns undefined when that cannot be said: the journal does not tell what was there before the claim
 */
export function hasStarted(path: string, lease: string): boolean | undefined {
  const submission = submissionOf(lease);
  const isStart = (line: Line): boolean => isOf(line, lease, "started");
  const tail = readTail(path);
  // A writer goes on for a moment in a file that was rotated away.
  const rotated = lastRotated(path);
  const earlier = rotated === undefined ? undefined : readTail(rotated);
  if ([tail, earlier].some((part) => someLine(part, submission, isStart))) return true;
  // Before anything is claimed it is selected: where that line stands, in this very file, later ones would stand, too.
  const isSelection = (line: Line): boolean =>
    line["event"] === "selected" && submissionOf(leaseOfLine(line)) === submission;
  return someLine(tail, submission, isSelection) ? false : undefined;
}

function isOf(line: Line, lease: string, what: string): boolean {
  return leaseOfLine(line) === lease && (line["event"] === what || line["status"] === what);
}

/** Whether `test` holds for one of the lines that hold this text; the last one is asked first. */
function someLine(tail: Buffer | undefined, text: string, test: (line: Line) => boolean): boolean {
  if (tail === undefined) return false;
  for (let at = tail.lastIndexOf(text); at >= 0; ) {
    const from = tail.lastIndexOf("\n", at) + 1;
    const to = tail.indexOf("\n", at);
    const line = parseObject(tail.toString("utf8", from, to === -1 ? undefined : to));
    if (line !== undefined && test(line)) return true;
    if (from <= 1) return false;
    at = tail.lastIndexOf(text, from - 1);
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
