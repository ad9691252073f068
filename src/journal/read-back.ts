/** Searches a journal backwards from its end, so that the latest records of a long journal are found fast. */
import fs from "node:fs";
import { firstToRead, openJournal } from "./open-journal.ts";
import { lastRotated } from "./rotated.ts";

/** How much is read at once (bytes). */
export const PIECE_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

interface Found {
  /** Undefined after each piece, so that the caller can count pieces and stop. */
  line: string | undefined;
  file: string;
  /** Everything before this place has not been searched yet. A later search can begin here, also after a rotation. */
  place: string;
}

/**
 * Yields the complete lines that contain one of these texts, the last one first. Then it searches the last rotated file.
 * @param before search only before this place; if its file was removed, nothing is searched
 * @throws a system error when a file exists but cannot be read
 */
export function* searchBack(
  path: string,
  texts: readonly string[],
  before?: string,
): Generator<Found> {
  const [startIno, startEnd = 0] = (before ?? "").split(".").map(Number);
  let isFound = before === undefined;
  for (const nextFile of [() => path, () => lastRotated(path)]) {
    const file = nextFile();
    const fd = file === undefined ? undefined : openJournal(file);
    if (file === undefined || fd === undefined) continue;
    try {
      const stats = fs.fstatSync(fd);
      const { ino, size } = stats;
      if (!stats.isFile() || !(isFound || ino === startIno)) continue;
      let end = isFound ? size : Math.min(startEnd, size);
      isFound = true;
      const least = firstToRead(size);
      while (end > least) {
        const { bytes, from } = readPiece(fd, end);
        for (const { line, at } of linesWith(bytes, texts))
          yield { line, file, place: `${ino}.${from + at}` };
        end = from;
        yield { line: undefined, file, place: `${ino}.${end}` };
      }
    } finally {
      fs.closeSync(fd);
    }
  }
}

/** Reads complete lines that end at or before `end`. A line longer than a piece is no record and is skipped. */
function readPiece(fd: number, end: number): { bytes: Buffer; from: number } {
  const start = Math.max(0, end - PIECE_BYTES);
  const buffer = Buffer.allocUnsafe(end - start);
  const got = buffer.subarray(0, fs.readSync(fd, buffer, 0, buffer.length, start));
  const first = start === 0 ? 0 : got.indexOf(NEWLINE) + 1;
  // A last line without its newline is still being written.
  const last = got.lastIndexOf(NEWLINE) + 1;
  return first < last
    ? { bytes: got.subarray(first, last), from: start + first }
    : { bytes: got.subarray(0, 0), from: start };
}

/** The lines that contain one of these texts, the last one first. */
export function* linesWith(
  bytes: Buffer,
  texts: readonly string[],
): Generator<{ line: string; at: number }> {
  const hits = texts.map((text) => bytes.lastIndexOf(text));
  for (let hit = Math.max(...hits); hit >= 0; hit = Math.max(...hits)) {
    const at = bytes.lastIndexOf(NEWLINE, hit) + 1;
    const end = bytes.indexOf(NEWLINE, hit);
    yield { line: bytes.toString("utf8", at, end === -1 ? undefined : end), at };
    for (const [n, text] of texts.entries())
      if ((hits[n] ?? -1) >= at) hits[n] = at === 0 ? -1 : bytes.lastIndexOf(text, at - 1);
  }
}
