/** Reads a journal from its end backwards, a piece at a time: for those who want the latest records of a long one. */
import fs from "node:fs";
import { lastRotated } from "./journal.ts";
import { openJournal } from "./read.ts";

const PIECE_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/** Whole lines that stand together in one file. */
export interface Piece {
  bytes: Buffer;
  file: string;
  /** Of the file, which keeps it when it is rotated. */
  ino: number;
  /** Where the piece begins. */
  from: number;
}

/** The place before this byte of a piece, as text: reading can go on there later. */
export function placeIn({ ino, from }: Piece, at = 0): string {
  return `${ino}.${from + at}`;
}

/**
 * The pieces of a journal, the newest first, then those of the file before its last rotation. A last line without its newline
 * is still being written, and is left out.
 * @param before only what stands before this place; of a file that is gone by now nothing is read
 * @throws a system error when a file is there and cannot be read
 */
export function* readBack(path: string, before?: string): Generator<Piece> {
  const [wantedIno, wantedEnd = 0] = (before ?? "").split(".").map(Number);
  let isFound = before === undefined;
  const files = [() => path, () => lastRotated(path)];
  for (const nextFile of files) {
    const file = nextFile();
    const fd = file === undefined ? undefined : openJournal(file);
    if (file === undefined || fd === undefined) continue;
    try {
      const stats = fs.fstatSync(fd);
      if (!stats.isFile() || !(isFound || stats.ino === wantedIno)) continue;
      const end = isFound ? stats.size : Math.min(wantedEnd, stats.size);
      isFound = true;
      yield* piecesOf(fd, end, { file, ino: stats.ino });
    } finally {
      fs.closeSync(fd);
    }
  }
}

function* piecesOf(fd: number, end: number, of: Pick<Piece, "file" | "ino">): Generator<Piece> {
  while (end > 0) {
    const start = Math.max(0, end - PIECE_BYTES);
    const buffer = Buffer.allocUnsafe(end - start);
    const got = buffer.subarray(0, fs.readSync(fd, buffer, 0, buffer.length, start));
    const first = start === 0 ? 0 : got.indexOf(NEWLINE) + 1;
    const last = got.lastIndexOf(NEWLINE) + 1;
    // A line longer than a piece is rubbish: its bytes are passed over.
    end = first < last ? start + first : start;
    if (first < last) yield { ...of, bytes: got.subarray(first, last), from: start + first };
  }
}

/** The lines that contain this text, the last one first. */
export function* linesWith(bytes: Buffer, text: string): Generator<{ line: string; at: number }> {
  for (let hit = bytes.lastIndexOf(text); hit >= 0; ) {
    const at = bytes.lastIndexOf(NEWLINE, hit) + 1;
    const end = bytes.indexOf(NEWLINE, hit);
    yield { line: bytes.toString("utf8", at, end === -1 ? undefined : end), at };
    if (at <= 1) return;
    hit = bytes.lastIndexOf(text, at - 1);
  }
}
