/**
 * The supervisor: one tick that looks, selects, steers and takes back. Everything from outside (files, messages, deaths)
 * only makes a tick due; what is done is decided there, from the directory, in bounded pieces.
 */
import fs from "node:fs";
import { join } from "node:path";
import { Backlog } from "../core/backlog.ts";
import type { SupervisorDocument } from "../core/documents.ts";
import { messageOf, systemCode } from "../core/errors.ts";
import { JOURNAL_ROTATE_BYTES, SLICE_MS_MAX } from "../core/limits.ts";
import { formatName, parseName, resultName } from "../core/names.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { cancellingSequence, ownerSequence } from "../host/identity.ts";
import { readVersion } from "../host/package.ts";
import { rotate } from "../journal/journal.ts";
import { Telemetry } from "../journal/telemetry.ts";
import { checkStateDir, makeTrays, openTrays, type Trays, traysAt } from "../mailbox/trays.ts";
import type { StatusCounts } from "../roadmap/progress.ts";
import { Alerts } from "./alerts.ts";
import { applyCommand } from "./apply-command.ts";
import { Bells } from "./bells.ts";
import { type CommandInHand, Commands } from "./commands.ts";
import { ControlState } from "./control-state.ts";
import { Intake } from "./intake.ts";
import { Metrics } from "./metrics.ts";
import { makePlanEngine } from "./plan/make-plan.ts";
import type { LaunchGate, PlanEngine } from "./plan/plan-engine.ts";
import { Pool } from "./pool.ts";
import { Presence, type PresenceFacts } from "./presence.ts";
import { Processing } from "./processing.ts";
import { RECOVER_MS } from "./recoverer.ts";
import { makeCommandRecovery, makeTaskRecovery } from "./recoveries.ts";
import type { Recovery } from "./recovery.ts";
import { Refusals } from "./refusals.ts";
import { Selection } from "./selection.ts";
import { SettledIds } from "./settled-ids.ts";
import { Upkeep } from "./upkeep.ts";

export interface SupervisorOptions {
  tree: StateTree;
  settings: Settings;
  /** One pass over what waits, then end. */
  once?: boolean;
  /** End when nothing is left that could run. */
  drain?: boolean;
  /** With `once`: say what would be done, and do nothing. */
  dryRun?: boolean;
  /** End after so many tasks were started. */
  maxTasks?: number;
  paused?: boolean;
  /** Lines for people: what is worth knowing as it happens. */
  onNotice?: (notice: string) => void;
}

export interface RunSummary {
  completed: number;
  failed: number;
  /** Files that are no tasks, or whose id was taken. */
  refused: number;
  /** Waiting tasks that cannot run: dependencies unmet, or no agent fits. */
  blocked: number;
  /** With `dryRun`: what would run, best first. */
  wouldRun: string[];
  endedBy: "drained" | "once" | "limit" | "stop" | "lock-lost";
  /** Nodes of the plan by status; left out without a plan. */
  roadmap?: StatusCounts;
  /** What is wrong with `roadmap.yaml`, when it cannot be used. */
  roadmapProblem?: string;
}

/** Selection waits this long for the first whole scan, so that a small inbox runs in the right order (ms). */
const FIRST_SCAN_MS = 250;
/** Listing what settled takes at most about this much of a tick (ms). */
const SETTLED_SLICE_MS = 2;
/** Done with the look around that comes next: nobody wakes for it. */
const HEARTBEAT_MS = 2000;
/** How often it looks around when nothing waits or runs (ms). */
const QUIET_MS = 1000;
/** What is due within this time is done with what is due now, when everything is looked at (ms). */
const EARLY_MS = 200;
/** Pause between two pieces of a journal that has more than one (ms). */
const JOURNAL_AGAIN_MS = 50;
/** What settled last is carried into the plan within this time, or at the next start (ms). */
const PLAN_FINISH_MS = 3000;
const FAR = Number.POSITIVE_INFINITY;

export class Supervisor {
  readonly tree: StateTree;
  readonly settings: Settings;
  private readonly o: SupervisorOptions;
  private readonly trays: Trays;
  /** False: the task mailbox is left alone, and only commands are taken. */
  private readonly isOn: boolean;
  private readonly controlTrays: Trays;
  private readonly telemetry: Telemetry;
  private readonly alerts: Alerts;
  private readonly presence: Presence;
  private readonly upkeep: Upkeep;
  private readonly newOwner = ownerSequence();
  private readonly newCanceller = cancellingSequence();

  private readonly backlog = new Backlog();
  private readonly control: ControlState;
  private readonly pool: Pool;
  private readonly settledIds: SettledIds;
  private readonly selection: Selection;
  private readonly intake: Intake;
  private readonly commands: Commands;
  private readonly processing: Processing;
  private readonly recovery: Recovery;
  private readonly controlRecovery: Recovery;
  private readonly metrics: Metrics;
  private readonly plan: PlanEngine;
  private readonly refusals: Refusals;
  /** Refused files on their way into failed/. */
  private readonly bells: Bells;

  private status: SupervisorDocument["status"] = "running";
  private isTickDue = false;
  private timer: NodeJS.Timeout | undefined;
  private timerAtMs = FAR;
  private startedMs = 0;
  private recoverAtMs = 0;
  private journalAtMs = 0;
  private heartbeatAtMs = 0;
  private isListingWanted = true;
  private isHalfWay = false;
  private readonly settledCounts = { completed: 0, failed: 0 };
  private finish: ((endedBy: RunSummary["endedBy"]) => void) | undefined;
  private endedBy: RunSummary["endedBy"] | undefined;

  constructor(options: SupervisorOptions) {
    this.o = options;
    this.tree = options.tree;
    this.settings = options.settings;
    const { tree, settings } = options;
    fs.mkdirSync(tree.dir, { recursive: true, mode: 0o700 });
    this.isOn = settings.mailbox_enabled;
    const { durability, uids } = settings;
    checkStateDir(tree.dir, uids);
    const open = this.isOn ? openTrays : traysAt;
    this.trays = open(tree.mailbox, { durability, uids });
    this.controlTrays = openTrays(tree.control, { durability, uids });
    const { clock } = this.trays;
    this.telemetry = new Telemetry(
      { events: tree.events, leases: tree.leases },
      "supervisor",
      settings.lease_ttl_ms,
      clock,
    );
    this.alerts = new Alerts(tree.alerts, clock, (notice) => options.onNotice?.(notice));
    this.presence = new Presence(tree, clock);
    const mailboxes = this.isOn ? [this.trays, this.controlTrays] : [this.controlTrays];
    this.upkeep = new Upkeep(tree, mailboxes, settings.retention, clock, (id) =>
      this.backlog.isDependency(id),
    );
    this.control = new ControlState(tree.controlState, settings.durability === "power");
    this.metrics = new Metrics(tree.metrics, tree.events, (line) => this.plan.addLine(line));
    this.pool = this.makePool();
    this.refusals = new Refusals(this.trays, this.telemetry, this.alerts);
    this.bells = new Bells(this.trays, this.controlTrays, this.isOn, this.alerts, {
      onTask: (name) => {
        this.intake.ring(name);
        this.wake();
      },
      onCommand: () => this.wake(),
      onProcessing: () => {
        this.isListingWanted = true;
        this.wake();
      },
      onFallback: () => {
        this.heartbeatAtMs = 0;
      },
    });
    this.settledIds = new SettledIds(this.trays, (error) =>
      this.alerts.report(
        `settled:${systemCode(error)}`,
        `cannot list what settled: ${messageOf(error)}`,
      ),
    );
    const { trays, backlog, pool, telemetry, settledIds } = this;
    this.plan = makePlanEngine({
      tree,
      settings,
      trays,
      telemetry,
      readJournal: () => {
        while (this.readJournal());
      },
      alerts: this.alerts,
      hint: (file) => this.intake.hint(file),
      wake: () => this.wake(),
    });
    this.selection = new Selection(trays, backlog, pool, telemetry, settledIds, {
      onAccepted: (id, file) => {
        this.intake.expectGone(file);
        this.plan.noteSelected(id);
      },
      onDuplicate: (file) => this.intake.noteDuplicate(file),
      onIoError: (file, error) => {
        this.alerts.report(
          `accept:${systemCode(error)}`,
          `cannot accept ${file}: ${messageOf(error)}`,
        );
        this.intake.hint(file);
      },
    });
    this.intake = new Intake(this.trays, this.backlog, settings, {
      refuse: (refusal) => {
        if (options.dryRun !== true) this.refusals.refuse(refusal);
      },
      report: (file, error) =>
        this.alerts.report(`inbox:${file}`, `inbox/${file}: ${messageOf(error)}`),
      isTaken: (id) => this.selection.isTaken(id),
      hasLeftResults: (id) => this.selection.hasLeftResults(id),
      isMet: (id) => this.isMet(id),
    });
    this.commands = new Commands(this.controlTrays, this.newOwner, settings.uids, {
      apply: (inHand) => this.applyCommand(inHand),
      isApplied: (nonce) => this.control.isApplied(nonce),
      onAcknowledged: (nonce) => this.control.keepApplied((other) => other !== nonce),
      onError: (error) => this.alerts.report("control", `control mailbox: ${messageOf(error)}`),
    });
    this.recovery = makeTaskRecovery({
      tree,
      trays,
      settings,
      telemetry,
      alerts: this.alerts,
      newOwner: this.newOwner,
      onReady: (name) => {
        this.processing.admit(name, formatName(name));
        this.wake();
      },
      onSettled: (id, isCompleted) => {
        this.selection.onSettled(id);
        this.countSettled(id, isCompleted);
        this.wake();
      },
    });
    this.processing = new Processing({
      trays,
      settings,
      backlog,
      selection: this.selection,
      pool,
      list: () => this.recovery.list(),
      hint: (file) => this.intake.hint(file),
    });
    this.controlRecovery = makeCommandRecovery({
      controlTrays: this.controlTrays,
      settings,
      alerts: this.alerts,
      newOwner: this.newOwner,
      onReady: (file) => this.commands.takeReady(file),
    });
  }

  /**
   * Runs until it is drained, stopped or loses its lock.
   * @throws ErrSupervisorRunning when another live supervisor owns the tree; ErrIo when it cannot say so itself
   */
  async run(): Promise<RunSummary> {
    if (this.o.dryRun === true) return this.dryRun();
    await this.presence.take(this.presenceFacts());
    this.startedMs = this.trays.clock.monotonicMs();
    this.telemetry.note("supervisor_started", { pid: process.pid, version: readVersion() });
    if (this.o.paused === true && !this.control.current.paused) {
      this.control.change({
        paused: true,
        paused_at: this.presence.startedAt,
        paused_by: "run --paused",
      });
    }
    const { max_workers } = this.control.current;
    if (max_workers !== null && this.o.once !== true) this.pool.setMaxSlots(max_workers);
    const ended = new Promise<RunSummary["endedBy"]>((resolve) => {
      this.finish = resolve;
      // Asked to end while it was starting.
      if (this.endedBy !== undefined) resolve(this.endedBy);
    });
    this.pool.survey();
    this.pool.ensure();
    if (!this.isOn)
      this.alerts.notice("the task mailbox is off (mailbox_enabled: false); commands are taken");
    this.shareSlots();
    await this.recoverAtStart();
    this.bells.start();
    this.intake.hint(undefined);
    void this.plan.start(this.o.once === true).then(() => this.wake());
    this.wake();
    const endedBy = await ended;
    await this.shutDown(endedBy);
    return this.summary(endedBy);
  }

  /** Asks it to end: after what runs has ended (`drain`), or after giving it back. A second call hurries the first. */
  stop(drain: boolean): void {
    if (this.status === "draining" && !drain) this.pool.hurry();
    this.status = drain ? "draining" : "stopping";
    this.end("stop");
  }

  // ── the tick ────────────────────────────────────────────────────────────────────────────────────────────────────

  private wake(): void {
    if (this.isTickDue || this.endedBy !== undefined) return;
    this.isTickDue = true;
    setImmediate(() => {
      this.isTickDue = false;
      try {
        this.tick();
      } catch (error) {
        // One bad moment must not end hours of work: say it, look again.
        this.alerts.report("tick", `unexpected: ${messageOf(error)}`);
        this.sleepUntil(this.trays.clock.monotonicMs() + 250);
      }
    });
  }

  private tick(): void {
    if (this.endedBy !== undefined) return;
    const { clock } = this.trays;
    const nowMs = clock.monotonicMs();
    this.commands.work();
    if (this.isOn) {
      this.intake.work(nowMs + SLICE_MS_MAX);
      this.settledIds.work(clock.monotonicMs() + SETTLED_SLICE_MS);
    }
    const isLookDue = nowMs >= this.recoverAtMs || this.isListingWanted;
    if (isLookDue) this.lookAtProcessing(nowMs);
    // What is nearly due is done now: each time that we wake costs more than what is done.
    const dueMs = isLookDue ? nowMs + EARLY_MS : nowMs;
    if (dueMs >= this.journalAtMs) this.followJournal(nowMs);
    const nextDueMs = this.backlog.promoteDue(clock.wallMs(), nowMs);
    this.plan.work(this.planGate(nowMs));
    const hasMore = this.launch(nowMs);
    if (dueMs >= this.heartbeatAtMs) this.heartbeat(nowMs);
    if (this.intake.isComplete || !this.isOn) this.upkeep.work(nowMs);
    if (this.isOver()) return;
    const isWalking = (this.isOn && this.settledIds.hasWork) || this.upkeep.hasWork;
    const isLooking =
      this.isOn && this.intake.hasWork && !(this.o.once === true && this.intake.isComplete);
    if (hasMore || isLooking || isWalking) this.wake();
    else this.sleepUntil(this.nextMs(nowMs, nextDueMs));
  }

  private launch(nowMs: number): boolean {
    if (!this.mayLaunch(nowMs)) return false;
    const hasMore = this.selection.select(this.launchesLeft(), this.isReplanning());
    if (this.selection.offeredCount > 0) {
      this.recoverAtMs = Math.min(this.recoverAtMs, nowMs + RECOVER_MS);
      this.journalAtMs = Math.min(this.journalAtMs, nowMs + RECOVER_MS);
    }
    return hasMore;
  }

  private planGate(nowMs: number): LaunchGate | undefined {
    if (!this.mayLaunch(nowMs)) return undefined;
    return {
      // A node is in progress when it is about to run, not while the workers are still starting.
      slots: this.pool.readySlots,
      launchesMax: this.launchesLeft() - this.plan.unselectedCount,
      onlyPlanners: this.isReplanning(),
    };
  }

  private mayLaunch(nowMs: number): boolean {
    const isScanned =
      (this.intake.isComplete && this.settledIds.isComplete) ||
      nowMs - this.startedMs > FIRST_SCAN_MS;
    return isScanned && !this.control.current.paused && this.isOn;
  }

  /** While the plan is made anew only planners start. Ends when the planner node has settled. */
  private isReplanning(): boolean {
    if (!this.control.current.replan_paused || !this.plan.isStarted)
      return this.control.current.replan_paused;
    if (this.plan.isPlanning()) return true;
    this.control.change({ replan_paused: false });
    this.telemetry.note("replan_finished");
    return false;
  }

  private launchesLeft(): number {
    return this.o.maxTasks === undefined
      ? FAR
      : Math.max(0, this.o.maxTasks - this.selection.launchedCount);
  }

  private nextMs(nowMs: number, nextDueMs: number | undefined): number {
    const relookMs = this.commands.relookMs;
    return Math.min(
      this.recoverAtMs,
      this.journalAtMs,
      this.plan.nextMs(),
      this.intake.nextLookMs() ?? FAR,
      nextDueMs === undefined ? FAR : nowMs + Math.max(1, nextDueMs),
      relookMs === undefined ? FAR : nowMs + relookMs,
    );
  }

  private sleepUntil(atMs: number): void {
    if (this.timerAtMs === atMs) return;
    clearTimeout(this.timer);
    this.timerAtMs = atMs;
    const inMs = Math.max(1, Math.ceil(atMs - this.trays.clock.monotonicMs()));
    this.timer = setTimeout(() => {
      this.timerAtMs = FAR;
      this.wake();
    }, inMs);
  }

  /** True when there is no reason to go on. */
  private isOver(): boolean {
    if (this.presence.isLost) {
      this.end("lock-lost");
      return true;
    }
    const isLimited = this.o.maxTasks !== undefined && this.launchesLeft() === 0;
    if (this.o.drain !== true && this.o.once !== true && !isLimited) return false;
    if (this.commands.isBusy) return false;
    if (!this.isOn) {
      this.end(this.o.once === true ? "once" : "drained");
      return true;
    }
    if (!this.intake.isComplete || !this.plan.isStarted) return false;
    // A pass is over, or a limit reached, when what was started has ended; what waits for its retry does not hold it up.
    const isPassOver =
      this.selection.offeredCount === 0 && !this.processing.isBusy() && !this.plan.isApplying();
    const canLaunch =
      (this.backlog.count("runnable") > 0 || this.plan.canLaunch(this.isReplanning())) &&
      !this.control.current.paused;
    if (this.o.once === true && isPassOver && !canLaunch) this.end("once");
    else if (isLimited && isPassOver) this.end("limit");
    else if (this.o.drain === true && !this.intake.hasWork && this.isDrained()) this.end("drained");
    return this.endedBy !== undefined;
  }

  private isDrained(): boolean {
    const left =
      this.backlog.count("runnable") + this.backlog.count("delayed") + this.intake.unsettledCount;
    if (left > 0 || this.selection.inFlight.size > 0) return false;
    // A retry that stands half-way ends in the inbox: then there is more to do.
    const wasHalfWay = this.isHalfWay;
    this.isHalfWay = this.processing.hasHalfMoves();
    if (wasHalfWay && !this.isHalfWay) this.intake.hint(undefined);
    if (this.isHalfWay || this.intake.hasWork) return false;
    return this.plan.isIdle(this.isReplanning());
  }

  private end(endedBy: RunSummary["endedBy"]): void {
    if (this.endedBy !== undefined) return;
    this.endedBy = endedBy;
    clearTimeout(this.timer);
    this.finish?.(endedBy);
  }

  // ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Lists `processing/`: what to recover, what waits there, what others do. */
  private lookAtProcessing(nowMs: number): void {
    this.recoverAtMs = nowMs + this.pauseMs();
    this.isListingWanted = false;
    this.mendTrays();
    if (this.isOn) this.lookAtTasks(nowMs);
    const controlFiles = this.controlRecovery.list();
    if (controlFiles.length > 0)
      void this.controlRecovery.round(controlFiles).then(() => this.wake());
    for (const file of controlFiles)
      if (file.endsWith("~ready.json")) this.commands.takeReady(file);
    this.recheckDependencies();
  }

  private followJournal(nowMs: number): void {
    this.journalAtMs = nowMs + (this.readJournal() ? JOURNAL_AGAIN_MS : this.pauseMs());
  }

  /** How long nobody need look around (ms): longer where nothing waits or runs. */
  private pauseMs(): number {
    const isQuiet =
      this.backlog.size === 0 &&
      this.selection.inFlight.size === 0 &&
      !this.pool.hasOthers &&
      !this.plan.isInForce;
    return isQuiet ? QUIET_MS : RECOVER_MS;
  }

  /** A bounded piece of what the journal says. @returns true when there is more */
  private readJournal(): boolean {
    const { completedIds, hasMore } = this.metrics.read();
    for (const id of completedIds) this.dependencyCompleted(id);
    return hasMore;
  }

  /** A node's task may have completed with a question, or without what the plan wants: the plan knows. */
  private dependencyCompleted(id: string): void {
    if (this.plan.isDone(id) !== false) this.backlog.resolveDependency(id);
  }

  private lookAtTasks(nowMs: number): void {
    this.pool.survey();
    this.pool.ensure();
    this.shareSlots();
    this.bells.watchProcessing(this.pool.hasOthers);
    this.intake.sweepDue(nowMs);
    const files = this.recovery.list();
    this.processing.take(files);
    this.plan.survey(files);
    const round = this.recovery.round(files);
    if (files.length > 0) void round.then(() => this.wake());
  }

  private mendTrays(): void {
    try {
      if (this.isOn) makeTrays(this.trays);
      makeTrays(this.controlTrays);
    } catch (error) {
      this.alerts.report("trays", messageOf(error));
    }
    if (this.bells.rearm()) this.intake.restartScan();
  }

  private recheckDependencies(): void {
    for (const id of [...this.backlog.dependencies()].slice(0, 512))
      if (this.isMet(id)) this.backlog.resolveDependency(id);
  }

  private isMet(id: string): boolean {
    return (
      this.plan.isDone(id) ??
      this.trays.storage.look(join(this.trays.outbox, resultName(id))) !== undefined
    );
  }

  // ── recovery ────────────────────────────────────────────────────────────────────────────────────────────────────

  private async recoverAtStart(): Promise<void> {
    const commands = this.controlRecovery.list();
    const nonces = new Set(commands.map((file) => parseName(file)?.submission));
    this.control.keepApplied((nonce) => nonces.has(nonce));
    // Commands first: a cancel that was under way goes on with the lease that recovery would give back.
    const commanded = this.controlRecovery.round(commands, true);
    for (const file of commands) this.commands.takeReady(file);
    await commanded;
    if (this.isOn) await this.recovery.round(this.recovery.list(), true);
  }

  // ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────

  private makePool(): Pool {
    const { tree, settings } = this.o;
    const boot = { stateDir: tree.dir, settings, mailboxDir: tree.mailbox };
    return new Pool(settings, tree.workers, boot, {
      onStarted: (worker) => {
        this.telemetry.note("worker_started", { id: worker.id, pid: worker.pid });
        this.shareSlots();
      },
      onChange: () => {
        this.isListingWanted = true;
        this.wake();
      },
      onProgress: (message) => {
        for (const { file, delayMs, unreadable } of message.returned) {
          const id = parseName(file)?.id;
          if (unreadable !== undefined)
            this.alerts.report(
              `unreadable:${id}`,
              `${id} waits because its file cannot be read; it is tried again, ever less often: ${unreadable}`,
              FAR,
            );
          const before = [...message.done]
            .map((f) => this.selection.offeredTask(f))
            .find((t) => t?.id === parseName(file)?.id);
          if (!this.selection.onReturned(file, delayMs, before)) this.isListingWanted = true;
        }
        this.selection.onDone(message.done);
        if (this.pool.isOversubscribed) this.isListingWanted = true;
        for (const { id, isCompleted } of message.settled) {
          this.selection.onSettled(id);
          this.countSettled(id, isCompleted);
        }
        this.wake();
      },
      onDeath: (death) => {
        if (this.endedBy === undefined) {
          this.telemetry.note("worker_stopped", { id: death.id, pid: death.pid, error: death.how });
          this.alerts.notice(
            `worker ${death.id} ended (${death.how})${death.restartInMs > 0 ? `; the next one starts in ${death.restartInMs} ms` : ""}`,
          );
          if (death.isBreakerOpen)
            this.alerts.raise(
              "restart_storm",
              `workers die one after the other without getting anything done (${death.how})`,
            );
        }
        this.selection.reoffer(death.files);
        this.isListingWanted = true;
        this.wake();
      },
    });
  }

  private shareSlots(): void {
    const running = this.processing.runningByOwner();
    this.pool.retireSurplus(running);
    if (this.control.setSlots(this.pool.shares(running))) this.pool.tellAll({ type: "control" });
  }

  private countSettled(id: string, isCompleted: boolean): void {
    this.plan.noteSettled(id);
    if (isCompleted) {
      this.settledCounts.completed++;
      this.dependencyCompleted(id);
    } else if (!this.plan.isNode(id)) {
      this.settledCounts.failed++;
      this.alerts.raise("task_failed", `${id} failed for good; see \`mailchute show ${id}\``);
    }
  }

  // ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────

  private applyCommand(inHand: CommandInHand): object | Promise<object> {
    const result = applyCommand(
      {
        trays: this.trays,
        backlog: this.backlog,
        selection: this.selection,
        pool: this.pool,
        control: this.control,
        telemetry: this.telemetry,
        eventsPath: this.tree.events,
        settings: this.settings,
        newOwner: this.newCanceller,
        plan: this.plan,
        isFixed: this.o.once === true,
        shareSlots: () => this.shareSlots(),
        wake: () => {
          this.isListingWanted = true;
          this.wake();
        },
        stop: (drain) => setTimeout(() => this.stop(drain), 0),
        hint: (file) => this.intake.hint(file),
      },
      inHand,
    );
    // What happened is told before it is acknowledged.
    this.telemetry.flush();
    return result;
  }

  // ── the supervisor's own state ──────────────────────────────────────────────────────────────────────────────────

  private heartbeat(nowMs: number): void {
    this.heartbeatAtMs = nowMs + HEARTBEAT_MS;
    this.write(() => this.presence.write(this.presenceFacts()));
    this.write(() => this.metrics.write(this.trays.clock.wallMs()));
    this.control.save();
    for (const path of [this.tree.events, this.tree.leases, this.tree.alerts])
      this.write(() => rotate(path, JOURNAL_ROTATE_BYTES, this.trays.clock.wallMs()));
    this.telemetry.flush();
    this.alerts.flush();
  }

  /** Documents are for others to look at: a full disk must not end the work. */
  private write(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.alerts.report(
        `document:${systemCode(error)}`,
        `cannot write the state of the supervisor: ${messageOf(error)}`,
      );
    }
  }

  private presenceFacts(status = this.status): PresenceFacts {
    return {
      status,
      workers: this.control.current.max_workers ?? this.settings.workers,
      processes: this.settings.processes,
      watching: this.bells.watching,
      waiting: {
        runnable: this.backlog.count("runnable"),
        delayed: this.backlog.count("delayed"),
        blocked: this.backlog.count("blocked"),
        unmatched: this.backlog.count("unmatched"),
        unsettled: this.intake.unsettledCount,
        is_complete: this.intake.isComplete,
      },
      roadmap: this.plan.counts() ?? null,
      roadmap_problem: this.plan.problem ?? null,
    };
  }

  private async shutDown(endedBy: RunSummary["endedBy"]): Promise<void> {
    clearTimeout(this.timer);
    this.bells.stop();
    this.upkeep.close();
    this.settledIds.close();
    if (endedBy === "lock-lost") this.pool.abandon();
    else {
      const status = this.status === "running" ? "draining" : this.status;
      this.write(() => this.presence.write(this.presenceFacts(status)));
      await this.pool.close(this.status !== "stopping", this.settings.grace_ms * 2 + 2000);
      if (this.isOn) await this.recovery.round(this.recovery.list());
      await this.recovery.idle();
      await this.plan.finish(PLAN_FINISH_MS);
      await this.refusals.idle();
      this.commands.work();
    }
    this.telemetry.note("supervisor_stopped", { pid: process.pid, reason: endedBy });
    this.telemetry.close();
    while (this.readJournal());
    this.metrics.close();
    try {
      this.metrics.write(this.trays.clock.wallMs());
      if (endedBy !== "lock-lost") await this.presence.leave(this.presenceFacts());
    } catch (error) {
      this.alerts.notice(`cannot write the last state: ${messageOf(error)}`);
    }
    this.alerts.close();
  }

  private async dryRun(): Promise<RunSummary> {
    this.intake.hint(undefined);
    while (this.isOn && this.intake.hasWork) this.intake.work(this.trays.clock.monotonicMs() + 100);
    this.backlog.promoteDue(this.trays.clock.wallMs(), this.trays.clock.monotonicMs());
    await this.plan.start(true);
    const wouldRun = this.plan.wouldRun();
    for (let task = this.backlog.takeBest(); task !== undefined; task = this.backlog.takeBest())
      wouldRun.push(task.id);
    const summary = this.summary("once");
    return { ...summary, wouldRun };
  }

  private summary(endedBy: RunSummary["endedBy"]): RunSummary {
    return {
      completed: this.settledCounts.completed,
      failed: this.settledCounts.failed,
      refused: this.refusals.count,
      blocked: this.backlog.count("blocked") + this.backlog.count("unmatched"),
      wouldRun: [],
      endedBy,
      ...this.plan.summary(),
    };
  }
}
