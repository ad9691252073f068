/** The tasks that a worker is about to claim: those it was offered, and those it finds in `processing/` by itself. */
import { systemCode } from "../core/errors.ts";
import { READY_WAIT_MS_MAX } from "../core/limits.ts";
import { isReadyFile } from "../core/names.ts";
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
  /** Files seen by `lookAround` that may not run yet: name → monotonic ms at which they may. */
  private readonly waiting = new Map<string, number>();
  /** Found, and not for this worker; they keep their name when they are given back. */
  private readonly notOurs = new Set<string>();
  private timer: NodeJS.Timeout | undefined;

  /** @param wake there is something to claim */
  constructor(trays: Trays, wake: () => void) {
    this.trays = trays;
    this.wake = wake;
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
    if (first !== undefined) this.waiting.set(first.file, this.trays.clock.monotonicMs() + delayMs);
  }

  add(file: string, isOffered: boolean): void {
    if (this.queued.has(file)) return;
    this.queued.add(file);
    this.queue.push({ file, isOffered });
  }

  /** What waits under this name is not taken again, unless it is offered. */
  leaveToOthers(file: string): void {
    this.notOurs.add(file);
  }

  /** Finds what nobody offered. @throws what the system says when the tray cannot be listed */
  lookAround(): void {
    let files: string[];
    try {
      files = this.trays.storage.list(this.trays.processing);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return;
      throw error;
    }
    const { clock } = this.trays;
    const nowMs = clock.monotonicMs();
    const present = new Set(files);
    for (const file of this.waiting.keys()) if (!present.has(file)) this.waiting.delete(file);
    // Not before there are many: one that is being given back is missing, too.
    if (this.notOurs.size > NOT_OURS_MAX)
      for (const file of this.notOurs) if (!present.has(file)) this.notOurs.delete(file);
    let nextMs = Number.POSITIVE_INFINITY;
    for (const file of files) {
      if (!isReadyFile(file) || this.queued.has(file) || this.notOurs.has(file)) continue;
      let dueMs = this.waiting.get(file);
      if (dueMs === undefined) {
        const facts = this.trays.storage.look(`${this.trays.processing}/${file}`);
        if (facts === undefined) continue;
        // The wall clock only says how long to wait; the waiting is done on our own clock, and is bounded.
        const waitMs = Math.min(Math.max(facts.mtimeMs - clock.wallMs(), 0), READY_WAIT_MS_MAX);
        dueMs = nowMs + waitMs;
        this.waiting.set(file, dueMs);
      }
      if (dueMs <= nowMs) {
        this.waiting.delete(file);
        this.add(file, false);
      } else {
        nextMs = Math.min(nextMs, dueMs);
      }
    }
    clearTimeout(this.timer);
    if (nextMs !== Number.POSITIVE_INFINITY)
      this.timer = setTimeout(() => this.lookAgain(), nextMs - nowMs);
    if (this.queue.length > 0) this.wake();
  }

  private lookAgain(): void {
    try {
      this.lookAround();
    } catch {
      // Whoever looks around now and then says what is wrong.
    }
  }

  close(): void {
    clearTimeout(this.timer);
  }
}
