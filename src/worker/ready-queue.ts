/** The tasks that a worker is about to claim: those it was offered, and those it finds in `processing/` by itself. */
import { systemCode } from "../core/errors.ts";
import { TIMER_MS_MAX } from "../core/limits.ts";
import { isReadyFile } from "../core/names.ts";
import { ReadyWaits } from "../mailbox/ready-waits.ts";
import type { Trays } from "../mailbox/trays.ts";

/** With so many files that are not for this worker, it looks which of them are still there. */
const NOT_OURS_MAX = 1000;

export interface ReadyFile {
  file: string;
  /** False when this worker found it by itself. */
  isOffered: boolean;
}

export class ReadyQueue {
  private readonly trays: Trays;
  private readonly wake: () => void;
  /** Best first. */
  private readonly queue: ReadyFile[] = [];
  private readonly queued = new Set<string>();
  /** Of files seen by `lookAround`: whether they may run yet. */
  private readonly waits: ReadyWaits;
  /** Found, and not for this worker; they keep their name when they are given back. */
  private readonly notOurs = new Set<string>();
  private timer: NodeJS.Timeout | undefined;

  /**
   * @param backoffMaxMs the longest backoff there is
   * @param wake there is something to claim
   */
  constructor(trays: Trays, backoffMaxMs: number, wake: () => void) {
    this.trays = trays;
    this.wake = wake;
    this.waits = new ReadyWaits(trays, backoffMaxMs);
  }

  get size(): number {
    return this.queue.length;
  }

  /** The next to be claimed; it stays here until `drop` or `postpone`. */
  get first(): ReadyFile | undefined {
    return this.queue[0];
  }

  /** Takes the first one out: claimed, or gone. */
  drop(): void {
    const first = this.queue.shift();
    if (first !== undefined) this.queued.delete(first.file);
  }

  /** Takes the first one out, which cannot be claimed yet: it is not found again before `delayMs` are over. */
  postpone(delayMs: number): void {
    const { first } = this;
    this.drop();
    if (first !== undefined) this.waits.postpone(first.file, delayMs);
  }

  add(file: string, isOffered: boolean): void {
    if (this.queued.has(file)) {
      // Found before it was offered: now it is offered.
      const found = isOffered ? this.queue.find((one) => one.file === file) : undefined;
      if (found !== undefined) found.isOffered = true;
      return;
    }
    this.queued.add(file);
    this.queue.push({ file, isOffered });
  }

  /** These are to be claimed before all others. */
  bringForward(isFirst: (file: string) => boolean): void {
    this.queue.sort((a, b) => Number(isFirst(b.file)) - Number(isFirst(a.file)));
  }

  /** What waits under this name is not taken again, unless it is offered. */
  leaveToOthers(file: string): void {
    this.notOurs.add(file);
  }

  /** Finds what was not offered. @throws what the system says when the tray cannot be listed */
  lookAround(): void {
    let files: string[];
    try {
      files = this.trays.storage.list(this.trays.processing);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return;
      throw error;
    }
    const present = new Set(files);
    this.waits.keepOnly(present);
    // Not before there are many: one that is being given back is missing, too.
    if (this.notOurs.size > NOT_OURS_MAX)
      for (const file of this.notOurs) if (!present.has(file)) this.notOurs.delete(file);
    let nextInMs = Number.POSITIVE_INFINITY;
    for (const file of files) {
      if (!isReadyFile(file) || this.queued.has(file) || this.notOurs.has(file)) continue;
      const leftMs = this.waits.leftMs(file);
      if (leftMs === 0) {
        this.waits.forget(file);
        this.add(file, false);
      } else if (leftMs !== undefined) {
        nextInMs = Math.min(nextInMs, leftMs);
      }
    }
    clearTimeout(this.timer);
    if (nextInMs !== Number.POSITIVE_INFINITY)
      this.timer = setTimeout(() => this.lookAgain(), Math.min(nextInMs, TIMER_MS_MAX));
    if (this.queue.length > 0) this.wake();
  }

  private lookAgain(): void {
    try {
      this.lookAround();
    } catch {
      // The regular look around reports what is wrong.
    }
  }

  close(): void {
    clearTimeout(this.timer);
  }
}
