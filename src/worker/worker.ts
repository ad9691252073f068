/**
 * A worker process: claims accepted tasks, runs up to `slots` of them at once and has them settled. It works alike under a
 * supervisor (which offers files) and by hand (it finds them); the directory is the truth either way.
 */
import type { StopReason } from "../agents/agent.ts";
import { AgentRegistry } from "../agents/registry.ts";
import { decodeTask } from "../codec/task-codec.ts";
import { UNSETTLED_MAX } from "../core/limits.ts";
import { parseName } from "../core/names.ts";
import { backoffMs, retryPolicyOf, unwritable } from "../core/outcome.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import type { Task } from "../core/task.ts";
import { DiskRoom } from "../host/disk-room.ts";
import { say } from "../host/say.ts";
import { Telemetry } from "../journal/telemetry.ts";
import { claimReady, isHeld } from "../mailbox/claim.ts";
import { readIfThere } from "../mailbox/steps.ts";
import { pathIn, type Trays } from "../mailbox/trays.ts";
import { decideAttempt, leaveTrace, readAttempt, runAttempt } from "./attempt.ts";
import { AttemptJournal } from "./attempt-journal.ts";
import { DiskPause } from "./disk-pause.ts";
import { Gate } from "./gate.ts";
import { Heartbeat } from "./heartbeat.ts";
import { ProgressReport } from "./progress-report.ts";
import type { ToSupervisor, ToWorker } from "./protocol.ts";
import { type ReadyFile, ReadyQueue } from "./ready-queue.ts";
import { RoomWatch } from "./room-watch.ts";
import type { Attempt, AttemptTools, MakeRunner, RunHooks, Runner } from "./runner.ts";
import { Settler } from "./settler.ts";

/** A worker without work for this long (ms) has its agents get ready. */
const AGENTS_AFTER_MS = 50;
/**
 * After a signal from outside a failure waits so long (ms): where all processes got one, as when the machine goes down, the
 * supervisor has us give back what runs, and what failed of that signal has not used up its attempt.
 */
const SHUTDOWN_MS = 1000;
/** What a system sends to all processes when it goes down. */
const SHUTDOWN_SIGNALS: ReadonlySet<string> = new Set(["SIGTERM", "SIGINT", "SIGHUP"]);
/** A program's end by such a signal may be known before our own signal is: the system delivers them in no order (ms). */
const OWN_SIGNAL_MS = 200;
/** How often it is asked whether the leases of what runs are still ours (ms). */
const LEASE_LOOK_MS = 2000;

export interface WorkerOptions {
  id: string;
  slots: number;
  tree: StateTree;
  trays: Trays;
  settings: Settings;
  runners: readonly MakeRunner[];
  /** Begins every lease of this process. */
  ownerPrefix: string;
  /** @param isBeside others run in this process */
  newOwner: (isBeside: boolean) => string;
  workerFile: string;
  /** Whether there is a supervisor that offers it what it is to claim. */
  isSupervised: () => boolean;
  /** Tells the supervisor, if there is one. */
  send: (message: ToSupervisor) => void;
  /** Called once, when nothing runs any more after a stop. */
  onStopped: () => void;
}

/** The task, or undefined when the bytes hold none: the worker that claims it reports that. */
function decodeIfTask(bytes: Buffer, id: string): Task | undefined {
  try {
    return decodeTask(bytes, id).task;
  } catch {
    return undefined;
  }
}

export class Worker {
  private readonly o: WorkerOptions;
  private readonly tools: AttemptTools;
  private readonly runners: readonly Runner[];
  private readonly journal: AttemptJournal;
  private readonly report: ProgressReport;
  private readonly pause: DiskPause;
  private readonly room: RoomWatch;
  private readonly queue: ReadyQueue;
  private readonly settler: Settler;
  private readonly gate: Gate;
  private readonly heartbeat: Heartbeat;
  /** While something runs. */
  private leaseTimer: NodeJS.Timeout | undefined;

  private readonly running = new Map<string, Attempt>();
  /** How often in a row the disk or the machine refused each of these tasks. */
  private readonly hindered = new Map<string, number>();
  /** The attempt whose handler does not let go, until nothing else runs here. */
  private lingering: { lease: string; attempt: Attempt | undefined } | undefined;
  private isTurnDue = false;
  private stopping: "no" | "drain" | "stop" = "no";
  private isStopped = false;
  /** Monotonic ms until which a failure may be due to a signal that all processes got. */
  private shutdownUntilMs = 0;
  /** Attempts that have waited for our own signal. */
  private readonly awaited = new WeakSet<Attempt>();

  constructor(options: WorkerOptions) {
    this.o = options;
    const { tree, trays, settings } = options;
    this.tools = {
      trays,
      settings,
      agents: new AgentRegistry(settings.agents),
      tree,
    };
    this.runners = options.runners.map((make) => make(this.tools));
    const journals = { events: tree.events, leases: tree.leases };
    this.journal = new AttemptJournal(
      new Telemetry(journals, options.id, settings.lease_ttl_ms, trays.clock),
    );
    this.report = new ProgressReport({
      send: options.send,
      countExtra: () => this.countExtra(),
      countUnsettled: () => this.settler.count,
    });
    this.pause = new DiskPause(() => {
      this.settler.retryStuck();
      this.wake();
    });
    const wake = (): void => this.wake();
    this.queue = new ReadyQueue(trays, settings.retry.backoff_max_ms, wake);
    this.room = new RoomWatch(new DiskRoom(tree, settings.free_bytes_min), trays.clock, wake);
    const { journal, report, pause } = this;
    this.settler = new Settler({ trays, journal, report, pause, wake });
    this.gate = new Gate(tree.controlState, options.id, options.slots);
    const beat = {
      processingDir: trays.processing,
      ownerPrefix: options.ownerPrefix,
      workerFile: options.workerFile,
      heartbeatMs: settings.heartbeat_ms,
    };
    this.heartbeat = new Heartbeat(beat, wake);
  }

  get runningCount(): number {
    return this.running.size;
  }

  get isIdle(): boolean {
    return (
      this.running.size === 0 && this.settler.count === 0 && this.lingering?.attempt === undefined
    );
  }

  /**
   * Before the first claim: without it leases would expire.
   * @param onRunning see `Heartbeat.start`
   * @throws what the system says when it can make no thread
   */
  startHeartbeat(onRunning?: () => void): void {
    this.heartbeat.start(onRunning);
  }

  /** Compiles the check of tasks while nothing waits, so that the first task does not wait for it. */
  warmUp(): void {
    if (this.isStopped) return;
    decodeTask(Buffer.from('{"prompt":"?"}'), "warm");
    // A task that waits already has its agent do no more than it needs.
    setTimeout(() => {
      if (this.isIdle) this.tools.agents.warmUp();
    }, AGENTS_AFTER_MS).unref();
  }

  receive(message: ToWorker): void {
    switch (message.type) {
      case "ready":
        for (const file of message.files) this.queue.add(file, true);
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

  /**
   * A process that is not its supervisor sent this one a signal (a supervisor sends a message): what runs may end. It is not given back:
   * a task that sends it would run for ever, and keep all others from their end.
   */
  leave(signal: NodeJS.Signals): void {
    this.shutdownUntilMs = this.o.trays.clock.monotonicMs() + SHUTDOWN_MS;
    this.o.send({ type: "leaving", signal });
    this.stop(true);
  }

  /** Looks for accepted tasks by itself: without a supervisor, or in case its hints were lost. */
  lookAround(): void {
    if (!this.o.settings.mailbox_enabled) return;
    try {
      this.queue.lookAround();
    } catch (error) {
      this.pause.begin("look around", error);
    }
  }

  wake(): void {
    if (this.isTurnDue || this.isStopped) return;
    this.isTurnDue = true;
    setImmediate(() => {
      this.isTurnDue = false;
      this.turn();
    });
  }

  /** One turn: settle what ended, claim what fits; the journal lines of both go out in one write, before work starts. */
  private turn(): void {
    if (this.isStopped) return;
    let launched: Attempt[];
    if (this.o.trays.durability === "process") {
      launched = this.settleAndClaim();
    } else {
      launched = this.claimMore();
      this.settler.settleInGroups();
    }
    const isTold = this.journal.flush();
    // Before they start: a handler that blocks at once must have its deadline set.
    this.updateDeadline();
    if (launched.length > 0) this.watchLeases();
    for (const attempt of launched) this.start(attempt, isTold);
    this.report.tell(this.queue.size);
    if (this.stopping !== "no" && this.isIdle) this.finish();
  }

  /** One write of journal lines carries what has settled and what is claimed. */
  private settleAndClaim(): Attempt[] {
    const launched: Attempt[] = [];
    let hasClaimed = false;
    this.settler.settleNow(() => {
      hasClaimed = true;
      launched.push(...this.claimMore());
    });
    return hasClaimed ? launched : this.claimMore();
  }

  private claimMore(): Attempt[] {
    const launched: Attempt[] = [];
    if (this.stopping !== "no" || this.queue.size === 0 || this.heartbeat.isDead) return launched;
    const free = this.gate.slots() - this.running.size;
    const unsettled = this.settler.count;
    if (unsettled >= UNSETTLED_MAX || this.pause.isOn || !this.room.hasRoom) return launched;
    const { isPaused } = this.gate;
    if (isPaused) this.queue.bringForward((file) => this.gate.mayBegin(file));
    while (launched.length < free) {
      const next = this.queue.first;
      if (next === undefined || (isPaused && !this.gate.mayBegin(next.file))) break;
      let attempt: Attempt | undefined;
      try {
        if (this.isForOneAlone(next)) {
          this.queue.leaveToOthers(next.file);
          this.queue.drop();
          continue;
        }
        attempt = this.claimOne(next.file, next.isOffered);
      } catch (error) {
        this.pause.begin(`claim ${next.file}`, error);
        this.postpone(next.file);
        break;
      }
      this.queue.drop();
      if (attempt === undefined) {
        this.report.noteDone(next.file);
        continue;
      }
      if (unsettled === 0) this.pause.shorten();
      this.running.set(attempt.subject.lease, attempt);
      launched.push(attempt);
    }
    return launched;
  }

  /** The disk may refuse this one alone: all others go before it. */
  private postpone(file: string): void {
    const delayMs = this.hinderedDelayMs(parseName(file)?.id ?? file);
    this.queue.postpone(delayMs);
    this.report.noteDone(file);
    this.report.noteReturned({ file, delayMs });
  }

  private claimOne(file: string, isOffered: boolean): Attempt | undefined {
    const ready = parseName(file);
    if (ready === undefined || ready.stage !== "ready") return undefined;
    const claim = claimReady(this.o.trays, ready, this.o.newOwner(this.running.size > 0));
    if (claim === undefined) return undefined;
    const attempt = readAttempt(this.tools, claim, file, isOffered);
    if (attempt.unfitReason !== undefined) {
      this.queue.leaveToOthers(file);
      say(`${ready.id} is left to workers with other settings: ${attempt.unfitReason}`);
    }
    this.journal.noteClaimed(attempt);
    return attempt;
  }

  /**
   * The last run of a task whose worker died is for a process that it does not share, which the supervisor starts. What it wants
   * us to have it offers.
   */
  private isForOneAlone({ file, isOffered }: ReadyFile): boolean {
    const { slots, isSupervised, trays, settings } = this.o;
    if (isOffered || slots === 1 || !isSupervised()) return false;
    const name = parseName(file);
    if (name === undefined || name.attempt === 1 || name.isBatch === true) return false;
    const bytes = readIfThere(trays, pathIn(trays.processing, file));
    if (bytes === undefined) return false;
    return name.attempt >= retryPolicyOf(settings, decodeIfTask(bytes, name.id)).maxAttempts;
  }

  /** No attempt is used up while the disk refuses a task or batch, or the machine a run, so that its number does not tell how long to wait. */
  private backOffHindered({ outcome, subject }: Attempt): void {
    if (outcome?.kind !== "deferred" || outcome.isHindered !== true) {
      this.hindered.delete(subject.task_id);
      return;
    }
    outcome.delayMs = this.hinderedDelayMs(subject.task_id);
  }

  private hinderedDelayMs(id: string): number {
    const tries = (this.hindered.get(id) ?? 0) + 1;
    this.hindered.set(id, tries);
    const policy = retryPolicyOf(this.o.settings, undefined);
    return backoffMs(tries, policy, this.o.trays.clock.random());
  }

  /** @param isTold the journals say that it starts */
  private start(attempt: Attempt, isTold: boolean): void {
    const hooks: RunHooks = {
      onProgress: (details) => {
        // A journal takes room, too: what only tells how far a run is waits for none.
        if (this.room.hasRoom) this.journal.noteProgress(attempt, details);
      },
      onPhase: (event, details) => this.journal.notePhase(attempt, event, details),
      onStuck: () => this.abandonProcess(attempt),
      room: () => this.roomForLines(),
      onDeadline: (deadlineMs: number) => {
        attempt.deadlineMs = deadlineMs;
        this.updateDeadline();
      },
    };
    if (!isTold) leaveTrace(this.tools, attempt);
    void runAttempt(this.tools, this.runners, attempt, hooks).then(() => this.ended(attempt));
  }

  /**
   * The slots that other attempts leave, with the batch's own, which it keeps while more runs than may; 0 while paused or
   * short of room.
   */
  private roomForLines(): number {
    return this.gate.isClosed || !this.room.hasRoom
      ? 0
      : Math.max(1, this.gate.slots() - this.running.size + 1);
  }

  private ended(attempt: Attempt): void {
    if (this.awaitsOwnSignal(attempt)) {
      setTimeout(() => this.ended(attempt), OWN_SIGNAL_MS);
      return;
    }
    if (attempt.outcome?.kind === "failed" && this.shutdownUntilMs > 0) {
      const waitMs = this.shutdownUntilMs - this.o.trays.clock.monotonicMs();
      if (attempt.stop.reason === "stop")
        attempt.outcome = { kind: "released", message: "it was stopped with the machine" };
      else if (waitMs > 0) {
        setTimeout(() => this.ended(attempt), waitMs);
        return;
      }
    }
    this.running.delete(attempt.subject.lease);
    if (attempt.subject.lease === this.lingering?.lease) this.lingering.attempt = attempt;
    else this.conclude(attempt);
    if (this.running.size === 0 && this.lingering?.attempt !== undefined) {
      this.conclude(this.lingering.attempt);
      this.lingering = undefined;
    }
    this.wake();
  }

  /** True once for a program that was ended as if the machine went down, before this process knows whether it does. */
  private awaitsOwnSignal(attempt: Attempt): boolean {
    const { outcome, stop } = attempt;
    if (this.shutdownUntilMs > 0 || stop.reason !== undefined || outcome?.kind !== "failed")
      return false;
    if (!SHUTDOWN_SIGNALS.has(outcome.signal ?? "") || this.awaited.has(attempt)) return false;
    this.awaited.add(attempt);
    return true;
  }

  private conclude(attempt: Attempt): void {
    if (attempt.stop.reason === "fenced") {
      this.settler.dropFenced(attempt);
    } else {
      this.backOffHindered(attempt);
      this.decide(attempt);
      this.settler.add(attempt);
    }
  }

  private decide(attempt: Attempt): void {
    try {
      decideAttempt(this.tools, attempt);
    } catch (error) {
      attempt.outcome = unwritable(error);
      decideAttempt(this.tools, attempt);
    }
  }

  private stopAttempt(lease: string, reason: StopReason): void {
    this.running.get(lease)?.stop.stop(reason);
  }

  private watchLeases(): void {
    const everyMs = Math.min(this.o.settings.heartbeat_ms, LEASE_LOOK_MS);
    this.leaseTimer ??= setInterval(() => this.lookAfterLeases(), everyMs);
  }

  private restLeases(): void {
    clearInterval(this.leaseTimer);
    this.leaseTimer = undefined;
  }

  /** Fencing, for work that is still running: whose claimed name is gone has lost its lease. */
  private lookAfterLeases(): void {
    if (this.running.size === 0) this.restLeases();
    for (const [lease, attempt] of this.running) {
      if (this.hasLost(attempt)) this.stopAttempt(lease, "fenced");
    }
  }

  /** That the disk does not tell now is no evidence. */
  private hasLost({ claim }: Attempt): boolean {
    try {
      return !isHeld(this.o.trays, claim);
    } catch {
      return false;
    }
  }

  /**
   * A handler ignores its abort signal: everything else is given back, then its task, then the process ends and is
   * replaced. In this order, so that the next run of the task does not overlap with the old one for long.
   */
  private abandonProcess(stuck: Attempt): void {
    this.lingering ??= { lease: stuck.subject.lease, attempt: undefined };
    say(`the handler of ${stuck.subject.task_id} does not stop; this worker process ends`);
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

  private countExtra(): number {
    let extra = 0;
    for (const attempt of this.running.values()) if (!attempt.isOffered) extra++;
    return extra;
  }

  private finish(): void {
    this.isStopped = true;
    this.restLeases();
    this.queue.close();
    this.room.close();
    this.report.tellNow();
    this.journal.close();
    for (const runner of this.runners) runner.close?.();
    void this.heartbeat.stop().then(this.o.onStopped);
  }
}
