/**
 * A worker process: claims accepted tasks, runs up to `slots` of them at once and has them settled. It works alike under a
 * supervisor (which offers files) and by hand (it finds them); the directory is the truth either way.
 */
import type { StopReason } from "../agents/agent.ts";
import { AgentRegistry } from "../agents/registry.ts";
import { decodeTask } from "../codec/task-codec.ts";
import { unwritable } from "../core/outcome.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { say } from "../host/say.ts";
import { Telemetry } from "../journal/telemetry.ts";
import type { Trays } from "../mailbox/trays.ts";
import { decideAttempt, leaveTrace, runAttempt } from "./attempt.ts";
import { AttemptJournal } from "./attempt-journal.ts";
import { Claimer, type WorkerSelf } from "./claimer.ts";
import { DiskPause } from "./disk-pause.ts";
import { Heartbeat } from "./heartbeat.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { ProgressReport } from "./progress-report.ts";
import type { ToSupervisor, ToWorker } from "./protocol.ts";
import type { Attempt, AttemptTools, RunHooks, Runner, WorkerParts } from "./runner.ts";
import { Settler } from "./settler.ts";
import { ShutdownSignals } from "./shutdown-signals.ts";

/** A worker without work for this long (ms) has its agents get ready. */
const AGENTS_AFTER_MS = 50;

export interface WorkerOptions {
  self: WorkerSelf;
  place: WorkerPlace;
  parts: WorkerParts;
  /** Tells the supervisor, if there is one. */
  send: (message: ToSupervisor) => void;
  /** Called once, when nothing runs any more after a stop. */
  onStopped: () => void;
}

/** Where it works, and by which settings. */
export interface WorkerPlace {
  tree: StateTree;
  trays: Trays;
  settings: Settings;
}

/** `draining`: what runs may end, and nothing is claimed; `stopping`: what runs is given back. It never goes backwards. */
type WorkerState = "open" | "draining" | "stopping" | "stopped";

export class Worker {
  private readonly o: WorkerOptions;
  private readonly tools: AttemptTools;
  private readonly runners: readonly Runner[];
  private readonly journal: AttemptJournal;
  private readonly report: ProgressReport;
  private readonly claimer: Claimer;
  private readonly settler: Settler;
  private readonly heartbeat: Heartbeat;
  private readonly leases: LeaseWatch;
  private readonly signals: ShutdownSignals;

  private readonly running = new Map<string, Attempt>();
  /** The attempt whose handler does not let go, until nothing else runs here. */
  private lingering: { lease: string; attempt: Attempt | undefined } | undefined;
  private isTurnDue = false;
  private state: WorkerState = "open";

  constructor(options: WorkerOptions) {
    const { self, place } = options;
    const { tree, trays, settings } = place;
    this.o = options;
    this.tools = { ...place, agents: new AgentRegistry(settings.agents, options.parts.kinds) };
    this.runners = options.parts.runners.map((make) => make(this.tools));
    const journals = { events: tree.events, leases: tree.leases };
    const telemetry = new Telemetry(journals, self.id, settings.lease_ttl_ms, trays.clock);
    const journal = new AttemptJournal(telemetry);
    const report = new ProgressReport({
      send: options.send,
      countExtra: () => this.countExtra(),
      countUnsettled: () => this.settler.count,
    });
    const wake = (): void => this.wake();
    const pause = new DiskPause(() => {
      this.settler.retryStuck();
      wake();
    });
    this.journal = journal;
    this.report = report;
    this.claimer = new Claimer(self, this.tools, { journal, report, pause, wake });
    this.settler = new Settler({ trays, journal, report, pause, wake });
    this.heartbeat = new Heartbeat(
      {
        processingDir: trays.processing,
        ownerPrefix: self.ownerPrefix,
        workerFile: self.workerFile,
        heartbeatMs: settings.heartbeat_ms,
      },
      wake,
    );
    this.leases = new LeaseWatch(trays, settings.heartbeat_ms, this.running, (attempt) =>
      attempt.stop.stop("fenced"),
    );
    this.signals = new ShutdownSignals(trays.clock);
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
    if (this.state === "stopped") return;
    decodeTask(Buffer.from('{"prompt":"?"}'), "warm");
    // A task that waits already has its agent do no more than it needs.
    setTimeout(() => {
      if (this.isIdle) this.tools.agents.warmUp();
    }, AGENTS_AFTER_MS).unref();
  }

  receive(message: ToWorker): void {
    switch (message.type) {
      case "ready":
        this.claimer.offer(message.files);
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
    if (this.state === "stopped") return;
    this.state = drain && this.state !== "stopping" ? "draining" : "stopping";
    if (this.state === "stopping")
      for (const lease of this.running.keys()) this.stopAttempt(lease, "stop");
    this.wake();
  }

  /**
   * A process that is not its supervisor sent this one a signal (a supervisor sends a message): what runs may end. It is not given back:
   * a task that sends it would run for ever, and keep all others from their end.
   */
  leave(signal: NodeJS.Signals): void {
    this.signals.note();
    this.o.send({ type: "leaving", signal });
    this.stop(true);
  }

  /** See `Claimer.lookAround`. */
  lookAround(): void {
    this.claimer.lookAround();
  }

  wake(): void {
    if (this.isTurnDue || this.state === "stopped") return;
    this.isTurnDue = true;
    setImmediate(() => {
      this.isTurnDue = false;
      this.turn();
    });
  }

  /** One turn: settle what ended, claim what fits; the journal lines of both go out in one write, before work starts. */
  private turn(): void {
    if (this.state === "stopped") return;
    let launched: Attempt[];
    if (this.tools.trays.durability === "process") {
      launched = this.settleAndClaim();
    } else {
      launched = this.claimMore();
      this.settler.settleInGroups();
    }
    const isTold = this.journal.flush();
    // Before they start: a handler that blocks at once must have its deadline set.
    this.updateDeadline();
    if (launched.length > 0) this.leases.start();
    for (const attempt of launched) this.start(attempt, isTold);
    this.report.tell(this.claimer.queuedCount);
    if (this.state !== "open" && this.isIdle) this.finish();
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
    if (this.state !== "open" || this.heartbeat.isDead) return [];
    const inHand = { running: this.running.size, unsettled: this.settler.count };
    const claimed = this.claimer.claim(inHand);
    for (const attempt of claimed) this.running.set(attempt.subject.lease, attempt);
    return claimed;
  }

  /** @param isTold the journals say that it starts */
  private start(attempt: Attempt, isTold: boolean): void {
    const hooks: RunHooks = {
      onProgress: (details) => {
        // A journal takes room, too: what only tells how far a run is waits for none.
        if (this.claimer.hasRoom) this.journal.noteProgress(attempt, details);
      },
      onPhase: (event, details) => this.journal.notePhase(attempt, event, details),
      onStuck: () => this.abandonProcess(attempt),
      room: () => this.claimer.roomForPrograms(this.running.size),
      onDeadline: (deadlineMs: number) => {
        attempt.deadlineMs = deadlineMs;
        this.updateDeadline();
      },
    };
    if (!isTold) leaveTrace(this.tools, attempt);
    void runAttempt(this.tools, this.runners, attempt, hooks).then(() => this.ended(attempt));
  }

  private ended(attempt: Attempt): void {
    const waitMs = this.signals.judge(attempt);
    if (waitMs > 0) {
      setTimeout(() => this.ended(attempt), waitMs);
      return;
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

  private conclude(attempt: Attempt): void {
    if (attempt.stop.reason === "fenced") {
      this.settler.dropFenced(attempt);
    } else {
      this.claimer.backOffHindered(attempt);
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
      earliest === 0 ? undefined : earliest - this.tools.trays.clock.monotonicMs(),
    );
  }

  private countExtra(): number {
    let extra = 0;
    for (const attempt of this.running.values()) if (!attempt.isOffered) extra++;
    return extra;
  }

  private finish(): void {
    this.state = "stopped";
    this.leases.stop();
    this.claimer.close();
    this.report.tellNow();
    this.journal.close();
    for (const runner of this.runners) runner.close?.();
    void this.heartbeat.stop().then(this.o.onStopped);
  }
}
