/** Follows a journal that grows, without streams: each look reads what was added. Lines that are no record are skipped and counted. */
import fs from "node:fs";
import { parseObject } from "../core/json-object.ts";
import { statOf } from "../host/regular-file.ts";
import { openJournal } from "./open-journal.ts";
import type { ReadCounts } from "./read.ts";
import { rotatedOf } from "./rotated.ts";

function inoOf(path: string): number | undefined {
  return statOf(path)?.ino;
}

/** After a rotation, writers may still write to the old file for a short time. The reader follows that file for this long (ms). */
const ROTATED_LINGER_MS = 2000;

/**
 * Follows a growing journal from a place on, also through several rotations, and when the file of that place was rotated before it began. Each
 * call returns the complete lines added since the last call.
 */
export class JournalTail {
  readonly counts: ReadCounts = { records: 0, bad: 0 };
  private fd: number | undefined;
  private rotatedAtMs: number | undefined;
  /** True while the reader skips a line that is longer than one read. */
  private isInLongLine = false;

  constructor(
    private readonly path: string,
    public offset = 0,
    public ino = 0,
  ) {}

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

  /**
   * Like `next`, but does not parse, for callers that need few of the records. Counts only lines longer than `bytesMax`.
   * @param lingerMs 0: no process writes any more
   */
  nextLines(bytesMax = 1024 * 1024, lingerMs = ROTATED_LINGER_MS): string[] {
    if (this.fd === undefined && !this.open(this.ownFile())) return [];
    const lines = this.readOn(bytesMax);
    if (lines.length === 0 && this.isRotated(lingerMs)) {
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

  /** The file with our inode. When it is gone, the current one. */
  private ownFile(): string {
    if (this.ino === 0 || inoOf(this.path) === this.ino) return this.path;
    return rotatedOf(this.path).find((one) => inoOf(one) === this.ino) ?? this.path;
  }

  /** The file after ours. It may have been rotated away, too. The current file when ours is gone. */
  private nextFile(): string {
    const rotated = rotatedOf(this.path);
    const own = rotated.findIndex((one) => inoOf(one) === this.ino);
    return (own === -1 ? undefined : rotated[own + 1]) ?? this.path;
  }

  private open(path: string): boolean {
    const fd = openJournal(path);
    if (fd === undefined) return false;
    this.fd = fd;
    const { size, ino, ctimeMs } = fs.fstatSync(fd);
    // The rename was the last change.
    if (path !== this.path)
      this.rotatedAtMs = performance.now() - Math.max(0, Date.now() - ctimeMs);
    if (ino !== this.ino || size < this.offset) {
      this.offset = 0;
      this.isInLongLine = false;
    }
    this.ino = ino;
    return true;
  }

  /** True when the path leads to another file, and has done so long enough for writers to notice. */
  private isRotated(lingerMs: number): boolean {
    const there = inoOf(this.path);
    if (there === undefined || there === this.ino) {
      this.rotatedAtMs = undefined;
      return false;
    }
    // The file after ours was rotated away, too: its writers have left ours.
    if (this.nextFile() !== this.path) return true;
    const nowMs = performance.now();
    this.rotatedAtMs ??= nowMs;
    return nowMs - this.rotatedAtMs >= lingerMs;
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
