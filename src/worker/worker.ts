/**
 * A worker process: claims accepted tasks, runs up to `slots` of them at once and settles them. It works alike under a
 * supervisor (which offers files) and by hand (it finds them); the directory is the truth either way.
 */
import type { StopReason } from "../agents/agent.ts";
import { AgentRegistry } from "../agents/registry.ts";
import { decodeTask } from "../codec/task-codec.ts";
import { messageOf, systemCode } from "../core/errors.ts";
import { READY_WAIT_MS_MAX, UNSETTLED_MAX } from "../core/limits.ts";
import { formatName, isReadyFile, parseName } from "../core/names.ts";
import { backoffMs } from "../core/outcome.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { recordSettled } from "../journal/settled.ts";
import { Telemetry } from "../journal/telemetry.ts";
import { claimReady, isHeld, putBack } from "../mailbox/claim.ts";
import { requeue } from "../mailbox/requeue.ts";
import { type Settlement, settleAll } from "../mailbox/settle.ts";
import type { Trays } from "../mailbox/trays.ts";
import { KvStore } from "../roadmap/kv.ts";
import {
  type Attempt,
  type AttemptTools,
  decideAttempt,
  type RunHooks,
  readAttempt,
  runAttempt,
} from "./attempt.ts";
import { Gate } from "./gate.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { ReturnedNotice, SettledNotice, ToSupervisor, ToWorker } from "./protocol.ts";

export interface WorkerOptions {
  id: string;
  slots: number;
  tree: StateTree;
  trays: Trays;
  settings: Settings;
  /** Begins every lease of this process. */
  ownerPrefix: string;
  newOwner: () => string;
  workerFile: string;
  /** Tells the supervisor, if there is one. */
  send: (message: ToSupervisor) => void;
  /** Called once, when nothing runs any more after a stop. */
  onStopped: () => void;
}

/** With so many tasks in hand a worker tells of its progress only now and then. */
const REPORT_QUEUE_MIN = 8;
const REPORT_PAUSE_MS = 4;
/** Pause before a settlement or a claim that the disk refused is tried again (ms), doubled up to the second value. */
const DISK_RETRY_MS = [100, 5000] as const;

export class Worker {
  private readonly o: WorkerOptions;
  private readonly tools: AttemptTools;
  private readonly telemetry: Telemetry;
  private readonly gate: Gate;
  private readonly heartbeat: Heartbeat;
  private readonly timer: NodeJS.Timeout;

  /** Offered or found names of `processing/`, best first. */
  private queue: { file: string; isOffered: boolean }[] = [];
  private readonly queued = new Set<string>();
  private readonly running = new Map<string, Attempt>();
  /** How often in a row each of these tasks could not be read. */
  private readonly unreadable = new Map<string, number>();
  private finished: Attempt[] = [];
  /** Settlements that the disk refused so far. */
  private stuck: Attempt[] = [];
  /** The attempt whose handler does not let go, until nothing else runs here. */
  private lingering: { lease: string; attempt: Attempt | undefined } | undefined;
  private diskRetryMs: number = DISK_RETRY_MS[0];
  /** Runs while the disk refuses: nothing is claimed before it fires. */
  private diskRetry: NodeJS.Timeout | undefined;
  private isSettling = false;
  private settlingCount = 0;
  private isTurnDue = false;
  private stopping: "no" | "drain" | "stop" = "no";
  private isStopped = false;
  /** Waiting files seen by `lookAround`: name → monotonic ms at which they may run. */
  private readonly waiting = new Map<string, number>();
  private wakeAt: NodeJS.Timeout | undefined;

  private reportTimer: NodeJS.Timeout | undefined;
  private toldUnsettled = 0;
  private done: string[] = [];
  private settled: SettledNotice[] = [];
  private returned: ReturnedNotice[] = [];

  constructor(options: WorkerOptions) {
    this.o = options;
    const { tree, trays, settings } = options;
    this.tools = {
      trays,
      settings,
      agents: new AgentRegistry(settings.agents),
      runsDir: tree.runs,
      evidenceDir: tree.evidence,
      kv: new KvStore(tree.kv, trays.clock, trays.durability),
      stateDir: tree.dir,
    };
    this.telemetry = new Telemetry(
      { events: tree.events, leases: tree.leases },
      options.id,
      settings.lease_ttl_ms,
      trays.clock,
    );
    this.gate = new Gate(tree.controlState, options.id, options.slots);
    this.heartbeat = new Heartbeat({
      processingDir: trays.processing,
      ownerPrefix: options.ownerPrefix,
      workerFile: options.workerFile,
      heartbeatMs: settings.heartbeat_ms,
    });
    this.timer = setInterval(() => this.lookAfterLeases(), Math.min(settings.heartbeat_ms, 2000));
  }

  get runningCount(): number {
    return this.running.size;
  }

  private get unsettledCount(): number {
    return this.finished.length + this.settlingCount + this.stuck.length;
  }

  get isIdle(): boolean {
    return (
      this.running.size === 0 &&
      this.finished.length === 0 &&
      this.settlingCount === 0 &&
      this.stuck.length === 0 &&
      this.lingering?.attempt === undefined
    );
  }

  /** What the first task would wait for, done while nobody does: the heartbeat, and the check of tasks, which is compiled. */
  warmUp(): void {
    if (this.isStopped) return;
    this.heartbeat.start();
    decodeTask(Buffer.from('{"prompt":"?"}'), "warm");
  }

  receive(message: ToWorker): void {
    switch (message.type) {
      case "ready":
        for (const file of message.files) this.enqueue(file, true);
        this.wake();
        return;
      case "control":
        this.wake();
        return;
      case "cancel":
        for (const lease of message.leases)
          this.stopAttempt(lease, message.isFinal ? "cancel" : "requeue");
        return;
      case "stop":
        this.stop(message.drain);
        return;
    }
  }

  /** Ends when what runs has ended (`drain`), or after giving it back. */
  stop(drain: boolean): void {
    this.stopping = drain && this.stopping !== "stop" ? "drain" : "stop";
    if (this.stopping === "stop")
      for (const lease of this.running.keys()) this.stopAttempt(lease, "stop");
    this.wake();
  }

  /** Looks for accepted tasks by itself: without a supervisor, or in case its hints were lost. */
  lookAround(): void {
    if (!this.o.settings.mailbox_enabled) return;
    let files: string[];
    try {
      files = this.o.trays.storage.list(this.o.trays.processing);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return;
      throw error;
    }
    const { clock } = this.o.trays;
    const nowMs = clock.monotonicMs();
    const present = new Set(files);
    for (const file of this.waiting.keys()) if (!present.has(file)) this.waiting.delete(file);
    let nextMs = Number.POSITIVE_INFINITY;
    for (const file of files) {
      if (!isReadyFile(file) || this.queued.has(file)) continue;
      let dueMs = this.waiting.get(file);
      if (dueMs === undefined) {
        const facts = this.o.trays.storage.look(`${this.o.trays.processing}/${file}`);
        if (facts === undefined) continue;
        // The wall clock only says how long to wait; the waiting is done on our own clock, and is bounded.
        const waitMs = Math.min(Math.max(facts.mtimeMs - clock.wallMs(), 0), READY_WAIT_MS_MAX);
        dueMs = nowMs + waitMs;
        this.waiting.set(file, dueMs);
      }
      if (dueMs <= nowMs) {
        this.waiting.delete(file);
        this.enqueue(file, false);
      } else {
        nextMs = Math.min(nextMs, dueMs);
      }
    }
    clearTimeout(this.wakeAt);
    if (nextMs !== Number.POSITIVE_INFINITY)
      this.wakeAt = setTimeout(() => this.lookAround(), nextMs - nowMs);
    if (this.queue.length > 0) this.wake();
  }

  wake(): void {
    if (this.isTurnDue || this.isStopped) return;
    this.isTurnDue = true;
    setImmediate(() => {
      this.isTurnDue = false;
      this.turn();
    });
  }

  private enqueue(file: string, isOffered: boolean): void {
    if (this.queued.has(file)) return;
    this.queued.add(file);
    this.queue.push({ file, isOffered });
  }

  /** One turn: settle what ended, claim what fits; the journal lines of both go out in one write, before work starts. */
  private turn(): void {
    if (this.isStopped) return;
    let launched: Attempt[];
    if (this.o.trays.durability === "process") {
      launched = this.settleAndClaim();
    } else {
      launched = this.claimMore();
      if (!this.isSettling) void this.settleInGroups();
    }
    this.telemetry.flush();
    // Before they start: a handler that blocks at once must have its deadline set.
    this.updateDeadline();
    if (launched.length > 0) this.heartbeat.start();
    for (const attempt of launched) this.start(attempt);
    this.report(false);
    if (this.stopping !== "no" && this.isIdle) this.finish();
  }

  /** Claims between publishing and tidying up, so that one write of journal lines carries both. All of it happens now. */
  private settleAndClaim(): Attempt[] {
    const settling = this.takeSettling();
    let launched: Attempt[] | undefined;
    void settleAll(this.o.trays, [...settling.keys()], (published) => {
      this.recordPublished(settling, published);
      launched = this.claimMore();
      this.telemetry.flush();
    });
    this.afterSettling(settling);
    return launched ?? this.claimMore();
  }

  /** With durability `power` one group settles while the next one gathers: they share each wait for the disk. */
  private async settleInGroups(): Promise<void> {
    this.isSettling = true;
    try {
      while (this.finished.length > 0) {
        const settling = this.takeSettling();
        await settleAll(this.o.trays, [...settling.keys()], (published) => {
          this.recordPublished(settling, published);
          this.telemetry.flush();
        });
        this.afterSettling(settling);
        this.wake();
      }
    } finally {
      this.isSettling = false;
    }
  }

  /** Gives back what is to run again, and takes the rest to be settled. */
  private takeSettling(): Map<Settlement, Attempt> {
    const settling = new Map<Settlement, Attempt>();
    for (const attempt of this.takeFinished()) {
      if (attempt.settlement === undefined) this.giveBack(attempt);
      else settling.set(attempt.settlement, attempt);
    }
    this.settlingCount += settling.size;
    return settling;
  }

  private recordPublished(
    settling: ReadonlyMap<Settlement, Attempt>,
    published: readonly Settlement[],
  ): void {
    for (const settlement of published) {
      const attempt = settling.get(settlement);
      if (attempt !== undefined) this.recordSettled(attempt, settlement.mayBeRecorded);
    }
  }

  private afterSettling(settling: ReadonlyMap<Settlement, Attempt>): void {
    this.settlingCount -= settling.size;
    for (const [settlement, attempt] of settling) this.afterSettle(attempt, settlement);
  }

  private takeFinished(): Attempt[] {
    const batch = this.finished;
    this.finished = [];
    return batch;
  }

  private afterSettle(attempt: Attempt, settlement: Settlement): void {
    if (settlement.error !== undefined) {
      this.retrySettling(attempt, settlement.error);
      return;
    }
    this.diskRetryMs = DISK_RETRY_MS[0];
    const { task_id: id } = attempt.subject;
    if (settlement.outcome === "fenced") this.fenced(attempt);
    else if (settlement.outcome === "conflict") {
      this.telemetry.event("conflict", attempt.subject, {
        error: "somebody else's record stands at the final name; it stays",
      });
      this.releaseLease(attempt);
      this.settled.push({ id, isCompleted: settlement.status === "completed" });
    } else this.settled.push({ id, isCompleted: settlement.status === "completed" });
    this.through(attempt);
    this.wake();
  }

  /** The disk refused: the work is done and kept in memory, the lease is kept, and it is tried again. */
  private retrySettling(attempt: Attempt, error: unknown): void {
    this.stuck.push(attempt);
    this.retryLater(`settle ${attempt.subject.task_id}`, error);
  }

  private retryLater(what: string, error: unknown): void {
    if (this.diskRetry !== undefined) return;
    process.stderr.write(
      `mailchute: cannot ${what} yet (${systemCode(error) || String(error)}); trying again in ${this.diskRetryMs} ms\n`,
    );
    this.diskRetry = setTimeout(() => {
      this.diskRetry = undefined;
      this.finished.push(...this.stuck);
      this.stuck = [];
      this.diskRetryMs = Math.min(this.diskRetryMs * 2, DISK_RETRY_MS[1]);
      this.wake();
    }, this.diskRetryMs);
  }

  /** Retry and release: one rename, then the event. */
  private giveBack(attempt: Attempt): void {
    const { outcome, decision } = attempt;
    if (decision === undefined || (decision.action !== "retry" && decision.action !== "release"))
      throw new Error("nothing to give back");
    if (outcome?.kind === "released" && outcome.message === "requeue") {
      this.giveBackToInbox(attempt);
      return;
    }
    let next: ReturnType<typeof putBack>;
    const waited = performance.now() - (attempt.heldSinceMs ?? Number.POSITIVE_INFINITY);
    const delayMs = waited >= decision.delayMs ? 0 : decision.delayMs;
    try {
      next = putBack(this.o.trays, attempt.claim, delayMs, decision.action === "retry");
    } catch (error) {
      // Somebody else's file cannot be told to wait: then it waits in our hands.
      if (systemCode(error) === "EPERM") attempt.heldSinceMs ??= performance.now();
      this.retrySettling(attempt, error);
      return;
    }
    if (next === undefined) {
      this.fenced(attempt);
    } else {
      const details = {
        error: outcome?.kind === "completed" ? null : outcome?.message,
        delay_ms: decision.delayMs,
        not_before: new Date(this.o.trays.clock.wallMs() + decision.delayMs).toISOString(),
        next_attempt: next.attempt,
      };
      this.telemetry.event(
        decision.action === "retry" ? "retry_scheduled" : "released",
        attempt.subject,
        details,
      );
      this.releaseLease(attempt);
      const unreadable =
        attempt.decoded === undefined && outcome?.kind === "deferred" ? outcome.message : undefined;
      this.returned.push({
        file: formatName(next),
        delayMs: decision.delayMs,
        ...(unreadable === undefined ? {} : { unreadable }),
      });
    }
    this.through(attempt);
  }

  /** `cancel` without `final`: as if it had just been dropped. */
  private giveBackToInbox(attempt: Attempt): void {
    try {
      if (!requeue(this.o.trays, attempt.claim)) this.fenced(attempt);
      else {
        this.telemetry.event("cancelled", attempt.subject, {
          error: "cancelled; it waits again",
        });
        this.releaseLease(attempt);
      }
      this.through(attempt);
    } catch (error) {
      this.retrySettling(attempt, error);
    }
  }

  private claimMore(): Attempt[] {
    const launched: Attempt[] = [];
    if (this.stopping !== "no" || this.queue.length === 0) return launched;
    const free = this.gate.slots() - this.running.size;
    const unsettled = this.unsettledCount;
    if (unsettled >= UNSETTLED_MAX || this.diskRetry !== undefined) return launched;
    while (launched.length < free) {
      const next = this.queue.shift();
      if (next === undefined) break;
      let attempt: Attempt | undefined;
      try {
        attempt = this.claimOne(next.file, next.isOffered);
      } catch (error) {
        this.queue.unshift(next);
        this.retryLater(`claim ${next.file}`, error);
        break;
      }
      this.queued.delete(next.file);
      if (attempt === undefined) {
        this.done.push(next.file);
        continue;
      }
      if (unsettled === 0) this.diskRetryMs = DISK_RETRY_MS[0];
      this.running.set(attempt.subject.lease, attempt);
      launched.push(attempt);
    }
    return launched;
  }

  private claimOne(file: string, isOffered: boolean): Attempt | undefined {
    const ready = parseName(file);
    if (ready === undefined || ready.stage !== "ready") return undefined;
    const claim = claimReady(this.o.trays, ready, this.o.newOwner());
    if (claim === undefined) return undefined;
    const attempt = readAttempt(this.tools, claim, file, isOffered);
    this.telemetry.lease("active", {
      ...attempt.subject,
      acquiredAtMs: attempt.startedWallMs,
      pid: process.pid,
    });
    this.telemetry.event("assigned", attempt.subject);
    this.telemetry.event("started", attempt.subject);
    return attempt;
  }

  /** No attempt is used up while the disk does not give a task or batch, so that it is asked ever less often, and not by its number. */
  private backOffUnreadable({ decoded, outcome, subject }: Attempt): void {
    if (decoded !== undefined || outcome?.kind !== "deferred") {
      this.unreadable.delete(subject.task_id);
      return;
    }
    const tries = (this.unreadable.get(subject.task_id) ?? 0) + 1;
    this.unreadable.set(subject.task_id, tries);
    const { retry } = this.o.settings;
    const policy = {
      maxAttempts: tries,
      backoffMs: retry.backoff_ms,
      backoffMaxMs: retry.backoff_max_ms,
    };
    outcome.delayMs = backoffMs(tries, policy, this.o.trays.clock.random());
  }

  private start(attempt: Attempt): void {
    const hooks: RunHooks = {
      onProgress: (details) => this.telemetry.event("progress", attempt.subject, { details }),
      onPhase: (event, details) => this.telemetry.event(event, attempt.subject, details),
      onStuck: () => this.abandonProcess(attempt),
      room: () => this.roomForLines(),
      onDeadline: (deadlineMs: number) => {
        attempt.deadlineMs = deadlineMs;
        this.updateDeadline();
      },
    };
    void runAttempt(this.tools, attempt, hooks).then(() => this.ended(attempt));
  }

  /** The slots that other attempts leave, with the batch's own, which it keeps while more runs than may; 0 while paused. */
  private roomForLines(): number {
    return this.gate.isClosed ? 0 : Math.max(1, this.gate.slots() - this.running.size + 1);
  }

  private ended(attempt: Attempt): void {
    this.running.delete(attempt.subject.lease);
    if (attempt.subject.lease === this.lingering?.lease) this.lingering.attempt = attempt;
    else this.conclude(attempt);
    if (this.running.size === 0 && this.lingering?.attempt !== undefined) {
      this.conclude(this.lingering.attempt);
      this.lingering = undefined;
    }
    this.wake();
  }

  private conclude(attempt: Attempt): void {
    if (attempt.stop.reason === "fenced") {
      this.fenced(attempt);
      this.through(attempt);
    } else {
      this.backOffUnreadable(attempt);
      this.decide(attempt);
      this.finished.push(attempt);
    }
  }

  private decide(attempt: Attempt): void {
    try {
      decideAttempt(this.tools, attempt);
    } catch (error) {
      // Its record cannot be put together: too long for a string, or it gives another text each time it is asked.
      attempt.outcome = {
        kind: "failed",
        failure: "handler",
        code: "ErrAgent",
        message: `what it came to cannot be written down: ${messageOf(error)}`,
        exitCode: null,
        signal: null,
        canRetry: true,
      };
      decideAttempt(this.tools, attempt);
    }
  }

  /** The lease was taken by somebody who thought us dead: say so, change nothing. */
  private fenced(attempt: Attempt): void {
    this.telemetry.event("fenced", attempt.subject, {
      error: "the lease was taken over; this attempt's work is dropped",
    });
  }

  private recordSettled(attempt: Attempt, mayBeRecorded: boolean | undefined): void {
    const { outcome } = attempt;
    const isFailure = outcome?.kind === "failed";
    const details = {
      isCompleted: !isFailure,
      acquiredAtMs: attempt.startedWallMs,
      pid: process.pid,
      durationMs: attempt.durationMs,
      error: isFailure ? outcome.message : null,
      kind: isFailure ? outcome.failure : null,
      ...(attempt.counts === undefined ? {} : { batch: attempt.counts }),
    };
    recordSettled(this.telemetry, attempt.subject, details, mayBeRecorded);
  }

  private releaseLease(attempt: Attempt): void {
    this.telemetry.lease("released", {
      ...attempt.subject,
      acquiredAtMs: attempt.startedWallMs,
      pid: process.pid,
    });
  }

  private through(attempt: Attempt): void {
    this.done.push(attempt.readyFile);
  }

  private stopAttempt(lease: string, reason: StopReason): void {
    this.running.get(lease)?.stop.stop(reason);
  }

  /** Fencing, for work that is still running: whose claimed name is gone has lost its lease. */
  private lookAfterLeases(): void {
    for (const [lease, attempt] of this.running) {
      if (!isHeld(this.o.trays, attempt.claim)) this.stopAttempt(lease, "fenced");
    }
  }

  /**
   * A handler ignores its abort signal: everything else is given back, then its task, then the process ends and is
   * replaced. In this order, so that the next run of the task does not overlap with the old one for long.
   */
  private abandonProcess(stuck: Attempt): void {
    this.lingering ??= { lease: stuck.subject.lease, attempt: undefined };
    process.stderr.write(
      `mailchute: the handler of ${stuck.subject.task_id} does not stop; this worker process ends\n`,
    );
    this.stop(false);
  }

  private updateDeadline(): void {
    let earliest = 0;
    for (const { deadlineMs } of this.running.values()) {
      if (deadlineMs > 0 && (earliest === 0 || deadlineMs < earliest)) earliest = deadlineMs;
    }
    this.heartbeat.setDeadline(
      earliest === 0 ? undefined : earliest - this.o.trays.clock.monotonicMs(),
    );
  }

  /** Tells the supervisor: at once when we may need more, else in one message for many tasks. */
  private report(isUrgent: boolean): void {
    if (!isUrgent && this.queue.length > REPORT_QUEUE_MIN) {
      this.reportTimer ??= setTimeout(() => this.report(true), REPORT_PAUSE_MS);
      return;
    }
    clearTimeout(this.reportTimer);
    this.reportTimer = undefined;
    const unsettled = this.unsettledCount;
    if (
      this.done.length === 0 &&
      this.settled.length === 0 &&
      this.returned.length === 0 &&
      unsettled === this.toldUnsettled
    )
      return;
    this.toldUnsettled = unsettled;
    let extra = 0;
    for (const attempt of this.running.values()) if (!attempt.isOffered) extra++;
    this.o.send({
      type: "progress",
      done: this.done,
      settled: this.settled,
      returned: this.returned,
      extra,
      unsettled,
    });
    this.done = [];
    this.settled = [];
    this.returned = [];
  }

  private finish(): void {
    this.isStopped = true;
    clearInterval(this.timer);
    clearTimeout(this.wakeAt);
    this.report(true);
    this.telemetry.close();
    this.tools.kv.close();
    void this.heartbeat.stop().then(this.o.onStopped);
  }
}
