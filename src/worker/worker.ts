/**
 * A worker process: claims accepted tasks, runs up to `slots` of them at once and has them settled. It works the same way under a
 * supervisor (which offers files) and by hand (it finds them): in both cases the directory decides. It owns the slots; the steps of an
 * attempt are in `attempt.ts`, `run.ts`, `check.ts`, `decide.ts` and `settle.ts`.
 */
import type { StopReason } from "../agents/agent.ts";
import { AgentRegistry } from "../agents/registry.ts";
import { decodeTask } from "../codec/task-codec.ts";
import type { Settings } from "../core/settings.ts";
import { beatMsOf } from "../core/stall.ts";
import type { StateTree } from "../core/state-tree.ts";
import { say } from "../host/say.ts";
import { Alerts } from "../journal/alerts.ts";
import { Telemetry } from "../journal/telemetry.ts";
import { isHeld } from "../mailbox/claim/claim.ts";
import type { Trays } from "../mailbox/files/trays.ts";
import type { Settlement } from "../mailbox/settle/settle.ts";
import { decideAttempt, judgeSignal, SHUTDOWN_MS } from "./decide.ts";
import { DiskPause } from "./disk-pause.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Intake } from "./intake.ts";
import { MainBeat } from "./main-beat.ts";
import { type CountsInHand, ProgressReport } from "./progress-report.ts";
import type { Hold, ToSupervisor, ToWorker } from "./protocol.ts";
import { leaveTrace, runAttempt } from "./run.ts";
import type { Attempt, AttemptTools, RunHooks, Runner, WorkerParts } from "./runner.ts";
import { type AttemptEnd, dropFenced, endOf, giveBack, settleGroup } from "./settle.ts";
import type { WorkerSelf } from "./worker-document.ts";

/** A worker that has had no work for this long lets its agents get ready (ms). */
const AGENTS_AFTER_MS = 50;
/** How often it checks whether the leases of running attempts are still ours (ms). */
const LEASES_MS = 2000;

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
  private readonly tools: AttemptTools;
  private readonly runners: readonly Runner[];
  private readonly telemetry: Telemetry;
  private readonly report: ProgressReport;
  private readonly intake: Intake;
  private readonly heartbeat: Heartbeat;
  private readonly pause: DiskPause;

  private readonly running = new Map<string, Attempt>();
  /** Set while an attempt runs. */
  private leaseTimer: NodeJS.Timeout | undefined;
  /** The attempt whose handler does not end; kept until nothing else runs here. */
  private lingering: { lease: string; attempt: Attempt | undefined } | undefined;
  /** Until when a failure may be due to a signal to all processes (monotonic ms); 0: this process got no signal. */
  private signalUntilMs = 0;
  private isTurnDue = false;
  private state: WorkerState = "open";

  /** Decided attempts whose settlement has not begun. */
  private finished: Attempt[] = [];
  private settlingCount = 0;
  private isSettling = false;
  /** Decided attempts that the disk has refused so far. */
  private stuck: Attempt[] = [];
  /** Attempts that the disk has refused and that have not ended: the stuck ones, and those that are tried again just now. */
  private readonly refused = new Set<Attempt>();

  constructor(private readonly options: WorkerOptions) {
    const { self, place, parts } = options;
    const { tree, trays, settings } = place;
    const main = new MainBeat();
    const wake = (): void => this.wake();
    this.tools = toolsOf(place, parts, main);
    this.runners = parts.runners.map((make) => make(this.tools));
    const journals = { events: tree.events, leases: tree.leases };
    this.telemetry = new Telemetry(journals, self.id, settings.lease_ttl_ms, trays.clock);
    this.report = new ProgressReport(options.send, () => this.countInHand());
    this.pause = new DiskPause(() => this.retryStuck());
    this.intake = new Intake(self, this.tools, this.telemetry, this.pause, this.report, wake);
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
  }

  get runningCount(): number {
    return this.running.size;
  }

  get isIdle(): boolean {
    return (
      this.running.size === 0 && this.unsettledCount === 0 && this.lingering?.attempt === undefined
    );
  }

  /** How many attempts are decided and not ended yet. */
  private get unsettledCount(): number {
    return this.finished.length + this.settlingCount + this.stuck.length;
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
        this.intake.offer(message.files);
        return;
      case "control":
        this.wake();
        return;
      case "cancel":
        for (const lease of message.leases)
          this.stopAttempt(lease, message.isFinal ? "cancel" : "requeue");
        return;
      case "interrupt":
        for (const lease of message.leases) this.stopAttempt(lease, "interrupt", message.hold);
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
    this.signalUntilMs = this.tools.trays.clock.monotonicMs() + SHUTDOWN_MS;
    this.options.send({ type: "leaving", signal });
    this.stop(true);
  }

  lookAround(): void {
    this.intake.lookAround();
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
      if (!this.isSettling) void this.settleGroups();
    }
    // False when the disk refused: a later flush writes the lines.
    const isTold = this.telemetry.flush();
    // Set the deadline before they start, because a handler may block at once.
    this.updateDeadline();
    if (launched.length > 0) this.watchLeases();
    for (const attempt of launched) this.start(attempt, isTold);
    this.report.tell(this.intake.queuedCount);
    if (this.state !== "open" && this.isIdle) this.finish();
  }

  private claimMore(): Attempt[] {
    if (this.state !== "open" || this.heartbeat.isDead || this.options.mayClaim?.() === false)
      return [];
    const claimed = this.intake.claim(this.running.size, this.unsettledCount);
    for (const attempt of claimed) this.running.set(attempt.subject.lease, attempt);
    return claimed;
  }

  /** @param isTold the journals report that it starts */
  private start(attempt: Attempt, isTold: boolean): void {
    const hooks: RunHooks = {
      onProgress: (details) => {
        // Journal lines take disk space too: when space is short, progress lines are dropped.
        if (this.intake.hasRoom) this.telemetry.event("progress", attempt.subject, { details });
      },
      onPhase: (event, details) => this.telemetry.event(event, attempt.subject, details),
      onStuck: () => this.abandonProcess(attempt),
      room: () => this.intake.roomForPrograms(this.running.size),
      onDeadline: (deadlineMs: number) => {
        attempt.deadlineMs = deadlineMs;
        this.updateDeadline();
      },
    };
    if (!isTold) leaveTrace(this.tools, attempt);
    void runAttempt(this.tools, this.runners, attempt, hooks).then(() => this.ended(attempt));
  }

  private ended(attempt: Attempt): void {
    const nowMs = this.tools.trays.clock.monotonicMs();
    const waitMs = judgeSignal(attempt, this.signalUntilMs, nowMs);
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
      this.noteEnd(attempt, dropFenced(this.telemetry, attempt));
    } else {
      this.intake.backOffHindered(attempt);
      decideAttempt(this.tools, attempt);
      this.finished.push(attempt);
    }
  }

  /** For durability `process`. Settles and claims with one write of journal lines for both. */
  private settleAndClaim(): Attempt[] {
    const launched: Attempt[] = [];
    let hasClaimed = false;
    const group = this.takeFinished();
    const settled = settleGroup(this.tools.trays, this.telemetry, group, () => {
      hasClaimed = true;
      launched.push(...this.claimMore());
    });
    // All have ended before it returns, unless callbacks follow from one of them.
    const isOver = [...group.keys()].every((s) => s.phase === "done" || s.error !== undefined);
    if (isOver) this.noteEnds(group);
    else void settled.then(() => this.noteEnds(group));
    return hasClaimed ? launched : this.claimMore();
  }

  /** For durability `power`: one group settles while the next one gathers, so that they share each wait for the disk. */
  private async settleGroups(): Promise<void> {
    this.isSettling = true;
    try {
      while (this.finished.length > 0) {
        const group = this.takeFinished();
        await settleGroup(this.tools.trays, this.telemetry, group);
        this.noteEnds(group);
        this.wake();
      }
    } finally {
      this.isSettling = false;
    }
  }

  /** Gives back the attempts that run again. @returns the others, which are settled */
  private takeFinished(): Map<Settlement, Attempt> {
    const group = new Map<Settlement, Attempt>();
    const { finished } = this;
    this.finished = [];
    for (const attempt of finished) {
      if (attempt.settlement !== undefined) group.set(attempt.settlement, attempt);
      else this.noteEnd(attempt, giveBack(this.tools.trays, this.telemetry, attempt));
    }
    this.settlingCount += group.size;
    return group;
  }

  private noteEnds(group: ReadonlyMap<Settlement, Attempt>): void {
    this.settlingCount -= group.size;
    let isAnySettled = false;
    for (const [settlement, attempt] of group)
      if (this.noteEnd(attempt, endOf(this.telemetry, attempt, settlement))) isAnySettled = true;
    if (!isAnySettled) return;
    this.wake();
    if (this.refused.size === 0) this.pause.shorten();
    else this.pause.lift();
  }

  /**
   * Keeps an attempt that the disk refused: its result stays in memory, its lease is kept, and it is tried again.
   * @returns false then
   */
  private noteEnd(attempt: Attempt, end: AttemptEnd): boolean {
    if (end.isOver) {
      this.refused.delete(attempt);
      this.report.note(attempt.readyFile, end);
    } else {
      this.stuck.push(attempt);
      this.refused.add(attempt);
      this.pause.begin(`settle ${attempt.subject.task_id}`, end.error);
    }
    return end.isOver;
  }

  /** Claims first: if the disk refuses only one settlement, its next pause would hold up all other tasks. */
  private retryStuck(): void {
    this.wake();
    setImmediate(() => {
      this.finished.push(...this.stuck);
      this.stuck = [];
      this.wake();
    });
  }

  /** Checks now and then whether the leases are still ours, until no attempt runs any more. An attempt whose claimed name is gone must end. */
  private watchLeases(): void {
    const everyMs = Math.min(this.tools.settings.heartbeat_ms, LEASES_MS);
    this.leaseTimer ??= setInterval(() => {
      if (this.running.size === 0) this.stopLeaseWatch();
      for (const attempt of this.running.values())
        if (this.hasLost(attempt)) attempt.stop.stop("fenced");
    }, everyMs);
  }

  private stopLeaseWatch(): void {
    clearInterval(this.leaseTimer);
    this.leaseTimer = undefined;
  }

  /** A disk that cannot be read now proves nothing. */
  private hasLost({ claim }: Attempt): boolean {
    try {
      return !isHeld(this.tools.trays, claim);
    } catch {
      return false;
    }
  }

  private stopAttempt(lease: string, reason: StopReason, hold?: Hold): void {
    const attempt = this.running.get(lease);
    // The first reason counts, and decides where the task waits.
    if (attempt === undefined || attempt.stop.reason !== undefined) return;
    attempt.hold = hold;
    attempt.stop.stop(reason);
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

  private countInHand(): CountsInHand {
    let extra = 0;
    for (const attempt of this.running.values()) if (!attempt.isOffered) extra++;
    return { extra, unsettled: this.unsettledCount };
  }

  private finish(): void {
    this.state = "stopped";
    this.stopLeaseWatch();
    this.intake.close();
    this.report.tellNow();
    this.telemetry.close();
    for (const runner of this.runners) runner.close?.();
    void this.heartbeat.stop().then(this.options.onStopped);
  }
}

/** What the steps of each attempt work with. */
function toolsOf(place: WorkerPlace, parts: WorkerParts, main: MainBeat): AttemptTools {
  const { tree, trays, settings } = place;
  const tell = (message: string): void =>
    new Alerts(tree.alerts, trays.clock, say).alert("callback", message);
  const makeFollow = parts.follow?.[0];
  if (makeFollow !== undefined)
    trays.follow = makeFollow({ trays, runs: tree.runs, settings, tell });
  return {
    ...place,
    agents: new AgentRegistry(
      settings.agents,
      parts.kinds({ settings, stateDir: tree.dir }),
      parts.handlers,
      () => main.enter(),
    ),
    loadWorkspaces: parts.workspaces?.[0],
    requests: parts.requests ?? [],
    makeBriefing: parts.briefings?.[0],
    makeLimiter: parts.limiters?.[0],
    makeWalls: parts.walls?.[0],
    makeMeter: parts.meters?.[0],
  };
}
