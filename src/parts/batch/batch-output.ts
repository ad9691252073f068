/** What others see of a batch while it runs: its results on disk, and how far it is. */

import { join } from "node:path";
import type { BatchProgress } from "../../core/batch.ts";
import { messageOf } from "../../core/errors.ts";
import { RUN_DIR_DEPTH } from "../../core/state-tree.ts";
import { replaceDocument } from "../../host/documents.ts";
import { say } from "../../host/say.ts";
import type { LineReader } from "../../mailbox/batch-lines.ts";
import type { BatchResults } from "../../mailbox/batch-results.ts";
import type { Trays } from "../../mailbox/trays.ts";

export interface BatchOutputParts {
  id: string;
  trays: Trays;
  reader: LineReader;
  results: BatchResults;
  /** Of this run; `batch.json` goes there. */
  runDir: string;
  onProgress: (details: Record<string, unknown>) => void;
  /** What was written may not be on disk, and no later sync brings it there. */
  onUnsynced: (error: unknown) => void;
}

const PROGRESS_MS = 500;
const PROGRESS_EVENT_MS = 10_000;
/** With durability `power`, a power cut repeats the lines of about this time (ms). */
const SYNC_MS = 1000;
/** Pause before results that the disk refused are written again (ms), doubled up to the second value. */
const WRITE_RETRY_MS = [100, 5000] as const;

export class BatchOutput {
  private readonly p: BatchOutputParts;
  private progressAtMs = 0;
  private progressEventAtMs: number;
  private syncAtMs: number;
  private isSyncing = false;
  private writeRetryMs: number = WRITE_RETRY_MS[0];
  private writeAgainMs = 0;

  /** @param nowMs monotonic, here and in all that follows */
  constructor(parts: BatchOutputParts, nowMs: number) {
    this.p = parts;
    this.progressEventAtMs = nowMs + PROGRESS_EVENT_MS;
    this.syncAtMs = nowMs + SYNC_MS;
  }

  /** True while results wait in memory because the disk did not take them. */
  get isRefused(): boolean {
    return this.writeAgainMs > 0;
  }

  /** Writes down what ended, unless the disk has refused it just now. */
  flush(nowMs: number): void {
    if (nowMs < this.writeAgainMs) return;
    try {
      this.p.results.flush();
      this.writeAgainMs = 0;
      this.writeRetryMs = WRITE_RETRY_MS[0];
    } catch (error) {
      // The work is done and kept in memory; nothing new starts until there is room for what it comes to.
      if (this.writeAgainMs === 0)
        say(`cannot write the results of ${this.p.id} yet: ${messageOf(error)}`);
      this.writeAgainMs = nowMs + this.writeRetryMs;
      this.writeRetryMs = Math.min(2 * this.writeRetryMs, WRITE_RETRY_MS[1]);
    }
  }

  /** The same without waiting for the disk. */
  flushNow(nowMs: number): void {
    this.writeAgainMs = 0;
    this.flush(nowMs);
  }

  /** Tells of the progress and syncs, when it is time for it. */
  work(nowMs: number, running: number, waiting: number): void {
    if (nowMs >= this.progressAtMs) this.tell(nowMs, running, waiting);
    if (nowMs >= this.syncAtMs) this.sync(nowMs);
  }

  /** @param running lines that run now; @param waiting lines that wait for their next run */
  tell(nowMs: number, running: number, waiting: number): void {
    this.progressAtMs = nowMs + PROGRESS_MS;
    const { reader, results, trays, runDir } = this.p;
    const progress: BatchProgress = {
      ...results.counts,
      running,
      waiting,
      bytes_read: reader.taken,
      bytes: reader.size,
      updated_at: new Date(trays.clock.wallMs()).toISOString(),
    };
    try {
      replaceDocument(join(runDir, "batch.json"), progress, { missingMax: 1 + RUN_DIR_DEPTH });
    } catch {
      // For people to look at: a full disk must not end the work.
    }
    if (nowMs < this.progressEventAtMs) return;
    this.progressEventAtMs = nowMs + PROGRESS_EVENT_MS;
    this.p.onProgress({ ...results.counts, bytes_read: reader.taken, bytes: reader.size });
  }

  private sync(nowMs: number): void {
    this.syncAtMs = nowMs + SYNC_MS;
    if (this.p.trays.durability !== "power" || this.isSyncing) return;
    this.isSyncing = true;
    void this.p.results.sync().then(() => {
      this.isSyncing = false;
    }, this.p.onUnsynced);
  }
}
