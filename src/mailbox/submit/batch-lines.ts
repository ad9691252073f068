/**
 * Reads the lines of a batch, or of its results, in large pieces. A file of gigabytes needs the memory of one piece, and each call
 * reads at most one piece.
 */
import { isUtf8 } from "node:buffer";
import fs from "node:fs";
import { ErrInvalidTask, systemCode } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { openToRead } from "../../host/regular-file.ts";
import { factsOf } from "../files/node-storage.ts";
import type { FileFacts } from "../files/storage.ts";

const PIECE_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

export interface Line {
  /** Counted from 1. */
  number: number;
  /** The line without its line break; undefined when the line is too long or not UTF-8. */
  text: string | undefined;
  /** Why the line has no text. */
  fault: string;
}

export interface LineReaderOptions {
  /** False: text after the last line break is ignored, because it may be incomplete. Default true. */
  takesTail?: boolean;
  /** Says why a file with these facts must not be read; undefined when it may be read. */
  explainBad?: (facts: FileFacts) => string | undefined;
}

const NO_BYTES = Buffer.alloc(0);

function openBatch(path: string): number {
  try {
    return openToRead(path);
  } catch (error) {
    if (systemCode(error) !== "EINVAL") throw error;
    throw new ErrInvalidTask("not a regular file", { path, phase: "claim", cause: error });
  }
}

export class LineReader {
  /** Size of the file when it was opened (bytes). */
  readonly size: number;
  /** How far the file has been read (bytes), to within one piece. */
  position = 0;
  private readonly fd: number;
  private readonly takesTail: boolean;
  private readonly buffer = Buffer.allocUnsafe(PIECE_BYTES);
  /** Whole lines as text, without the last line break. `pieceAt` says how many characters of it were given out. */
  private piece = "";
  private pieceAt = -1;
  private pieceBytes = 0;
  /** Lines of a piece that is not plain text as a whole: each line is checked alone. `oddAt` says how many were given out. */
  private odd: (Buffer | undefined)[] = [];
  private oddAt = 0;
  /** Bytes at the beginning of the buffer that belong to a line whose end has not been read yet. */
  private kept = 0;
  /** The earlier parts of that line, which did not fit into the buffer. A line that is too long is kept only in part. */
  private rest: Buffer[] = [];
  private restBytes = 0;
  private number = 0;
  private isOpen = true;

  /** @throws ErrInvalidTask when the path is not a regular file or `explainBad` refuses it; a system error when it cannot be read */
  constructor(path: string, options: LineReaderOptions = {}) {
    this.takesTail = options.takesTail !== false;
    this.fd = openBatch(path);
    const facts = factsOf(fs.fstatSync(this.fd));
    this.size = facts.size;
    const fault = options.explainBad?.(facts);
    if (fault !== undefined) {
      this.close();
      throw new ErrInvalidTask(fault, { path, phase: "claim" });
    }
  }

  /**
   * The next line. Empty lines are counted, and most of them are skipped. "later": the piece that was read holds no whole line, and
   * the caller may do something else before it asks again. Undefined at the end.
   * @throws a system error when the disk cannot be read
   */
  next(): Line | "later" | undefined {
    if (this.pieceAt < 0) {
      if (this.oddAt < this.odd.length) return this.nextOdd();
      return this.isOpen && this.read() ? "later" : undefined;
    }
    let from = this.pieceAt;
    while (this.piece.charCodeAt(from) === NEWLINE) from++;
    this.number += from - this.pieceAt;
    const to = this.piece.indexOf("\n", from);
    this.pieceAt = to === -1 ? -1 : to + 1;
    const text = this.piece.slice(from, to === -1 ? undefined : to);
    return { number: ++this.number, text, fault: "" };
  }

  close(): void {
    if (this.isOpen) fs.closeSync(this.fd);
    this.isOpen = false;
  }

  /**
   * How far lines were given out (bytes). Inside a piece this is estimated from characters or lines, which is good enough for a
   * progress bar. Without the estimate, a batch that fits into one piece would look finished after its first line.
   */
  get taken(): number {
    const isInPiece = this.pieceAt >= 0;
    const left = isInPiece
      ? 1 - this.pieceAt / Math.max(1, this.piece.length)
      : 1 - this.oddAt / Math.max(1, this.odd.length);
    const isGivenOut = !isInPiece && this.oddAt >= this.odd.length;
    const inHand = isGivenOut ? 0 : Math.round(left * this.pieceBytes);
    return Math.max(0, this.position - this.kept - this.restBytes - inHand);
  }

  /** Reads one piece, which may hold whole lines. False at the end. */
  private read(): boolean {
    const { buffer, kept } = this;
    const got = fs.readSync(this.fd, buffer, kept, PIECE_BYTES - kept, this.position);
    this.position += got;
    const filled = kept + got;
    if (got === 0) {
      this.close();
      if ((filled === 0 && this.restBytes === 0) || !this.takesTail) return false;
      this.kept = 0;
      this.takeLines(buffer.subarray(0, filled));
      return true;
    }
    const end = buffer.subarray(0, filled).lastIndexOf(NEWLINE);
    if (end !== -1) {
      this.takeLines(buffer.subarray(0, end));
      buffer.copyWithin(0, end + 1, filled);
      this.kept = filled - end - 1;
      return true;
    }
    this.kept = filled;
    if (filled === PIECE_BYTES) this.setAside();
    return true;
  }

  /** Keeps the part of a line that is longer than the buffer. When the line is already too long, only its beginning is kept. */
  private setAside(): void {
    this.restBytes += this.kept;
    if (this.restBytes <= TASK_BYTES_MAX + PIECE_BYTES)
      this.rest.push(Buffer.from(this.buffer.subarray(0, this.kept)));
    this.kept = 0;
  }

  /** @param bytes of the buffer: whole lines. The parts in `rest` are the beginning of the first line */
  private takeLines(bytes: Buffer): void {
    const isCut = this.restBytes > TASK_BYTES_MAX;
    let whole = this.rest.length === 0 ? bytes : Buffer.concat([...this.rest, bytes]);
    this.rest = [];
    this.restBytes = 0;
    this.pieceBytes = whole.length;
    if (this.number === 0 && isMarked(whole)) whole = whole.subarray(3);
    if (!isCut && whole.length <= TASK_BYTES_MAX && isUtf8(whole)) {
      this.piece = whole.toString("utf8");
      this.pieceAt = 0;
      return;
    }
    const copy = Buffer.from(whole);
    this.odd = [];
    this.oddAt = 0;
    for (let from = 0; from <= copy.length; ) {
      const at = copy.indexOf(NEWLINE, from);
      const to = at === -1 ? copy.length : at;
      this.odd.push(copy.subarray(from, to));
      from = to + 1;
    }
  }

  private nextOdd(): Line {
    const bytes = this.odd[this.oddAt++] ?? NO_BYTES;
    const number = ++this.number;
    const isTooLong = bytes.length > TASK_BYTES_MAX;
    if (!isTooLong && isUtf8(bytes)) return { number, text: bytes.toString("utf8"), fault: "" };
    const fault = isTooLong
      ? `the line is longer than ${TASK_BYTES_MAX} bytes`
      : "the line is not valid UTF-8";
    return { number, text: undefined, fault };
  }
}

/** True when the line is empty or holds only white space. */
export function isBlank(text: string): boolean {
  // Most lines begin with a brace and need no second check.
  return text.charCodeAt(0) !== 0x7b && text.trim() === "";
}

function isMarked(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}
