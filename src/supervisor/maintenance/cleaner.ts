/**
 * Retention of both mailboxes, of runs, journals and evidence, in slices. A clock that jumped does not cause removals. A file
 * that cannot be removed stays, and delays nothing else.
 */
import type { Clock } from "../../core/clock.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { removeTree } from "../../host/remove-tree.ts";
import { Sweep } from "../../mailbox/clean/sweep.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { finishTickets } from "../../mailbox/submit/submit-once.ts";
import { cleanAgents } from "./clean-agents.ts";
import { cleanDocuments } from "./clean-documents.ts";
import { cleanEvidence } from "./clean-evidence.ts";
import { cleanJournals } from "./clean-journals.ts";
import type { CleanPass } from "./clean-pass.ts";
import { cleanRuns } from "./clean-runs.ts";
import { cleanTalk } from "./clean-talk.ts";

const PERIOD_MS = 60_000;
/** A slice blocks a tick for about this long (ms). */
const SLICE_MS = 2;
/** If the wall clock moved this much against the monotonic one, it is not trusted and nothing is deleted (ms). */
const CLOCK_DRIFT_MAX_MS = 60 * 60 * 1000;

/** The places that are cleaned, and the clock. */
export interface CleanScope {
  readonly tree: StateTree;
  readonly mailboxes: readonly Trays[];
  readonly retention: Settings["retention"];
  readonly clock: Clock;
}

/** The cleaner's questions before it removes something. */
export interface CleanChecks {
  /** Whether a task waits for the result of this task. */
  isNeeded: (id: string) => boolean;
  /** Whether the current plan has this node; undefined when that is not known now. */
  isInPlan: () => ((id: string) => boolean) | undefined;
  /** Called with the errors of the disk. */
  onError: (error: unknown) => void;
}

export class Cleaner {
  private readonly clockOffsetMs: number;
  private atMs = 0;
  private pass: Generator<undefined, void, unknown> | undefined;

  constructor(
    private readonly scope: CleanScope,
    private readonly checks: CleanChecks,
  ) {
    this.clockOffsetMs = scope.clock.wallMs() - scope.clock.monotonicMs();
  }

  get hasWork(): boolean {
    return this.pass !== undefined;
  }

  /** Works for one slice. Never throws: tasks never wait for housekeeping. */
  work(nowMs: number): void {
    if (nowMs >= this.atMs) {
      this.atMs = nowMs + PERIOD_MS;
      if (!this.hasWork && !this.hasClockJumped()) this.pass = this.sweepAll();
    }
    const untilMs = this.scope.clock.monotonicMs() + SLICE_MS;
    try {
      do if (this.pass?.next().done !== false) this.pass = undefined;
      while (this.hasWork && this.scope.clock.monotonicMs() < untilMs);
    } catch (error) {
      // The next pass begins at its usual time.
      this.close();
      this.checks.onError(error);
    }
  }

  close(): void {
    this.pass?.return();
    this.pass = undefined;
  }

  /** Yields after each name. An error in one part does not stop the others. */
  private *sweepAll(): Generator<undefined, void, unknown> {
    const { tree, mailboxes, retention } = this.scope;
    const { onError } = this.checks;
    let nowMs: number | undefined;
    for (const trays of mailboxes) {
      try {
        nowMs = yield* this.sweepMailbox(trays);
      } catch (error) {
        onError(error);
      }
    }
    if (nowMs === undefined) return;
    const rules = { nowMs };
    const { evidence_days: evidenceDays } = retention;
    const passes: CleanPass[] = [
      cleanRuns(tree, retention, rules),
      cleanTalk(tree, retention, rules),
      cleanJournals(tree, retention, rules),
      cleanAgents(tree, retention, rules),
      cleanEvidence(tree, evidenceDays, this.checks.isInPlan(), rules),
    ];
    for (const pass of passes) {
      try {
        yield* pass;
      } catch (error) {
        onError(error);
      }
    }
    cleanDocuments(tree, nowMs);
  }

  /** @returns the time now by the clock of the file system */
  private *sweepMailbox(trays: Trays): Generator<undefined, number, unknown> {
    const { isNeeded, onError } = this.checks;
    const { outbox_days: outboxDays, failed_days: failedDays } = this.scope.retention;
    // Publish the tickets of processes that died since the start.
    void finishTickets(trays).catch(onError);
    const sweep = new Sweep(trays, { outboxDays, failedDays, isNeeded, onError });
    try {
      while (!sweep.next(1)) yield;
      for (const folder of sweep.folders) yield* removeTree(folder);
      return sweep.nowMs;
    } finally {
      sweep.close();
    }
  }

  private hasClockJumped(): boolean {
    const { clock } = this.scope;
    const driftMs = clock.wallMs() - clock.monotonicMs() - this.clockOffsetMs;
    return Math.abs(driftMs) > CLOCK_DRIFT_MAX_MS;
  }
}
