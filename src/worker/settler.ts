/**
 * Ends a worker's attempts: settles those that are over for good, and gives back those that run again. If the disk refuses, the
 * attempt is kept in memory, with its lease, and tried again.
 */
import { systemCode } from "../core/errors.ts";
import { formatName } from "../core/names.ts";
import { hold, putBack } from "../mailbox/claim/claim.ts";
import { requeue } from "../mailbox/claim/requeue.ts";
import type { Trays } from "../mailbox/files/trays.ts";
import { type Settlement, settleAll } from "../mailbox/settle/settle.ts";
import type { AttemptJournal } from "./attempt-journal.ts";
import type { DiskPause } from "./disk-pause.ts";
import type { ProgressReport } from "./progress-report.ts";
import type { Attempt } from "./runner.ts";

export interface SettlerParts {
  trays: Trays;
  journal: AttemptJournal;
  report: ProgressReport;
  pause: DiskPause;
  /** Called when an attempt has ended: there may be room for more. */
  wake: () => void;
}

export class Settler {
  private readonly deps: SettlerParts;
  /** Decided attempts whose settlement has not begun. */
  private finished: Attempt[] = [];
  /** Settlements that the disk has refused so far. */
  private stuck: Attempt[] = [];
  /** Attempts that the disk has refused and that have not ended: the stuck ones, and those that are tried again just now. */
  private readonly refused = new Set<Attempt>();
  private settlingCount = 0;
  private isSettling = false;

  constructor(parts: SettlerParts) {
    this.deps = parts;
  }

  /** How many attempts are decided and not ended yet. */
  get count(): number {
    return this.finished.length + this.settlingCount + this.stuck.length;
  }

  /** @param attempt a decided one, which the next settling ends */
  add(attempt: Attempt): void {
    this.finished.push(attempt);
  }

  /** Tries refused settlements again with the next ones. */
  retryStuck(): void {
    this.finished.push(...this.stuck);
    this.stuck = [];
  }

  /**
   * Ends all decided attempts before it returns, unless callbacks follow from one of them; for durability `process`.
   * @param claim called between publishing and cleaning up, so that one write of journal lines serves both. It is not called when
   *   nothing is published, and is called again for a settlement that began anew
   */
  settleNow(claim: () => void): void {
    const settling = this.takeSettling();
    const settled = settleAll(this.deps.trays, [...settling.keys()], (published) => {
      this.notePublished(settling, published);
      claim();
      this.deps.journal.flush();
    });
    const isOver = [...settling.keys()].every((s) => s.phase === "done" || s.error !== undefined);
    if (isOver) this.afterSettling(settling);
    else void settled.then(() => this.afterSettling(settling));
  }

  /** For durability `power`: one group settles while the next one gathers, so that they share each wait for the disk. */
  settleInGroups(): void {
    if (!this.isSettling) void this.settleGroups();
  }

  /** Drops an attempt that lost its lease; the process that has the lease is responsible for the task. */
  dropFenced(attempt: Attempt): void {
    this.deps.journal.noteFenced(attempt);
    this.through(attempt);
  }

  private async settleGroups(): Promise<void> {
    this.isSettling = true;
    try {
      while (this.finished.length > 0) {
        const settling = this.takeSettling();
        await settleAll(this.deps.trays, [...settling.keys()], (published) => {
          this.notePublished(settling, published);
          this.deps.journal.flush();
        });
        this.afterSettling(settling);
        this.deps.wake();
      }
    } finally {
      this.isSettling = false;
    }
  }

  /** Gives back the attempts that run again. @returns the others, which are settled */
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
      if (attempt !== undefined) this.deps.journal.noteSettled(attempt, settlement.mayBeRecorded);
    }
  }

  private afterSettling(settling: ReadonlyMap<Settlement, Attempt>): void {
    this.settlingCount -= settling.size;
    let isAnySettled = false;
    for (const [settlement, attempt] of settling)
      isAnySettled = this.afterSettle(attempt, settlement) || isAnySettled;
    if (!isAnySettled) return;
    if (this.refused.size === 0) this.deps.pause.shorten();
    else this.deps.pause.lift();
  }

  /** @returns false when the disk refused it */
  private afterSettle(attempt: Attempt, settlement: Settlement): boolean {
    if (settlement.error !== undefined) {
      this.retryLater(attempt, settlement.error);
      return false;
    }
    const { journal, report } = this.deps;
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
    this.deps.wake();
    return true;
  }

  /** Keeps an attempt that the disk refused: its result stays in memory, its lease is kept, and it is tried again. */
  private retryLater(attempt: Attempt, error: unknown): void {
    this.stuck.push(attempt);
    this.refused.add(attempt);
    this.deps.pause.begin(`settle ${attempt.subject.task_id}`, error);
  }

  /** Gives a task back after a retry, release or hold: one rename, then the event. */
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
    const { trays, journal, report } = this.deps;
    let next: ReturnType<typeof putBack>;
    const waited = performance.now() - (attempt.heldSinceMs ?? Number.POSITIVE_INFINITY);
    const delayMs = waited >= decision.delayMs ? 0 : decision.delayMs;
    try {
      next = putBack(trays, attempt.claim, delayMs, decision.action === "retry");
    } catch (error) {
      // We cannot set the time of another user's file: the task then waits in this process.
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
    const { trays, journal, report } = this.deps;
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

  /** Gives a task back to the inbox after `cancel` without `final`, as if it had just been dropped. */
  private giveBackToInbox(attempt: Attempt): void {
    const { trays, journal } = this.deps;
    try {
      if (requeue(trays, attempt.claim)) journal.noteRequeued(attempt);
      else journal.noteFenced(attempt);
      this.through(attempt);
    } catch (error) {
      this.retryLater(attempt, error);
    }
  }

  private through(attempt: Attempt): void {
    this.refused.delete(attempt);
    this.deps.report.noteDone(attempt.readyFile);
  }
}
