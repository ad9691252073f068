/** Reads a file line by line while a program writes it. After a crash, everything that was written before can be read again. */
import fs from "node:fs";
import { openToRead } from "../../host/regular-file.ts";

const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
/** Of a line longer than this, only the beginning is passed on (bytes). */
const LINE_BYTES_MAX = 64 * 1024 * 1024;
const HEAD_BYTES = 64 * 1024;

/** @param end where the line ends in the file, with its newline (bytes) */
type OnLine = (line: string, end: number) => void;

export class LineTail {
  private readonly buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  private fd: number | undefined;
  private offset: number;
  /** Pieces of a line whose end was not written yet. */
  private pieces: Buffer[] = [];
  private piecesBytes = 0;

  /** @param from where reading begins (bytes) */
  constructor(
    private readonly path: string,
    from: number,
    private readonly onLine: OnLine,
  ) {
    this.offset = from;
  }

  /** Reads what was written since the last call. @returns how many bytes were read; 0 while there is no file */
  read(bytesMax = Number.POSITIVE_INFINITY): number {
    this.fd ??= this.open();
    if (this.fd === undefined) return 0;
    let total = 0;
    // A program may write faster than this reads: the rest comes with the next call.
    const wanted = Math.min(bytesMax, fs.fstatSync(this.fd).size - this.offset);
    for (;;) {
      if (total >= wanted) return total;
      const got = fs.readSync(this.fd, this.buffer, 0, CHUNK_BYTES, this.offset);
      if (got === 0) return total;
      this.offset += got;
      total += got;
      this.take(this.buffer.subarray(0, got));
    }
  }

  /** Called when the program has ended. Text after the last newline counts as a line. */
  end(): void {
    this.read();
    if (this.piecesBytes > 0) this.tell(this.offset);
    if (this.fd !== undefined) fs.closeSync(this.fd);
    this.fd = undefined;
  }

  private open(): number | undefined {
    try {
      return openToRead(this.path);
    } catch {
      return undefined;
    }
  }

  private take(bytes: Buffer): void {
    const start = this.offset - bytes.length;
    let from = 0;
    for (;;) {
      const end = bytes.indexOf(NEWLINE, from);
      if (end === -1) break;
      this.keep(bytes.subarray(from, end));
      this.tell(start + end + 1);
      from = end + 1;
    }
    // Copy the piece, because the buffer is used again.
    if (from < bytes.length) this.keep(Buffer.from(bytes.subarray(from)));
  }

  private keep(piece: Buffer): void {
    if (this.piecesBytes <= LINE_BYTES_MAX) this.pieces.push(piece);
    this.piecesBytes += piece.length;
  }

  private tell(end: number): void {
    const isTooLong = this.piecesBytes > LINE_BYTES_MAX;
    const [first = Buffer.alloc(0)] = this.pieces;
    const bytes = this.pieces.length === 1 ? first : Buffer.concat(this.pieces);
    this.pieces = [];
    this.piecesBytes = 0;
    const text = (isTooLong ? bytes.subarray(0, HEAD_BYTES) : bytes).toString("utf8");
    if (text.trim() !== "") this.onLine(text, end);
  }
}
