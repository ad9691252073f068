/** Reads JSONL files of any size, even damaged ones. It skips and counts lines that are no record, and ignores NUL bytes. */
import fs from "node:fs";
import { Transform, type TransformCallback } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { systemCode } from "../core/errors.ts";
import { parseObject } from "../core/json-object.ts";
import { rotatedOf } from "./rotated.ts";

export interface ReadCounts {
  records: number;
  /** Lines that are not JSON objects. */
  bad: number;
}

/** With O_NONBLOCK, opening a pipe at this path does not wait for a writer. */
const TO_READ = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0);
/** A line longer than this (characters) is no record. It is skipped, and not kept in memory. */
const LINE_CHARS_MAX = 4 * 1024 * 1024;

/** Passes on only lines that hold one JSON object, because ndjson stops or crashes at any other line. */
class LineGuard extends Transform {
  readonly counts: ReadCounts;
  private readonly decoder = new StringDecoder("utf8");
  private rest = "";
  private isSkipping = false;

  constructor(counts: ReadCounts) {
    super();
    this.counts = counts;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const piece = this.decoder.write(chunk);
    if (piece.includes("\n")) {
      const lines = (this.rest + piece).split("\n");
      this.rest = lines.pop() ?? "";
      for (const line of lines) this.line(line);
    } else if (!this.isSkipping) {
      // The piece is only collected. Splitting a line of megabytes again after each piece would take too long.
      this.rest += piece;
    }
    if (this.rest.length > LINE_CHARS_MAX) {
      this.isSkipping = true;
      this.rest = "";
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    // A last line without a newline is torn or still being written. It counts only if it is a complete object.
    if (this.rest !== "" || this.isSkipping) this.line(this.rest);
    done();
  }

  private line(raw: string): void {
    if (this.isSkipping) {
      this.isSkipping = false;
      this.counts.bad++;
      return;
    }
    const line = raw.includes("\0") ? raw.replaceAll("\0", "") : raw;
    if (line.trim() === "") return;
    if (parseObject(line) === undefined) {
      this.counts.bad++;
      return;
    }
    this.counts.records++;
    this.push(`${line}\n`);
  }
}

/** Yields the records of a journal in order. A missing file has no records. @throws a system error; EINVAL: not a regular file */
export async function* readJournal(
  path: string,
  counts: ReadCounts = { records: 0, bad: 0 },
  start = 0,
): AsyncGenerator<Record<string, unknown>> {
  // Loaded at the first use, because it loads a whole library of streams.
  const { default: ndjson } = await import("ndjson");
  const fd = openJournal(path);
  if (fd === undefined) return;
  if (!fs.fstatSync(fd).isFile()) {
    // Reading a device might never end.
    fs.closeSync(fd);
    throw Object.assign(new Error(`EINVAL: it is not a regular file, '${path}'`), {
      code: "EINVAL",
      path,
    });
  }
  const source = fs.createReadStream(path, { fd, start });
  const guard = new LineGuard(counts);
  const parser = ndjson.parse();
  source.on("error", (error) => guard.destroy(error));
  guard.on("error", (error) => parser.destroy(error));
  try {
    for await (const record of source.pipe(guard).pipe(parser))
      yield record as Record<string, unknown>;
  } finally {
    // Closes the file also when the caller stops reading before its end.
    source.destroy();
    guard.destroy();
  }
}

/** Opens a journal for reading; undefined when it does not exist. @throws a system error */
export function openJournal(path: string): number | undefined {
  try {
    return fs.openSync(path, TO_READ);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

function inoOf(path: string): number | undefined {
  return fs.statSync(path, { throwIfNoEntry: false })?.ino;
}

/** After a rotation, writers may still write to the old file for a short time. The reader reads it for this long (ms). */
const ROTATED_LINGER_MS = 2000;

/** Follows a growing journal, also through several rotations. Each call returns the complete lines added since the last call. */
export class JournalTail {
  readonly counts: ReadCounts = { records: 0, bad: 0 };
  private readonly path: string;
  private fd: number | undefined;
  private rotatedAtMs: number | undefined;
  /** True while the reader skips a line that is longer than one read. */
  private isInLongLine = false;
  offset: number;
  ino: number;

  constructor(path: string, offset = 0, ino = 0) {
    this.path = path;
    this.offset = offset;
    this.ino = ino;
  }

  /** @param bytesMax reads at most this much; call again while records are returned */
  next(bytesMax = 1024 * 1024): Record<string, unknown>[] {
    const records: Record<string, unknown>[] = [];
    for (const line of this.nextLines(bytesMax)) {
      const record = parseObject(line.includes("\0") ? line.replaceAll("\0", "") : line);
      if (record === undefined) this.counts.bad++;
      else records.push(record);
    }
    this.counts.records += records.length;
    return records;
  }

  /** Like `next`, but does not parse, for callers that need few of the records. Counts only lines longer than `bytesMax`. */
  nextLines(bytesMax = 1024 * 1024): string[] {
    if (this.fd === undefined && !this.open()) return [];
    const lines = this.readOn(bytesMax);
    if (lines.length === 0 && this.isRotated()) {
      this.close();
      if (this.open(this.nextFile())) return this.readOn(bytesMax);
    }
    return lines;
  }

  close(): void {
    if (this.fd !== undefined) fs.closeSync(this.fd);
    this.fd = undefined;
    this.rotatedAtMs = undefined;
  }

  /** The file after ours: it may have been rotated away, too. The current one when ours is gone. */
  private nextFile(): string {
    const rotated = rotatedOf(this.path);
    const own = rotated.findIndex((one) => inoOf(one) === this.ino);
    return (own === -1 ? undefined : rotated[own + 1]) ?? this.path;
  }

  private open(path: string = this.path): boolean {
    const fd = openJournal(path);
    if (fd === undefined) return false;
    this.fd = fd;
    const { size, ino } = fs.fstatSync(fd);
    if (ino !== this.ino || size < this.offset) {
      this.offset = 0;
      this.isInLongLine = false;
    }
    this.ino = ino;
    return true;
  }

  /** True when the path leads to another file, and has done so long enough for writers to notice. */
  private isRotated(): boolean {
    const there = inoOf(this.path);
    if (there === undefined || there === this.ino) {
      this.rotatedAtMs = undefined;
      return false;
    }
    // The file after ours was rotated away, too: its writers have left ours.
    if (this.nextFile() !== this.path) return true;
    const nowMs = performance.now();
    this.rotatedAtMs ??= nowMs;
    return nowMs - this.rotatedAtMs >= ROTATED_LINGER_MS;
  }

  private readOn(bytesMax: number): string[] {
    if (this.fd === undefined) return [];
    const { size } = fs.fstatSync(this.fd);
    if (size < this.offset) {
      this.offset = 0;
      this.isInLongLine = false;
    }
    if (size <= this.offset) return [];
    const buffer = Buffer.allocUnsafe(Math.min(size - this.offset, bytesMax));
    const got = fs.readSync(this.fd, buffer, 0, buffer.length, this.offset);
    const end = buffer.subarray(0, got).lastIndexOf(0x0a) + 1;
    if (end === 0) {
      // A line longer than one read is no record. It is skipped.
      if (got === bytesMax) {
        this.offset += got;
        this.isInLongLine = true;
      }
      return [];
    }
    this.offset += end;
    let from = 0;
    if (this.isInLongLine) {
      // The end of a skipped line is no record, even if it is valid JSON.
      from = buffer.indexOf(0x0a) + 1;
      this.isInLongLine = false;
      this.counts.bad++;
    }
    return buffer
      .toString("utf8", from, end)
      .split("\n")
      .filter((line) => line !== "");
  }
}
