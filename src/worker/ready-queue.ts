/** The tasks that a worker is about to claim: those that it was offered, and those that it finds in `processing/` itself. */
import { systemCode } from "../core/errors.ts";
import { TIMER_MS_MAX } from "../core/limits.ts";
import { isReadyFile } from "../core/names.ts";
import type { Trays } from "../mailbox/files/trays.ts";
import { ReadyWaits } from "../mailbox/find/ready-waits.ts";

/** From this many files of other workers on, it checks which of them are still there. */
const NOT_OURS_MAX = 1000;
/** How long the offer of a new file may take to arrive (ms). */
const OFFER_MS = 50;

export interface ReadyFile {
  file: string;
  /** False when this worker found it itself. */
  isOffered: boolean;
}

export class ReadyQueue {
  /** Offered files, best first, then the files that this worker found. */
  private readonly queue: ReadyFile[] = [];
  private foundCount = 0;
  private readonly queued = new Set<string>();
  /** For files seen by `lookAround`: says whether they may run yet. */
  private readonly waits: ReadyWaits;
  /** Files that it found and that are not for this worker. They keep their name when they are given back. */
  private readonly notOurs = new Set<string>();
  /** The ready files that the last look around has seen. */
  private seen: ReadonlySet<string> = new Set();
  private timer: NodeJS.Timeout | undefined;

  /**
   * @param backoffMaxMs the longest possible backoff
   * @param wake called when there is something to claim
   */
  constructor(
    private readonly trays: Trays,
    backoffMaxMs: number,
    private readonly wake: () => void,
  ) {
    this.waits = new ReadyWaits(trays, backoffMaxMs);
  }

  get size(): number {
    return this.queue.length;
  }

  /** The next file to claim; it stays in the queue until `drop` or `postpone`. */
  get first(): ReadyFile | undefined {
    return this.queue[0];
  }

  /** Removes the first file, because it was claimed or is gone. */
  drop(): void {
    const first = this.queue.shift();
    if (first !== undefined) this.noteRemoved(first);
  }

  /** Removes the first file, because it cannot be claimed yet. It is not found again for `delayMs`. */
  postpone(delayMs: number): void {
    const { first } = this;
    this.drop();
    if (first !== undefined) this.waits.postpone(first.file, delayMs);
  }

  add(file: string, isOffered: boolean): void {
    if (this.queued.has(file)) {
      if (!isOffered || this.foundCount === 0) return;
      // The worker found the file before it was offered. Now the file gets the place of its offer.
      const at = this.queue.findIndex((one) => one.file === file && !one.isOffered);
      const [found] = at === -1 ? [] : this.queue.splice(at, 1);
      if (found === undefined) return;
      this.noteRemoved(found);
    }
    this.queued.add(file);
    const behind = isOffered ? this.foundCount : 0;
    this.queue.splice(this.queue.length - behind, 0, { file, isOffered });
    if (!isOffered) this.foundCount++;
  }

  private noteRemoved({ file, isOffered }: ReadyFile): void {
    this.queued.delete(file);
    if (!isOffered) this.foundCount--;
  }

  /** Moves these files to the front of the queue. */
  bringForward(isFirst: (file: string) => boolean): void {
    this.queue.sort((a, b) => Number(isFirst(b.file)) - Number(isFirst(a.file)));
  }

  /** Leaves the file under this name to other workers, unless it is offered again. */
  leaveToOthers(file: string): void {
    this.notOurs.add(file);
  }

  /**
   * Finds files that were not offered.
   * @param isSupervised a supervisor offers files in their order, so a file counts as found only when two looks have seen it
   * @throws the system's error when the tray cannot be listed
   */
  lookAround(isSupervised = false): void {
    let files: string[];
    try {
      files = this.trays.storage.list(this.trays.processing);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return;
      throw error;
    }
    const present = new Set(files);
    this.waits.keepOnly(present);
    // Wait until there are many: a file that is just being given back is missing for a moment.
    if (this.notOurs.size > NOT_OURS_MAX)
      for (const file of this.notOurs) if (!present.has(file)) this.notOurs.delete(file);
    const { seen } = this;
    this.seen = new Set(isSupervised ? files.filter(isReadyFile) : []);
    let nextInMs = Number.POSITIVE_INFINITY;
    let hasNew = false;
    for (const file of files) {
      if (!isReadyFile(file) || this.queued.has(file) || this.notOurs.has(file)) continue;
      if (isSupervised && !seen.has(file)) {
        hasNew = true;
        continue;
      }
      const leftMs = this.waits.leftMs(file);
      if (leftMs === 0) {
        this.waits.forget(file);
        this.add(file, false);
      } else if (leftMs !== undefined) {
        nextInMs = Math.min(nextInMs, leftMs);
      }
    }
    // While other files are queued, the next regular look is early enough.
    if (hasNew && this.queue.length === 0) nextInMs = Math.min(nextInMs, OFFER_MS);
    clearTimeout(this.timer);
    if (nextInMs !== Number.POSITIVE_INFINITY)
      this.timer = setTimeout(() => this.lookAgain(isSupervised), Math.min(nextInMs, TIMER_MS_MAX));
    if (this.queue.length > 0) this.wake();
  }

  private lookAgain(isSupervised: boolean): void {
    try {
      this.lookAround(isSupervised);
    } catch {
      // The regular look around reports the error.
    }
  }

  close(): void {
    clearTimeout(this.timer);
  }
}
