/**
 * What the lines of a batch came to, gathered in `.tmp/` while it runs: the checkpoint of the run, and later its result.
 * One file for each lease, so that a worker that lost the lease cannot spoil it; the next holder takes over what it finds.
 */
import fs from "node:fs";
import { join } from "node:path";
import { decodeLineResult } from "../codec/batch-codec.ts";
import { type BatchCounts, LineSet, noCounts } from "../core/batch.ts";
import { ErrInvalidTask, systemCode } from "../core/errors.ts";
import { SLICE_MS_MAX } from "../core/limits.ts";
import {
  type ProcessingName,
  parseStagedResults,
  prefixOf,
  stagedResultsName,
} from "../core/names.ts";
import { LineReader } from "./batch-lines.ts";
import { claimAt, isHeld } from "./claim.ts";
import { unlinkIfThere } from "./steps.ts";
import { makeTrays, type Trays } from "./trays.ts";

const WRITE_BYTES = 256 * 1024;
const FULL_BYTES = 128 * 1024;

/** The clock is looked at after so many lines that are taken over, and after each piece that is read. */
const LINES_PER_LOOK = 16;
/** Others get their turn. */
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class BatchResults {
  readonly path: string;
  /** Lines that have a result: they are not run again. */
  readonly done = new LineSet();
  readonly counts: BatchCounts = noCounts();
  /** Of all results, written or not. */
  bytes = 0;
  private readonly fd: number;
  /** Encoded at once: text that waits in the heap for its write is what a garbage collector copies again and again. */
  private readonly buffer = Buffer.allocUnsafe(WRITE_BYTES);
  /** What does not fit into the buffer any more, in order. */
  private readonly more: Buffer[] = [];
  private from = 0;
  private to = 0;
  private isDirty = false;
  private synced: Promise<void> = Promise.resolve();
  private isOpen = true;

  constructor(path: string) {
    this.path = path;
    this.fd = fs.openSync(path, "wx", 0o600);
  }

  /** Counts a result and writes it with the next ones. @param text with its line break */
  add(line: number, text: string, isCompleted: boolean, isBad = false): void {
    this.done.add(line);
    this.counts.lines++;
    if (isCompleted) this.counts.completed++;
    else this.counts.failures++;
    if (isBad) this.counts.bad++;
    let length: number;
    if (this.more.length === 0 && this.to + 3 * text.length <= this.buffer.length) {
      length = this.buffer.write(text, this.to);
      this.to += length;
    } else {
      const bytes = Buffer.from(text, "utf8");
      length = bytes.length;
      this.more.push(bytes);
    }
    this.bytes += length;
  }

  /** True when it should be flushed before more is added. */
  get isFull(): boolean {
    return this.to >= FULL_BYTES || this.more.length > 0;
  }

  /** Writes what was added. A failed write is gone on with at the next call. @throws a system error */
  flush(): void {
    while (this.from < this.to) {
      this.from += this.write(this.buffer, this.from, this.to);
    }
    this.from = 0;
    this.to = 0;
    for (let next = this.more[0]; next !== undefined; next = this.more[0]) {
      const written = this.write(next, 0, next.length);
      if (written < next.length) this.more[0] = next.subarray(written);
      else this.more.shift();
    }
  }

  private write(bytes: Buffer, from: number, to: number): number {
    const written = fs.writeSync(this.fd, bytes, from, to - from);
    if (written === 0)
      throw Object.assign(new Error("ENOSPC: the file system took no bytes"), { code: "ENOSPC" });
    this.isDirty = true;
    return written;
  }

  /**
   * Makes what was written survive a power cut. Once that has failed it fails for good: the kernel may have dropped what it
   * could not write, and says so only once. The next holder copies what is left, and writes it anew.
   */
  sync(): Promise<void> {
    this.synced = this.synced.then(() => this.syncRest());
    return this.synced;
  }

  private async syncRest(): Promise<void> {
    if (!this.isDirty || !this.isOpen) return;
    this.isDirty = false;
    await new Promise<void>((resolve, reject) => {
      fs.fdatasync(this.fd, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  close(): void {
    if (this.isOpen) fs.closeSync(this.fd);
    this.isOpen = false;
  }
}

/** Where the holder of this lease gathers, or gathered, its results. */
export function stagedResultsPath(trays: Trays, name: ProcessingName): string {
  return join(trays.tmp, stagedResultsName(name));
}

/**
 * Begins the results of a lease with all that earlier holders left: whole lines only, the first one of each number.
 * @param isHolder true for the holder of the lease: then what was taken over is tidied away, because no other process needs it
 * @throws a system error; what was there is there still
 */
export async function takeOverResults(
  trays: Trays,
  name: ProcessingName,
  isHolder: boolean,
): Promise<BatchResults> {
  const path = stagedResultsPath(trays, name);
  const results = openFresh(trays, path);
  try {
    const taken = new Set<string>([stagedResultsName(name)]);
    for (;;) {
      // Again until nothing new is there: what vanishes while we look was taken over into a file that we then find.
      const found = listStagedResults(trays, prefixOf(name)).filter((file) => !taken.has(file));
      if (found.length === 0) break;
      for (const file of found) {
        taken.add(file);
        await copyResults(trays, join(trays.tmp, file), results);
      }
    }
    taken.delete(stagedResultsName(name));
    if (isHolder && taken.size > 0) {
      if (trays.durability === "power") await results.sync();
      // A process that took the lease since then may have gathered results, too. They may be among these files, and belong to it.
      if (!isHeld(trays, claimAt(trays, name))) return results;
      for (const file of taken) unlinkIfThere(trays, join(trays.tmp, file));
    }
    return results;
  } catch (error) {
    results.close();
    throw error;
  }
}

/** The files of results of one submission. */
export function listStagedResults(trays: Trays, prefix: string): string[] {
  try {
    return trays.storage.list(trays.tmp).filter((file) => parseStagedResults(file) === prefix);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    return [];
  }
}

/**
 * @param isWanted lines of results that are left out are as if they had none
 * @param onPiece called now and then
 */
export async function copyResults(
  { clock }: Trays,
  from: string,
  to: BatchResults,
  isWanted: (isCompleted: boolean) => boolean = () => true,
  onPiece: () => void = () => {},
): Promise<void> {
  let reader: LineReader;
  try {
    reader = new LineReader(from, { takesTail: false });
  } catch (error) {
    // Tidied away by its successor; or not ours at all.
    if (systemCode(error) === "ENOENT" || error instanceof ErrInvalidTask) return;
    throw error;
  }
  let sliceMs = clock.monotonicMs();
  try {
    for (let line = reader.next(); line !== undefined; line = reader.next()) {
      if (line !== "later") {
        const { text } = line;
        const result = text === undefined ? undefined : decodeLineResult(text);
        if (result !== undefined && !to.done.has(result.line) && isWanted(result.isCompleted))
          to.add(result.line, `${text}\n`, result.isCompleted, result.isBad);
        if (to.isFull) to.flush();
        else if (line.number % LINES_PER_LOOK !== 0) continue;
      }
      if (clock.monotonicMs() - sliceMs <= SLICE_MS_MAX) continue;
      to.flush();
      onPiece();
      await breathe();
      sliceMs = clock.monotonicMs();
    }
    to.flush();
  } finally {
    reader.close();
  }
}

/** A new file; what an earlier try under the very same lease left goes. */
function openFresh(trays: Trays, path: string): BatchResults {
  try {
    return new BatchResults(path);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT") makeTrays(trays);
    else if (code === "EEXIST") trays.storage.unlink(path);
    else throw error;
    return new BatchResults(path);
  }
}
