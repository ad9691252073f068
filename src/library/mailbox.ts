/**
 * The mailbox as a library, for programs that submit tasks, run them or maintain a mailbox, with or without a supervisor. It
 * keeps all promises of the protocol. Outcomes that a caller must handle are thrown as errors with a code.
 */
import { dirname, join, resolve } from "node:path";
import { encodeRecord } from "../codec/records.ts";
import type { DecodedTask } from "../codec/task-codec.ts";
import { wallSeconds } from "../core/clock.ts";
import {
  ErrInvalidTask,
  ErrInvalidTransition,
  ErrIo,
  ErrNoTasks,
  ErrTaskNotFound,
  messageOf,
} from "../core/errors.ts";
import { leaseOf, type ProcessingName, parseName } from "../core/names.ts";
import { DEFAULT_SETTINGS } from "../core/settings.ts";
import type { ErrorRecord, FailureKind, ResultRecord, Task } from "../core/task.ts";
import type { WaitingTask } from "../core/waiting-task.ts";
import { ownerSequence } from "../host/identity.ts";
import { Alerts } from "../journal/alerts.ts";
import {
  type Claim,
  claimFromInbox,
  claimReady,
  putBack,
  readClaim,
  renewClaim,
} from "../mailbox/claim/claim.ts";
import { type SweepCounts, sweepAll } from "../mailbox/clean/sweep.ts";
import type { FollowPlace, MakeFollow } from "../mailbox/files/trays.ts";
import { openTrays, type Trays } from "../mailbox/files/trays.ts";
import { checkFormat } from "../mailbox/files/tree-format.ts";
import { findClaimable } from "../mailbox/find/claimable.ts";
import { isInFlight } from "../mailbox/find/locate.ts";
import { ReadyWaits } from "../mailbox/find/ready-waits.ts";
import { hasSettled, readSettled, recordOfSubmission } from "../mailbox/find/settled-record.ts";
import type { Recovered } from "../mailbox/recover/recoverer.ts";
import { retry } from "../mailbox/retry/retry.ts";
import { newDeadLetter } from "../mailbox/settle/dead-letter.ts";
import { refuseClaim } from "../mailbox/settle/quarantine.ts";
import { newSettlement, type Settlement, settleAll } from "../mailbox/settle/settle.ts";
import { dropIdentical } from "../mailbox/submit/duplicates.ts";
import type { SubmitOutcome } from "../mailbox/submit/submit.ts";
import { LeaseJournal } from "./lease-journal.ts";
import { asErrIo, cannotRead, leaseLost } from "./mailbox-errors.ts";
import { type KnownOptions, type MailboxOptions, withDefaults } from "./mailbox-options.ts";
import { Recovery } from "./recovery.ts";
import { type NewTask, submitAllNew, submitNew } from "./submissions.ts";

/** A task that this process holds. */
export interface HeldTask {
  task: Task;
  /** The task's JSON text, exactly as it was dropped. */
  taskText: string;
  /** Number of the run, from 1. */
  attempt: number;
  maxAttempts: number;
  /** The lease, as it is written in records. No two leases are ever the same. */
  lease: string;
  /** Path of the claimed file. */
  path: string;
}

interface Held {
  claim: Claim;
  decoded: DecodedTask;
  startedMs: number;
  startedWallMs: number;
  maxAttempts: number;
  /** How the task ends. Once this is committed, no other end is possible, even if the disk refuses to publish the record. */
  settlement?: Settlement;
}

export interface FailOptions {
  kind?: FailureKind;
  code?: string;
  /** False: the task does not run again, even if it has attempts left. */
  canRetry?: boolean;
  /** The wait before the next run (ms). A pool waits at most its `retry.backoff_max_ms`. */
  delayMs?: number;
}

export class Mailbox {
  readonly dir: string;
  /** The directories of the mailbox, for functions that take them. */
  readonly trays: Trays;
  private readonly options: KnownOptions;
  private readonly newOwner = ownerSequence();
  private readonly recovery: Recovery;
  private readonly waits: ReadyWaits;
  private readonly journal: LeaseJournal;
  private readonly held = new Map<string, Held>();

  protected constructor(trays: Trays, options: MailboxOptions, makeFollow?: MakeFollow) {
    this.dir = trays.dir;
    this.trays = trays;
    this.options = withDefaults(options);
    this.waits = new ReadyWaits(trays, this.options.backoffMaxMs);
    const { agentId, leaseTtlMs, maxAttempts } = this.options;
    this.journal = new LeaseJournal(trays, agentId, leaseTtlMs);
    const { newOwner, journal } = this;
    this.recovery = new Recovery({ trays, journal, newOwner, leaseTtlMs, maxAttempts, agentId });
    if (makeFollow !== undefined) this.trays.follow = makeFollow(this.followPlace());
  }

  /** Here only the callbacks that a task itself names follow from it, because the settings of a pool are not read. */
  private followPlace(): FollowPlace {
    const { tree } = this.journal;
    const { clock } = this.trays;
    return {
      trays: this.trays,
      runs: tree?.runs ?? join(dirname(resolve(this.dir)), "runs"),
      settings: DEFAULT_SETTINGS,
      tell: (message) => {
        if (tree !== undefined) new Alerts(tree.alerts, clock, () => {}).raise("callback", message);
      },
    };
  }

  /**
   * Opens the mailbox in `dir`, and makes its trays if they are missing.
   * @throws ErrMailboxDir when it cannot be used safely, or the state tree around it needs a newer program
   */
  static open(dir: string, options: MailboxOptions = {}, makeFollow?: MakeFollow): Mailbox {
    checkFormat(dirname(resolve(dir)));
    return new Mailbox(openTrays(dir, options), options, makeFollow);
  }

  /**
   * Submits a task. When the promise resolves, the task is safe. With durability `power` it then survives even a power cut. A
   * second call with the same id and the same members changes nothing.
   * @returns the task's id, or a new one if it has none
   * @throws ErrInvalidTask, ErrTaskExists, ErrIo
   */
  async enqueue(task: NewTask, { signal }: { signal?: AbortSignal } = {}): Promise<string> {
    signal?.throwIfAborted();
    return this.inTime("enqueue", () => submitNew(this.trays, task));
  }

  /**
   * Submits many tasks, in groups that share one wait for the disk. The outcomes are in the order of the tasks; a refused task
   * does not stop the others.
   * @throws ErrInvalidTask when one of them is no valid task: then nothing is submitted; the reason of the signal, between two
   *   groups
   */
  enqueueAll(
    tasks: readonly NewTask[],
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<SubmitOutcome[]> {
    return this.inTime("enqueue", () => submitAllNew(this.trays, tasks, signal));
  }

  /**
   * Claims the best task among the accepted ones and a limited number of files in the inbox. It skips tasks with unmet
   * dependencies or a time in the future, files that are not tasks, and files of users that are not allowed (`uids`). It also
   * skips files with the id of a task that runs or has settled: a copy of a settled task is removed, and the supervisor decides
   * about other files. A claimed file that proves to be no task is refused.
   * @throws ErrNoTasks; ErrIo, also when the only tasks that wait cannot be read at the moment
   */
  claim(): HeldTask {
    return this.atOnce("claim", () => this.claimBest());
  }

  private claimBest(): HeldTask {
    let unread: ErrIo | undefined;
    for (const candidate of findClaimable(this.trays, this.waits)) {
      if (candidate.tray === "inbox" && hasSettled(this.trays, candidate.id)) {
        this.dropResend(candidate.id);
        continue;
      }
      const claim = this.claimOne(candidate);
      if (claim === undefined) continue;
      this.waits.forget(candidate.file);
      try {
        const held = this.hold(claim, readClaim(this.trays, claim));
        this.journal.noteClaimed(
          claim.name,
          this.heldOf(held).startedWallMs,
          candidate.tray === "inbox",
        );
        return held;
      } catch (error) {
        // The file was replaced between the check and the claim, or it cannot be read now. In the second case it is put back,
        // because other processes would leave it to this living process until the lease time is over.
        if (error instanceof ErrInvalidTask) {
          refuseClaim(this.trays, claim, error.code, error.message);
          continue;
        }
        putBack(this.trays, claim, 0, false);
        unread ??= cannotRead(claim, error);
      }
    }
    if (unread !== undefined) throw unread;
    throw new ErrNoTasks("nothing is waiting that could be claimed", {
      path: this.trays.inbox,
      phase: "claim",
    });
  }

  private claimOne({ tray, id, file, attempt }: WaitingTask): Claim | undefined {
    if (tray === "inbox") return claimFromInbox(this.trays, id, attempt, this.newOwner());
    const name = parseName(file) as ProcessingName;
    // A power cut left this file: its task already has a record. `recover` removes it.
    if (recordOfSubmission(this.trays, name) !== undefined) return undefined;
    return claimReady(this.trays, name, this.newOwner());
  }

  /** Renews the lease, to show other processes that the task runs. Call it every few seconds. @throws ErrLeaseLost, ErrIo */
  renew(task: HeldTask): void {
    const held = this.heldOf(task);
    if (isCommitted(held)) return;
    if (!this.atOnce("renew", () => renewClaim(this.trays, held.claim))) this.lost(task);
  }

  /**
   * Ends the task as completed. After an ErrIo, `complete` or `fail` can be called again. If an end was committed already, both
   * publish this end and do not change it.
   * @throws ErrLeaseLost when another process has taken the task (nothing was changed); ErrIo
   */
  async complete(
    task: HeldTask,
    result: { output?: unknown; verdict?: string; verdictReason?: string } = {},
  ): Promise<void> {
    const held = this.heldOf(task);
    if (isCommitted(held)) return this.settle(task, held.settlement);
    const record: ResultRecord = {
      task_id: task.task.id,
      status: "completed",
      verdict: result.verdict ?? "unknown",
      verdict_reason: result.verdictReason ?? "",
      output: result.output ?? null,
      duration_ms: Math.round(this.trays.clock.monotonicMs() - held.startedMs),
      completed_at: wallSeconds(this.trays.clock),
      attempts: task.attempt,
      agent_id: this.options.agentId,
      lease: task.lease,
      exit_code: null,
      run: null,
    };
    const bytes = encodeRecord(record, held.decoded.text);
    const { claim, decoded } = held;
    const settler = claim.name.token;
    await this.settle(task, newSettlement(claim, "completed", bytes, settler, decoded.task));
  }

  /**
   * Ends the attempt as failed. The task runs again if it has attempts left; else it becomes a dead letter in `failed/`.
   * @returns whether it will run again
   * @throws ErrLeaseLost, ErrIo: see `complete`
   */
  async fail(task: HeldTask, error: string, options: FailOptions = {}): Promise<boolean> {
    const held = this.heldOf(task);
    if (isCommitted(held)) {
      await this.settle(task, held.settlement);
      return false;
    }
    if (options.canRetry !== false && task.attempt < held.maxAttempts) {
      this.giveBack(task, held, "fail", options.delayMs ?? 0, error);
      return true;
    }
    const facts = {
      error,
      code: options.code ?? "ErrFailed",
      kind: options.kind ?? "handler",
      agentId: this.options.agentId,
      attempts: task.attempt,
      lastAttemptAt: Math.floor(held.startedWallMs / 1000),
    };
    await this.settle(task, newDeadLetter(this.trays, held.claim, facts, held.decoded));
    return false;
  }

  /**
   * Gives the task back without using up an attempt.
   * @param delayMs the wait before the next run; a pool waits at most its `retry.backoff_max_ms`
   * @throws ErrLeaseLost; ErrIo; ErrInvalidTransition when its end is committed: then only `complete` and `fail` can be called
   */
  release(task: HeldTask, delayMs = 0): void {
    const held = this.heldOf(task);
    if (isCommitted(held))
      throw new ErrInvalidTransition(
        `${task.task.id} is settled as ${held.settlement.status}, and cannot be given back`,
        {
          id: task.task.id,
          path: task.path,
          phase: "release",
          hint: "call complete again: it publishes what the disk refused",
        },
      );
    this.giveBack(task, held, "release", delayMs, null);
  }

  private giveBack(
    task: HeldTask,
    held: Held,
    phase: "fail" | "release",
    delayMs: number,
    error: string | null,
  ): void {
    const next = this.atOnce(phase, () =>
      putBack(this.trays, held.claim, delayMs, phase === "fail"),
    );
    if (next === undefined) this.lost(task);
    this.held.delete(task.lease);
    this.journal.notePutBack(held.claim.name, held.startedWallMs, {
      event: phase === "fail" ? "retry_scheduled" : "released",
      error,
      delayMs,
      notBeforeMs: this.trays.clock.wallMs() + delayMs,
      nextAttempt: next.attempt,
    });
  }

  /** Reclaims the tasks of dead or silent owners, and publishes the records that these owners had committed. @throws ErrIo */
  recover(): Promise<Recovered[]> {
    return this.inTime("recover", () => this.recovery.recover());
  }

  /** Puts a dead letter back into the inbox. @throws ErrTaskNotFound, ErrTaskExists, ErrInvalidTransition, ErrIo */
  retry(id: string): Promise<void> {
    return this.inTime("retry", async () => {
      await retry(this.trays, id);
    });
  }

  /** Removes settled records that are older than their retention, and leftover staged files. @throws ErrIo */
  sweep(): SweepCounts {
    const { outboxDays, failedDays } = this.options;
    const { nowMs: _nowMs, ...counts } = this.atOnce("sweep", () =>
      sweepAll(this.trays, { outboxDays, failedDays }),
    );
    return counts;
  }

  /**
   * The record of a settled task; undefined while the task waits, runs or is being settled.
   * @throws ErrTaskNotFound when no tray has this id; ErrIo
   */
  find(id: string): ResultRecord | ErrorRecord | undefined {
    return this.atOnce("find", () => this.findRecord(id));
  }

  private findRecord(id: string): ResultRecord | ErrorRecord | undefined {
    if (isInFlight(this.trays, id, ["ok", "err"])) return undefined;
    const settled = readSettled(this.trays, id);
    if (settled !== undefined) return settled.record;
    // The task may have moved between the two checks, or be committed but not published yet.
    if (isInFlight(this.trays, id)) return undefined;
    throw new ErrTaskNotFound(`no task ${JSON.stringify(id)}`, {
      id,
      path: this.dir,
      phase: "find",
    });
  }

  /** Runs a step, and throws a system error as ErrIo. */
  private atOnce<T>(phase: string, step: () => T): T {
    try {
      return step();
    } catch (error) {
      throw asErrIo(error, phase, this.dir);
    }
  }

  private async inTime<T>(phase: string, step: () => Promise<T>): Promise<T> {
    try {
      return await step();
    } catch (error) {
      throw asErrIo(error, phase, this.dir);
    }
  }

  private dropResend(id: string): void {
    try {
      dropIdentical(this.trays, id);
    } catch {
      // The file cannot be read now. It stays, and other tasks can still be claimed.
    }
  }

  private hold(claim: Claim, decoded: DecodedTask): HeldTask {
    const lease = leaseOf(claim.name);
    const maxAttempts = decoded.task.max_attempts ?? this.options.maxAttempts;
    const { clock } = this.trays;
    this.held.set(lease, {
      claim,
      decoded,
      maxAttempts,
      startedMs: clock.monotonicMs(),
      startedWallMs: clock.wallMs(),
    });
    return {
      task: decoded.task,
      taskText: decoded.text,
      attempt: claim.name.attempt,
      maxAttempts,
      lease,
      path: claim.path,
    };
  }

  private heldOf(task: HeldTask): Held {
    const held = this.held.get(task.lease);
    if (held === undefined) throw leaseLost({ ...task, id: task.task.id });
    return held;
  }

  private lost(task: HeldTask): never {
    const held = this.held.get(task.lease);
    this.held.delete(task.lease);
    if (held !== undefined) this.journal.noteFenced(held.claim.name);
    throw leaseLost({ ...task, id: task.task.id });
  }

  private async settle(task: HeldTask, settlement: Settlement): Promise<void> {
    const held = this.heldOf(task);
    held.settlement = settlement;
    const { startedWallMs, startedMs } = held;
    await settleAll(this.trays, [settlement], ([settled]) => {
      const durationMs = Math.round(this.trays.clock.monotonicMs() - startedMs);
      if (settled !== undefined) this.journal.noteSettled(settled, startedWallMs, durationMs);
    });
    if (settlement.error !== undefined) {
      // No other process recovers this task while this process lives, so `recover` of this mailbox must publish it, too.
      if (settlement.committedMs !== undefined) this.recovery.unfinished.add(settlement.marker);
      throw new ErrIo(`cannot settle ${task.task.id}: ${messageOf(settlement.error)}`, {
        id: task.task.id,
        path: settlement.claim.path,
        phase: "settle",
        cause: settlement.error,
        hint: "the task is still yours: try again when the disk has room",
      });
    }
    this.recovery.unfinished.delete(settlement.marker);
    if (settlement.outcome === "fenced") this.lost(task);
    this.held.delete(task.lease);
    if (settlement.recordAs !== undefined)
      this.journal.noteConflict(held.claim.name, startedWallMs, settlement.recordAs);
  }
}

function isCommitted(held: Held): held is Held & { settlement: Settlement } {
  return held.settlement?.committedMs !== undefined;
}
