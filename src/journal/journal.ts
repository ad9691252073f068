/**
 * Writes an append-only JSONL file, to which several processes append. No process waits for it: when the disk is full, records
 * stay in memory for later and the work goes on.
 */
import fs from "node:fs";
import { dirname } from "node:path";
import { systemCode } from "../core/errors.ts";
import { JOURNAL_BUFFER_BYTES_MAX, JOURNAL_RECORD_BYTES_MAX } from "../core/limits.ts";
import { NAMED, openRegular, statOf } from "../host/regular-file.ts";

const TO_APPEND = fs.constants.O_RDWR | fs.constants.O_APPEND | fs.constants.O_CREAT;
const NEWLINE = 0x0a;
/** One UTF-16 code unit takes at most this many bytes in UTF-8. */
const CHAR_BYTES_MAX = 3;
/** A writer checks this often whether its file was rotated (ms). */
const RECHECK_MS = 1000;
/** A last line without a newline counts as torn after so many checks without a change. The time between them is below (ms). */
const SAME_LOOKS = 4;
const LOOK_AGAIN_MS = 0.5;
/** It counts as torn, too, when it still grows after so many checks: no writer of ours takes so long for a line. */
const LOOKS_MAX = 20;
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/** The bytes that are about to be written. All journals share this buffer: a write ends before the next one begins. */
const BYTES = Buffer.allocUnsafe(JOURNAL_RECORD_BYTES_MAX * CHAR_BYTES_MAX);

/** The first buffered lines, as bytes that are valid until the next chunk, and the number of these lines. */
interface Chunk {
  bytes: Buffer;
  count: number;
}

export class Journal {
  /** How many records were dropped because the disk stayed full. */
  droppedCount = 0;
  /** The error of the last flush; undefined when it succeeded. */
  lastError: unknown;
  private fd: number | undefined;
  private sizeAfterOwnWrite = -1;
  private checkedAtMs = 0;
  private pending: string[] = [];
  private pendingBytes = 0;

  /** @param hasOwnDir true: makes its directory if it is missing */
  constructor(
    readonly path: string,
    private readonly hasOwnDir: boolean,
  ) {}

  /** Buffers one record; `flush` writes it. @param record the text of a JSON object, without a newline */
  append(record: string): void {
    const line =
      record.length > JOURNAL_RECORD_BYTES_MAX / 4 ? cutToFit(`${record}\n`) : `${record}\n`;
    this.pending.push(line);
    this.pendingBytes += line.length;
    while (this.pendingBytes > JOURNAL_BUFFER_BYTES_MAX) {
      this.pendingBytes -= this.pending.shift()?.length ?? this.pendingBytes;
      this.droppedCount++;
    }
  }

  get hasPending(): boolean {
    return this.pending.length > 0;
  }

  /** Writes the buffered lines. Each write has only whole lines, and at most 16 KiB. @returns false when the disk refused */
  flush(): boolean {
    if (this.pending.length === 0) return true;
    try {
      const fd = this.open();
      while (this.pending.length > 0) {
        let chunk = this.chunk(JOURNAL_RECORD_BYTES_MAX);
        if (chunk.bytes.length > JOURNAL_RECORD_BYTES_MAX)
          chunk = this.chunk(Math.floor(JOURNAL_RECORD_BYTES_MAX / CHAR_BYTES_MAX));
        this.write(fd, chunk);
      }
      this.pendingBytes = 0;
      this.lastError = undefined;
      return true;
    } catch (error) {
      this.lastError = error;
      this.close();
      return false;
    }
  }

  close(): void {
    if (this.fd !== undefined) {
      try {
        fs.closeSync(this.fd);
      } catch {
        // A failed close has no effect on the journal.
      }
    }
    this.fd = undefined;
  }

  /** The first lines that together have at most `charsMax` characters, but at least one line. */
  private chunk(charsMax: number): Chunk {
    let count = 1;
    let chars = this.pending[0]?.length ?? 0;
    for (; count < this.pending.length; count++) {
      chars += this.pending[count]?.length ?? 0;
      if (chars > charsMax) break;
    }
    const lines = count === this.pending.length ? this.pending : this.pending.slice(0, count);
    return { bytes: BYTES.subarray(0, BYTES.write(lines.join(""))), count };
  }

  private write(fd: number, { bytes, count }: Chunk): void {
    const { size, isTorn } = this.lookAtEnd(fd);
    const whole = isTorn ? Buffer.concat([Buffer.from("\n"), bytes]) : bytes;
    this.sizeAfterOwnWrite = -1;
    const written = fs.writeSync(fd, whole);
    // Lines that are on disk are removed from the buffer at once, so that a later flush does not write them again.
    if (written !== whole.length) {
      this.forget(written - (whole.length - bytes.length));
      throw Object.assign(new Error("ENOSPC: the journal could be written in part only"), {
        code: "ENOSPC",
      });
    }
    this.drop(count);
    this.sizeAfterOwnWrite = size + written;
  }

  /**
   * Finds out whether another process left a torn line at the end, so that the next line does not become part of it. A process
   * that still writes looks like one that was killed while writing, until its line grows.
   */
  private lookAtEnd(fd: number): { size: number; isTorn: boolean } {
    let { size } = fs.fstatSync(fd);
    for (let looks = 0, same = 0; same < SAME_LOOKS && looks < LOOKS_MAX; looks++) {
      if (size === this.sizeAfterOwnWrite || size === 0 || lastByte(fd, size) === NEWLINE)
        return { size, isTorn: false };
      Atomics.wait(PAUSE, 0, 0, LOOK_AGAIN_MS);
      const now = fs.fstatSync(fd).size;
      same = now === size ? same + 1 : 0;
      size = now;
    }
    return { size, isTorn: true };
  }

  /** Removes from the buffer the lines that an incomplete write has put on disk. */
  private forget(bytesWritten: number): void {
    let left = bytesWritten;
    let count = 0;
    for (const line of this.pending) {
      const bytes = Buffer.byteLength(line);
      // A line that lacks only its newline counts as written: the next write adds the newline first.
      if (bytes - 1 > left) break;
      left -= bytes;
      count++;
    }
    this.drop(count);
  }

  private drop(count: number): void {
    for (const line of this.pending.splice(0, count)) this.pendingBytes -= line.length;
  }

  private open(): number {
    const now = performance.now();
    if (this.fd !== undefined && now - this.checkedAtMs > RECHECK_MS) {
      this.checkedAtMs = now;
      const there = statOf(this.path);
      if (there?.ino !== fs.fstatSync(this.fd).ino) this.close();
    }
    if (this.fd === undefined) {
      try {
        this.fd = openRegular(this.path, TO_APPEND, NAMED);
      } catch (error) {
        if (systemCode(error) !== "ENOENT" || !this.hasOwnDir) throw error;
        makeDir(dirname(this.path));
        this.fd = openRegular(this.path, TO_APPEND, NAMED);
      }
      this.sizeAfterOwnWrite = -1;
      this.checkedAtMs = now;
    }
    return this.fd;
  }
}

/** Makes no parent directories, so that a state tree that was moved away does not appear again. */
function makeDir(path: string): void {
  try {
    fs.mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process made it first.
    if (systemCode(error) !== "EEXIST") throw error;
  }
}

function lastByte(fd: number, size: number): number {
  const one = Buffer.allocUnsafe(1);
  return fs.readSync(fd, one, 0, 1, size - 1) === 1 ? (one[0] ?? NEWLINE) : NEWLINE;
}

/** Cuts long strings and lists until the record fits into one write. If it still does not fit, members are left out. */
function cutToFit(line: string): string {
  let fitted = line;
  for (
    let max = 4096;
    Buffer.byteLength(fitted) > JOURNAL_RECORD_BYTES_MAX && max >= 16;
    max >>= 1
  ) {
    const limit = max;
    fitted = `${JSON.stringify(JSON.parse(line), (_key, value: unknown) =>
      typeof value === "string" && value.length > limit
        ? `${value.slice(0, limit)}…`
        : Array.isArray(value) && value.length > limit
          ? value.slice(0, limit)
          : value,
    )}\n`;
  }
  return Buffer.byteLength(fitted) > JOURNAL_RECORD_BYTES_MAX ? shed(fitted) : fitted;
}

function shed(line: string): string {
  const members: string[] = [];
  let bytesLeft = JOURNAL_RECORD_BYTES_MAX - "{}\n".length;
  for (const [key, value] of Object.entries(JSON.parse(line) as Record<string, unknown>)) {
    const member = `${JSON.stringify(key)}:${JSON.stringify(value)}`;
    const bytes = Buffer.byteLength(member) + ",".length;
    if (bytes > bytesLeft) continue;
    bytesLeft -= bytes;
    members.push(member);
  }
  return `{${members.join(",")}}\n`;
}

/** Renames the file when it is larger than `bytesMax`. Writers notice this within a second. @returns the new path, if any */
export function rotate(path: string, bytesMax: number, wallMs: number): string | undefined {
  const stats = statOf(path);
  if (stats === undefined || stats.size <= bytesMax) return undefined;
  const stamp = new Date(wallMs).toISOString().replace(/[:.]/g, "-");
  const to = path.replace(/(\.jsonl)?$/, `.${stamp}.jsonl`);
  if (fs.existsSync(to)) return undefined;
  fs.renameSync(path, to);
  return to;
}
