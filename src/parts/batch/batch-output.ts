/** What other processes see of a running batch: its results on disk, and its progress. */

import { join } from "node:path";
import type { BatchProgress } from "../../core/batch.ts";
import { messageOf } from "../../core/errors.ts";
import { RUN_DIR_DEPTH } from "../../core/state-tree.ts";
import { replaceDocument } from "../../host/replace-document.ts";
import { say } from "../../host/say.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import type { BatchResults } from "../../mailbox/settle/batch-results.ts";
import type { LineReader } from "../../mailbox/submit/batch-lines.ts";

export interface BatchOutputParts {
  id: string;
  trays: Trays;
  reader: LineReader;
  results: BatchResults;
  /** The folder of this run, where `batch.json` is written. */
  runDir: string;
  onProgress: (details: Record<string, unknown>) => void;
  /** A sync failed: written results may not be on disk, and no later sync can bring them there. */
  onUnsynced: (error: unknown) => void;
}

const PROGRESS_MS = 500;
const PROGRESS_EVENT_MS = 10_000;
/** With durability `power`, lines that ended within about this time before a power cut run again (ms). */
const SYNC_MS = 1000;
/** Pause before refused results are written again (ms): it doubles from the first value to the second. */
const WRITE_RETRY_MS = [100, 5000] as const;

export class BatchOutput {
  private progressAtMs = 0;
  private progressEventAtMs: number;
  private syncAtMs: number;
  private isSyncing = false;
  private writeRetryMs: number = WRITE_RETRY_MS[0];
  private writeAgainMs = 0;

  /** @param nowMs monotonic, here and in all other methods */
  constructor(
    private readonly deps: BatchOutputParts,
    nowMs: number,
  ) {
    this.progressEventAtMs = nowMs + PROGRESS_EVENT_MS;
    this.syncAtMs = nowMs + SYNC_MS;
  }

  /** True while results wait in memory because they could not be written to disk. */
  get isRefused(): boolean {
    return this.writeAgainMs > 0;
  }

  /** Writes new results to disk, unless a write failed a short time ago. */
  flush(nowMs: number): void {
    if (nowMs < this.writeAgainMs) return;
    try {
      this.deps.results.flush();
      this.writeAgainMs = 0;
      this.writeRetryMs = WRITE_RETRY_MS[0];
    } catch (error) {
      // The results stay in memory. No new line starts until the disk has room for them.
      if (this.writeAgainMs === 0)
        say(`cannot write the results of ${this.deps.id} yet: ${messageOf(error)}`);
      this.writeAgainMs = nowMs + this.writeRetryMs;
      this.writeRetryMs = Math.min(2 * this.writeRetryMs, WRITE_RETRY_MS[1]);
    }
  }

  /** Like `flush`, but also tries during the pause after a failed write. */
  flushNow(nowMs: number): void {
    this.writeAgainMs = 0;
    this.flush(nowMs);
  }

  /** Reports the progress and syncs, each when it is due. */
  work(nowMs: number, running: number, waiting: number): void {
    if (nowMs >= this.progressAtMs) this.tell(nowMs, running, waiting);
    if (nowMs >= this.syncAtMs) this.sync(nowMs);
  }

  /** @param running lines that run now; @param waiting lines that wait for their next run */
  tell(nowMs: number, running: number, waiting: number): void {
    this.progressAtMs = nowMs + PROGRESS_MS;
    const { reader, results, trays, runDir } = this.deps;
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
      // Only people read this file: a full disk must not stop the batch.
    }
    if (nowMs < this.progressEventAtMs) return;
    this.progressEventAtMs = nowMs + PROGRESS_EVENT_MS;
    this.deps.onProgress({ ...results.counts, bytes_read: reader.taken, bytes: reader.size });
  }

  private sync(nowMs: number): void {
    this.syncAtMs = nowMs + SYNC_MS;
    if (this.deps.trays.durability !== "power" || this.isSyncing) return;
    this.isSyncing = true;
    void this.deps.results.sync().then(() => {
      this.isSyncing = false;
    }, this.deps.onUnsynced);
  }
}
