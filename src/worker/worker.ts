/**
 * A worker process: claims accepted tasks, runs up to `slots` of them at once and has them settled. It works the same way under a
 * supervisor (which offers files) and by hand (it finds them): in both cases the directory decides.
 */
import type { StopReason } from "../agents/agent.ts";
import { AgentRegistry } from "../agents/registry.ts";
import { decodeTask } from "../codec/task-codec.ts";
import { unwritable } from "../core/outcome.ts";
import type { Settings } from "../core/settings.ts";
import { beatMsOf } from "../core/stall.ts";
import type { StateTree } from "../core/state-tree.ts";
import { say } from "../host/say.ts";
import { Alerts } from "../journal/alerts.ts";
import { Telemetry } from "../journal/telemetry.ts";
import type { Trays } from "../mailbox/files/trays.ts";
import { decideAttempt, leaveTrace, runAttempt } from "./attempt.ts";
import { AttemptJournal } from "./attempt-journal.ts";
import { Claimer, type WorkerSelf } from "./claimer.ts";
import { DiskPause } from "./disk-pause.ts";
import { Heartbeat } from "./heartbeat.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { MainBeat } from "./main-beat.ts";
import { ProgressReport } from "./progress-report.ts";
import type { ToSupervisor, ToWorker } from "./protocol.ts";
import type { Attempt, AttemptTools, RunHooks, Runner, WorkerParts } from "./runner.ts";
import { Settler } from "./settler.ts";
import { ShutdownSignals } from "./shutdown-signals.ts";

/** A worker that has had no work for this long lets its agents get ready (ms). */
const AGENTS_AFTER_MS = 50;

export interface WorkerOptions {
  self: WorkerSelf;
  place: WorkerPlace;
  parts: WorkerParts;
  /** Sends a message to the supervisor, if there is one. */
  send: (message: ToSupervisor) => void;
  /** False: nothing is claimed now. `wake` must follow when this changes. Left out: it may always claim. */
  mayClaim?: () => boolean;
  /** Called once after a stop, when no attempt runs any more. */
  onStopped: () => void;
}

/** The tree and settings of a worker. */
export interface WorkerPlace {
  tree: StateTree;
  trays: Trays;
  settings: Settings;
}

/** `draining`: running attempts may end, and nothing is claimed; `stopping`: running attempts are given back. States only move forward. */
type WorkerState = "open" | "draining" | "stopping" | "stopped";

export class Worker {
  private readonly options: WorkerOptions;
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
  /** The attempt whose handler does not end; kept until nothing else runs here. */
  private lingering: { lease: string; attempt: Attempt | undefined } | undefined;
  private isTurnDue = false;
  private state: WorkerState = "open";

  constructor(options: WorkerOptions) {
    const { self, place } = options;
    const { tree, trays, settings } = place;
    this.options = options;
    const { kinds, handlers } = options.parts;
    const main = new MainBeat();
    const agents = new AgentRegistry(settings.agents, kinds, handlers, () => main.enter());
    const { briefings, follow, limiters, requests = [], workspaces } = options.parts;
    const tell = (message: string): void =>
      new Alerts(tree.alerts, trays.clock, say).alert("callback", message);
    const makeFollow = follow?.[0];
    if (makeFollow !== undefined)
      trays.follow = makeFollow({ trays, runs: tree.runs, settings, tell });
    this.tools = {
      ...place,
      agents,
      loadWorkspaces: workspaces?.[0],
      requests,
      makeBriefing: briefings?.[0],
      makeLimiter: limiters?.[0],
    };
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
      // Claim first: if the disk refuses only one settlement, its next pause would hold up all other tasks.
      wake();
      setImmediate(() => {
        this.settler.retryStuck();
        wake();
      });
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
        beatMs: beatMsOf(settings, settings.heartbeat_ms),
        stallMs: settings.stall_ms,
      },
      main,
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
   * Call before the first claim: without a heartbeat leases would expire.
   * @param onRunning see `Heartbeat.start`
   * @throws the system's error when no thread can be made
   */
  startHeartbeat(onRunning?: () => void): void {
    this.heartbeat.start(onRunning);
  }

  /** Compiles the check of tasks while no task waits, so that the first task need not wait for it. */
  warmUp(): void {
    if (this.state === "stopped") return;
    decodeTask(Buffer.from('{"prompt":"?"}'), "warm");
    // If a task is waiting already, its agent prepares only what that task needs.
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
      case "interrupt":
        for (const lease of message.leases) this.stopAttempt(lease, "interrupt");
        return;
      case "stop":
        this.stop(message.drain);
        return;
    }
  }

  /** Ends when the running attempts have ended (`drain`), or after giving them back. */
  stop(drain: boolean): void {
    if (this.state === "stopped") return;
    this.state = drain && this.state !== "stopping" ? "draining" : "stopping";
    if (this.state === "stopping")
      for (const lease of this.running.keys()) this.stopAttempt(lease, "stop");
    this.wake();
  }

  /**
   * Handles a signal from a process that is not its supervisor (a supervisor sends a message). Running attempts may end and are not
   * given back: a task that sends the signal itself would otherwise run again for ever, and no other task would end.
   */
  leave(signal: NodeJS.Signals): void {
    this.signals.note();
    this.options.send({ type: "leaving", signal });
    this.stop(true);
  }

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

  /** One turn: settles ended attempts, then claims new ones. The journal lines of both are written at once, before work starts. */
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
    // Set the deadline before they start, because a handler may block at once.
    this.updateDeadline();
    if (launched.length > 0) this.leases.start();
    for (const attempt of launched) this.start(attempt, isTold);
    this.report.tell(this.claimer.queuedCount);
    if (this.state !== "open" && this.isIdle) this.finish();
  }

  /** Settles and claims with one write of journal lines for both. */
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
    if (this.state !== "open" || this.heartbeat.isDead || this.options.mayClaim?.() === false)
      return [];
    const inHand = { running: this.running.size, unsettled: this.settler.count };
    const claimed = this.claimer.claim(inHand);
    for (const attempt of claimed) this.running.set(attempt.subject.lease, attempt);
    return claimed;
  }

  /** @param isTold the journals report that it starts */
  private start(attempt: Attempt, isTold: boolean): void {
    const hooks: RunHooks = {
      onProgress: (details) => {
        // Journal lines take disk space too: when space is short, progress lines are dropped.
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
   * A handler ignores its abort signal: give back everything else, then its task; then the process ends and is replaced. With this
   * order the next run of the task overlaps with the old one only briefly.
   */
  private abandonProcess(stuck: Attempt): void {
    this.lingering ??= { lease: stuck.subject.lease, attempt: undefined };
    say(`the handler of ${stuck.subject.task_id} does not stop; its worker ends`);
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
    void this.heartbeat.stop().then(this.options.onStopped);
  }
}
