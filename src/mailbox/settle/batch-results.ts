/**
 * Collects the results of a batch's lines in `.tmp/` while the batch runs. The file is the checkpoint of the run, and later its
 * result. Each lease has its own file, so that a worker that lost the lease cannot damage it. The next holder takes over the
 * results that it finds.
 */
import fs from "node:fs";
import { join } from "node:path";
import { decodeLineResult } from "../../codec/batch-codec.ts";
import { type BatchCounts, LineSet, noCounts } from "../../core/batch.ts";
import { ErrInvalidTask, systemCode } from "../../core/errors.ts";
import { SLICE_MS_MAX } from "../../core/limits.ts";
import {
  type ProcessingName,
  parseStagedResults,
  prefixOf,
  stagedResultsName,
} from "../../core/names.ts";
import { openNew } from "../../host/regular-file.ts";
import { claimAt, isHeld } from "../claim/claim.ts";
import { unlinkIfThere } from "../files/steps.ts";
import { makeTrays, type Trays } from "../files/trays.ts";
import { LineReader } from "../submit/batch-lines.ts";

const WRITE_BYTES = 256 * 1024;
const FULL_BYTES = 128 * 1024;

/** How many lines are taken over between two looks at the clock. The clock is also read after each piece of the file. */
const LINES_PER_LOOK = 16;
/** Lets other work of this process run. */
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class BatchResults {
  /** Lines that have a result and are not run again. */
  readonly done = new LineSet();
  readonly counts: BatchCounts = noCounts();
  /** Size of all results, written or not. */
  bytes = 0;
  private readonly fd: number;
  /** Results are encoded at once: the garbage collector would copy waiting text again and again. */
  private readonly buffer = Buffer.allocUnsafe(WRITE_BYTES);
  /** Results that did not fit into the buffer, in order. */
  private readonly more: Buffer[] = [];
  private from = 0;
  private to = 0;
  private isDirty = false;
  private synced: Promise<void> = Promise.resolve();
  private isOpen = true;

  constructor(readonly path: string) {
    this.fd = openNew(path);
  }

  /** Counts a result. The next flush writes it. @param text with its line break */
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

  /** True when the caller should flush before it adds more. */
  get isFull(): boolean {
    return this.to >= FULL_BYTES || this.more.length > 0;
  }

  /** Writes the added results. After a failed write, the next call continues where it stopped. @throws a system error */
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
   * Makes the written results survive a power cut. After one failure every later call fails: the kernel may have dropped the data
   * that it could not write, and it reports this only once. The next holder copies the results that remain and writes them to a new
   * file.
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

/** Path of the file in which the holder of this lease collects its results. */
export function stagedResultsPath(trays: Trays, name: ProcessingName): string {
  return join(trays.tmp, stagedResultsName(name));
}

/**
 * Starts the results of a lease with the results of all earlier holders: only whole lines, and only the first result of each line.
 * @param isHolder true for the holder of the lease: it then deletes the files that it has taken over, because no other process
 *   needs them
 * @throws a system error; the earlier files are then still there
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
      // Repeat until no new file is there. A file that vanishes in between was taken over into another file, which the next listing
      // shows.
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
      // Another process may have taken the lease since then, and some of these files may be its own.
      if (!isHeld(trays, claimAt(trays, name))) return results;
      for (const file of taken) unlinkIfThere(trays, join(trays.tmp, file));
    }
    return results;
  } catch (error) {
    results.close();
    throw error;
  }
}

/** The result files of one submission. */
export function listStagedResults(trays: Trays, prefix: string): string[] {
  try {
    return trays.storage.list(trays.tmp).filter((file) => parseStagedResults(file) === prefix);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    return [];
  }
}

/**
 * @param isWanted false: the result is skipped, as if its line had none
 * @param onPiece called after each piece that is read, and sometimes in between
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
    // The next holder has deleted the file, or it is not a file of ours.
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

/** Creates a new file. A file that an earlier try under the same lease left is deleted. */
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
