/** Reads the lines of one segment, in pieces, up to its seal. */
import fs from "node:fs";
import { type LineFilter, lineTest } from "./line-filter.ts";
import type { Checked } from "./message.ts";
import { readInto } from "./read-bytes.ts";
import { isSeal, type Segment, tryOpen } from "./segments.ts";

/** A complete line. Its bytes are valid until the next line is requested. */
export interface Line {
  n: number;
  bytes: Buffer;
  place: Checked;
}

/** The beginning of a line. */
export interface Place {
  segment: Segment;
  offset: number;
  n: number;
}

/** How much is read at once (bytes); more than any line of ours. */
const PIECE_BYTES = 256 * 1024;
/** How much is read at once if only some lines are wanted (bytes): the next wanted line may be near. */
const SPAN_BYTES = 4 * 1024;
const NEWLINE = 0x0a;

/**
 * Yields the lines after this place that pass the filter, and undefined after each piece that was read. Moves the place along.
 * @param buffer from `newBuffer`; no other code may use it during the walk
 * @returns true when no more lines can come: the segment is sealed, or was removed
 */
export function* linesOf(
  place: Place,
  filter: LineFilter | undefined,
  buffer: Buffer,
): Generator<Line | undefined, boolean> {
  const fd = tryOpen(place.segment);
  // Retention removed the segment, because all readers have read it.
  if (fd === undefined) return true;
  try {
    for (;;) {
      const bytes = readInto(buffer, fd, place.offset);
      const passes = lineTest(bytes, filter);
      let at = 0;
      for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, at)) {
        if (isSeal(bytes, at, end)) return true;
        const from = at;
        at = end + 1;
        const line = passed(place, at - from);
        if (passes(from, end)) yield { ...line, bytes: bytes.subarray(from, end) };
      }
      yield undefined;
      if (at > 0) continue;
      const length = bytes.length < PIECE_BYTES ? undefined : lengthOfLine(fd, place.offset);
      if (length === undefined) return false;
      yield { ...passed(place, length), bytes };
    }
  } finally {
    fs.closeSync(fd);
  }
}

/** The number, offset and length of a line (bytes). The length does not include the line end. */
export interface LinePlace {
  n: number;
  offset: number;
  length: number;
}

/**
 * Yields some lines of a full segment after this place, and undefined after each piece that was read. Moves the place along.
 * @param lines in order
 * @param after lines with a number up to this one are left out
 */
export function* linesAt(
  place: Place,
  { lines, nextN, end }: { lines: Iterable<LinePlace>; nextN: number; end: number },
  after: number,
): Generator<Line | undefined> {
  const { segment } = place;
  const from = Math.max(place.n, after + 1);
  const fd = tryOpen(segment);
  if (fd === undefined) return;
  try {
    // One buffer serves all reads: new ones would make work for the garbage collector.
    let span: Buffer = Buffer.allocUnsafe(SPAN_BYTES);
    let bytes = span.subarray(0, 0);
    let start = 0;
    for (const { n, offset, length } of lines) {
      if (n < from) continue;
      if (offset + length > start + bytes.length) {
        start = offset;
        if (length > span.length) span = Buffer.allocUnsafe(length);
        bytes = readInto(span, fd, start);
        yield undefined;
      }
      Object.assign(place, { n: n + 1, offset: offset + length + 1 });
      const line = bytes.subarray(offset - start, offset - start + length);
      yield { n, bytes: line, place: [segment.k, offset] };
    }
    Object.assign(place, { n: nextN, offset: end });
  } finally {
    fs.closeSync(fd);
  }
}

export function newBuffer(): Buffer {
  return Buffer.allocUnsafeSlow(PIECE_BYTES);
}

/** Moves the place to the next line. */
function passed(place: Place, length: number): Omit<Line, "bytes"> {
  const line = { n: place.n, place: [place.segment.k, place.offset] as const };
  place.n++;
  place.offset += length;
  return line;
}

/** The length of a line that is longer than a piece: a power cut may leave many zeros. @returns undefined when the line has no end yet */
function lengthOfLine(fd: number, from: number): number | undefined {
  const buffer = newBuffer();
  for (let offset = from; ; offset += PIECE_BYTES) {
    const bytes = readInto(buffer, fd, offset);
    const end = bytes.indexOf(NEWLINE);
    if (end !== -1) return offset + end + 1 - from;
    if (bytes.length < PIECE_BYTES) return undefined;
  }
}
