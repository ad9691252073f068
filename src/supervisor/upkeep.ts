/** Upkeep: retention of both mailboxes and of the run directories, in slices, and never on the word of a clock that jumped. */
import type { Clock } from "../core/clock.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { Sweep } from "../mailbox/sweep.ts";
import type { Trays } from "../mailbox/trays.ts";
import { sweepDocuments } from "./sweep-documents.ts";
import { RunSweep } from "./sweep-runs.ts";

const PERIOD_MS = 60_000;
/** Names looked at in one slice. */
const SLICE_NAMES = 256;
/** Removing run directories blocks a tick for at most about this long (ms). */
const RUNS_SLICE_MS = 2;
/** A wall clock that moved this much against the monotonic one is not trusted with deleting anything (ms). */
const CLOCK_DRIFT_MAX_MS = 60 * 60 * 1000;

export class Upkeep {
  private readonly tree: StateTree;
  private readonly mailboxes: readonly Trays[];
  private readonly retention: Settings["retention"];
  private readonly isNeeded: (id: string) => boolean;
  private readonly onError: (error: unknown) => void;
  private readonly clock: Clock;
  private readonly clockOffsetMs: number;
  private atMs = 0;
  private sweeps: Sweep[] = [];
  private runs: RunSweep | undefined;

  /**
   * @param isNeeded whether something waits for the result of this task
   * @param onError gets what the disk refuses; the pass is given up then, and the next one begins in its time
   */
  constructor(
    tree: StateTree,
    mailboxes: readonly Trays[],
    retention: Settings["retention"],
    clock: Clock,
    isNeeded: (id: string) => boolean,
    onError: (error: unknown) => void,
  ) {
    this.tree = tree;
    this.mailboxes = mailboxes;
    this.retention = retention;
    this.clock = clock;
    this.clockOffsetMs = clock.wallMs() - clock.monotonicMs();
    this.isNeeded = isNeeded;
    this.onError = onError;
  }

  get hasWork(): boolean {
    return this.sweeps.length > 0 || this.runs !== undefined;
  }

  /** One slice. Never throws: nothing that runs, or ends, waits for housekeeping. */
  work(nowMs: number): void {
    try {
      this.slice(nowMs);
    } catch (error) {
      this.close();
      this.onError(error);
    }
  }

  private slice(nowMs: number): void {
    if (nowMs >= this.atMs) {
      this.atMs = nowMs + PERIOD_MS;
      if (!this.hasWork && !this.hasClockJumped()) this.begin();
    }
    const [sweep] = this.sweeps;
    if (sweep === undefined) {
      this.workOnRuns();
      return;
    }
    if (!sweep.next(SLICE_NAMES)) return;
    this.sweeps.shift();
    if (!this.hasWork) this.runs = new RunSweep(this.tree, this.retention, sweep.nowMs);
  }

  close(): void {
    for (const sweep of this.sweeps) sweep.close();
    this.sweeps = [];
    this.runs?.close();
    this.runs = undefined;
  }

  private workOnRuns(): void {
    const untilMs = this.clock.monotonicMs() + RUNS_SLICE_MS;
    if (this.runs?.next(() => this.clock.monotonicMs() >= untilMs) !== true) return;
    sweepDocuments(this.tree, this.runs.nowMs);
    this.runs = undefined;
  }

  private begin(): void {
    const { outbox_days: outboxDays, failed_days: failedDays } = this.retention;
    this.sweeps = this.mailboxes.map(
      (trays) => new Sweep(trays, { outboxDays, failedDays, isNeeded: this.isNeeded }),
    );
  }

  private hasClockJumped(): boolean {
    const driftMs = this.clock.wallMs() - this.clock.monotonicMs() - this.clockOffsetMs;
    return Math.abs(driftMs) > CLOCK_DRIFT_MAX_MS;
  }
}
