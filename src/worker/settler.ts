/**
 * Ends a worker's attempts: settles what is over for good, gives back what is to run again. What the disk refuses is kept
 * in memory, with its lease, and tried again.
 */
import { systemCode } from "../core/errors.ts";
import { formatName } from "../core/names.ts";
import { hold, putBack } from "../mailbox/claim.ts";
import { requeue } from "../mailbox/requeue.ts";
import { type Settlement, settleAll } from "../mailbox/settle.ts";
import type { Trays } from "../mailbox/trays.ts";
import type { AttemptJournal } from "./attempt-journal.ts";
import type { DiskPause } from "./disk-pause.ts";
import type { ProgressReport } from "./progress-report.ts";
import type { Attempt } from "./runner.ts";

export interface SettlerParts {
  trays: Trays;
  journal: AttemptJournal;
  report: ProgressReport;
  pause: DiskPause;
  /** Something has ended: there may be room for more. */
  wake: () => void;
}

export class Settler {
  private readonly p: SettlerParts;
  /** Decided, and not yet begun with. */
  private finished: Attempt[] = [];
  /** Settlements that the disk refused so far. */
  private stuck: Attempt[] = [];
  private settlingCount = 0;
  private isSettling = false;

  constructor(parts: SettlerParts) {
    this.p = parts;
  }

  /** Attempts that are decided and not ended yet. */
  get count(): number {
    return this.finished.length + this.settlingCount + this.stuck.length;
  }

  /** @param attempt that was decided, and is to be ended with the next that are */
  add(attempt: Attempt): void {
    this.finished.push(attempt);
  }

  /** What the disk refused is ended with the next. */
  retryStuck(): void {
    this.finished.push(...this.stuck);
    this.stuck = [];
  }

  /**
   * Ends what there is, and all of it happens now; for durability `process`.
   * @param claim called between publishing and tidying up, so that one write of journal lines carries both; not called
   *   when nothing is published, and once more for a settlement that began anew
   */
  settleNow(claim: () => void): void {
    const settling = this.takeSettling();
    void settleAll(this.p.trays, [...settling.keys()], (published) => {
      this.notePublished(settling, published);
      claim();
      this.p.journal.flush();
    });
    this.afterSettling(settling);
  }

  /** For durability `power`: one group settles while the next one gathers, so that they share each wait for the disk. */
  settleInGroups(): void {
    if (!this.isSettling) void this.settleGroups();
  }

  /** The lease was lost; the process that has it answers for the task. */
  dropFenced(attempt: Attempt): void {
    this.p.journal.noteFenced(attempt);
    this.through(attempt);
  }

  private async settleGroups(): Promise<void> {
    this.isSettling = true;
    try {
      while (this.finished.length > 0) {
        const settling = this.takeSettling();
        await settleAll(this.p.trays, [...settling.keys()], (published) => {
          this.notePublished(settling, published);
          this.p.journal.flush();
        });
        this.afterSettling(settling);
        this.p.wake();
      }
    } finally {
      this.isSettling = false;
    }
  }

  /** Gives back what is to run again, and takes the rest to be settled. */
  private takeSettling(): Map<Settlement, Attempt> {
    const settling = new Map<Settlement, Attempt>();
    const { finished } = this;
    this.finished = [];
    for (const attempt of finished) {
      if (attempt.settlement === undefined) this.giveBack(attempt);
      else settling.set(attempt.settlement, attempt);
    }
    this.settlingCount += settling.size;
    return settling;
  }

  private notePublished(
    settling: ReadonlyMap<Settlement, Attempt>,
    published: readonly Settlement[],
  ): void {
    for (const settlement of published) {
      const attempt = settling.get(settlement);
      if (attempt !== undefined) this.p.journal.noteSettled(attempt, settlement.mayBeRecorded);
    }
  }

  private afterSettling(settling: ReadonlyMap<Settlement, Attempt>): void {
    this.settlingCount -= settling.size;
    for (const [settlement, attempt] of settling) this.afterSettle(attempt, settlement);
  }

  private afterSettle(attempt: Attempt, settlement: Settlement): void {
    if (settlement.error !== undefined) {
      this.retryLater(attempt, settlement.error);
      return;
    }
    const { journal, report, pause } = this.p;
    pause.shorten();
    if (settlement.outcome === "fenced") journal.noteFenced(attempt);
    else {
      const { recordAs } = settlement;
      if (recordAs !== undefined) journal.noteConflict(attempt, recordAs);
      report.noteSettled({
        id: attempt.subject.task_id,
        isCompleted: settlement.status === "completed",
        ...(attempt.counts === undefined ? {} : { batch: attempt.counts }),
        ...(recordAs === undefined ? {} : { recordAs }),
      });
    }
    this.through(attempt);
    this.p.wake();
  }

  /** The disk refused: the work is done and kept in memory, the lease is kept, and it is tried again. */
  private retryLater(attempt: Attempt, error: unknown): void {
    this.stuck.push(attempt);
    this.p.pause.begin(`settle ${attempt.subject.task_id}`, error);
  }

  /** Retry, release and hold: one rename, then the event. */
  private giveBack(attempt: Attempt): void {
    const { outcome, decision } = attempt;
    if (decision?.action === "hold") {
      this.hold(attempt, decision.gate);
      return;
    }
    if (decision === undefined || (decision.action !== "retry" && decision.action !== "release"))
      throw new Error("nothing to give back");
    if (outcome?.kind === "released" && outcome.message === "requeue") {
      this.giveBackToInbox(attempt);
      return;
    }
    const { trays, journal, report } = this.p;
    let next: ReturnType<typeof putBack>;
    const waited = performance.now() - (attempt.heldSinceMs ?? Number.POSITIVE_INFINITY);
    const delayMs = waited >= decision.delayMs ? 0 : decision.delayMs;
    try {
      next = putBack(trays, attempt.claim, delayMs, decision.action === "retry");
    } catch (error) {
      // The time of another user's file cannot be set: then it waits in our hands.
      if (systemCode(error) === "EPERM") attempt.heldSinceMs ??= performance.now();
      this.retryLater(attempt, error);
      return;
    }
    if (next === undefined) {
      journal.noteFenced(attempt);
    } else {
      const event = decision.action === "retry" ? "retry_scheduled" : "released";
      const notBeforeMs = trays.clock.wallMs() + decision.delayMs;
      journal.notePutBack(attempt, event, decision.delayMs, notBeforeMs, next.attempt);
      const trouble =
        outcome?.kind === "deferred" && outcome.isHindered === true ? outcome.message : undefined;
      report.noteReturned({
        file: formatName(next),
        delayMs: decision.delayMs,
        ...(trouble === undefined ? {} : { trouble }),
      });
    }
    this.through(attempt);
  }

  private hold(attempt: Attempt, gate: string): void {
    const { trays, journal, report } = this.p;
    let next: ReturnType<typeof hold>;
    try {
      next = hold(trays, attempt.claim, gate);
    } catch (error) {
      this.retryLater(attempt, error);
      return;
    }
    if (next === undefined) journal.noteFenced(attempt);
    else {
      journal.noteHeld(attempt, gate);
      report.noteReturned({ file: formatName(next), delayMs: 0 });
    }
    this.through(attempt);
  }

  /** `cancel` without `final`: as if it had just been dropped. */
  private giveBackToInbox(attempt: Attempt): void {
    const { trays, journal } = this.p;
    try {
      if (requeue(trays, attempt.claim)) journal.noteRequeued(attempt);
      else journal.noteFenced(attempt);
      this.through(attempt);
    } catch (error) {
      this.retryLater(attempt, error);
    }
  }

  private through(attempt: Attempt): void {
    this.p.report.noteDone(attempt.readyFile);
  }
}
