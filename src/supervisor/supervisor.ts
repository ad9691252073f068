/**
 * The supervisor: one tick that looks, selects, steers and takes back. Everything from outside (files, messages, deaths)
 * only makes a tick due; what is done is decided there, from the directory, in bounded pieces.
 */
import fs from "node:fs";
import { Backlog } from "../core/backlog.ts";
import type { SupervisorDocument } from "../core/documents.ts";
import { messageOf, systemCode } from "../core/errors.ts";
import { SLICE_MS_MAX } from "../core/limits.ts";
import { foldId, formatName } from "../core/names.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { cancellingSequence, ownerSequence } from "../host/identity.ts";
import { readVersion } from "../host/package.ts";
import { Telemetry } from "../journal/telemetry.ts";
import { checkStateDir, openTrays, type Trays, traysAt } from "../mailbox/trays.ts";
import { Alerts } from "./alerts.ts";
import { applyCommand } from "./apply-command.ts";
import { Bells } from "./bells.ts";
import { takeBackNode } from "./cancel.ts";
import type { CommandContext } from "./command-context.ts";
import { type CommandInHand, Commands } from "./commands.ts";
import { ControlState } from "./control-state.ts";
import { Ending } from "./ending.ts";
import { findHeldTasks } from "./held-tasks.ts";
import { Intake } from "./intake.ts";
import { Launching } from "./launching.ts";
import { Lookout } from "./lookout.ts";
import { makeCommandRecovery, makeTaskRecovery } from "./make-recoveries.ts";
import { Metrics } from "./metrics.ts";
import { OwnDocuments } from "./own-documents.ts";
import { makePlanEngine } from "./plan/make-plan.ts";
import type { PlanEngine } from "./plan/plan-engine.ts";
import { Pool } from "./pool.ts";
import { Presence } from "./presence.ts";
import { Processing } from "./processing.ts";
import type { RecoveryRounds } from "./recovery-rounds.ts";
import { Refusals } from "./refusals.ts";
import type { RunSummary, SupervisorOptions } from "./run-shapes.ts";
import { Selection } from "./selection.ts";
import { SettledIds } from "./settled-ids.ts";
import { TaskEnds } from "./task-ends.ts";
import { Ticker } from "./ticker.ts";
import { Upkeep } from "./upkeep.ts";
import { WorkerNews } from "./worker-news.ts";

/** Listing what settled takes at most about this much of a tick (ms). */
const SETTLED_SLICE_MS = 2;
/** What settled last is carried into the plan within this time, or at the next start (ms). */
const PLAN_FINISH_MS = 3000;
/** How often commands are looked at while the workers end (ms). */
const COMMANDS_LOOK_MS = 200;
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
  private readonly recovery: RecoveryRounds;
  private readonly controlRecovery: RecoveryRounds;
  private readonly metrics: Metrics;
  private readonly plan: PlanEngine;
  private readonly refusals: Refusals;
  private readonly bells: Bells;
  private readonly taskEnds: TaskEnds;
  private readonly workerNews: WorkerNews;
  private readonly launching: Launching;
  private readonly lookout: Lookout;
  private readonly ending: Ending;
  private readonly documents: OwnDocuments;
  private readonly ticker: Ticker;

  private status: SupervisorDocument["status"] = "running";
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
    const { alerts } = this;
    this.ticker = new Ticker(
      clock,
      () => this.tick(),
      (error) => alerts.report("tick", `unexpected: ${messageOf(error)}`),
    );
    const wake = (): void => this.ticker.wake();
    this.presence = new Presence(tree, clock);
    const mailboxes = this.isOn ? [this.trays, this.controlTrays] : [this.controlTrays];
    this.upkeep = new Upkeep(
      tree,
      mailboxes,
      settings.retention,
      clock,
      (id) => this.backlog.isNeeded(id),
      (error) => alerts.report("upkeep", `what is old stays for now: ${messageOf(error)}`),
    );
    this.control = new ControlState(tree.controlState, settings.durability === "power");
    this.metrics = new Metrics(tree.metrics, tree.events, (line) => this.plan.addLine(line));
    this.pool = this.makePool();
    this.settledIds = new SettledIds(this.trays, (error) =>
      alerts.report(
        `settled:${systemCode(error)}`,
        `cannot list what settled: ${messageOf(error)}`,
      ),
    );
    this.refusals = new Refusals(this.trays, this.telemetry, this.alerts, (id) =>
      this.settledIds.has(id),
    );
    this.bells = new Bells(this.trays, this.controlTrays, this.isOn, this.alerts, {
      onTask: (name) => {
        if (this.intake.ring(name)) wake();
      },
      onCommand: () => {
        this.commands.ring();
        wake();
      },
      onProcessing: () => this.lookSoon(),
      onFallback: () => this.documents.hurry(),
    });
    const { trays, backlog, pool, telemetry, settledIds } = this;
    this.plan = makePlanEngine({
      tree,
      settings,
      trays,
      telemetry,
      readJournal: () => {
        while (this.lookout.readJournal());
      },
      isDelayed: (id) => backlog.stateOfId(id) === "delayed",
      takeBack: async (id) => {
        // What was offered to a worker counts as running. At the start nothing was, and nothing is known yet.
        const isKnown = this.selection.inFlight.has(foldId(id));
        if (isKnown && backlog.stateOfId(id) === undefined) return;
        await takeBackNode(this.commandContext(), id);
      },
      alerts,
      hint: (file) => this.intake.hint(file),
      wake,
    });
    this.selection = new Selection(trays, backlog, pool, telemetry, settledIds, {
      onAccepted: (id, file) => {
        this.intake.expectGone(file);
        this.plan.noteSelected(id);
      },
      onDuplicate: (file) => this.intake.noteDuplicate(file),
      onIoError: (file, error) =>
        alerts.report(`accept:${systemCode(error)}`, `cannot accept ${file}: ${messageOf(error)}`),
      onVanished: (id) => this.taskEnds.noteVanished(id),
    });
    const { selection, plan, control } = this;
    const isOwn = (prefix: string): boolean => pool.isOrWasOwn(prefix);
    this.taskEnds = new TaskEnds({ trays, backlog, selection, settledIds, plan, alerts, isOwn });
    const { taskEnds } = this;
    this.intake = new Intake(this.trays, this.backlog, settings, {
      refuse: (refusal) => {
        if (options.dryRun !== true) this.refusals.refuse(refusal);
      },
      dropResend: (name, id) =>
        options.dryRun === true ? "other" : this.refusals.dropResend(name, id),
      report: (file, error) => alerts.report(`inbox:${file}`, `inbox/${file}: ${messageOf(error)}`),
      isTaken: (id) => this.selection.isTaken(id),
      hasLeftResults: (id) => this.selection.hasLeftResults(id),
      isMet: (id) => taskEnds.isMet(id),
    });
    this.commands = new Commands(this.controlTrays, this.newOwner, settings.uids, {
      apply: (inHand) => this.applyCommand(inHand),
      isApplied: (nonce) => this.control.isApplied(nonce),
      save: () => this.control.save(),
      onAcknowledged: (nonce) => this.control.keepApplied((other) => other !== nonce),
      onError: (error) => alerts.report("control", `control mailbox: ${messageOf(error)}`),
    });
    this.recovery = makeTaskRecovery({
      tree,
      trays,
      settings,
      telemetry,
      alerts,
      newOwner: this.newOwner,
      onReady: (name, isLastRun) => {
        this.processing.admit(name, formatName(name), isLastRun);
        wake();
      },
      onSettled: (id, isCompleted) => {
        taskEnds.noteSettled(id, isCompleted);
        wake();
      },
    });
    this.processing = new Processing({
      trays,
      settings,
      backlog,
      selection,
      pool,
      list: () => this.recovery.list(),
      hint: (file) => this.intake.hint(file),
    });
    this.controlRecovery = makeCommandRecovery({
      controlTrays: this.controlTrays,
      settings,
      alerts,
      newOwner: this.newOwner,
      onReady: (file) => this.commands.takeReady(file),
    });
    const { isOn, intake, processing, commands, presence, metrics, bells, controlTrays } = this;
    const { recovery, controlRecovery } = this;
    // Each of the following takes what it names of these.
    const parts = {
      tree,
      settings,
      clock,
      isOn,
      isOnePass: options.once === true,
      isDrain: options.drain === true,
      launchesMax: options.maxTasks ?? FAR,
      trays,
      controlTrays,
      backlog,
      intake,
      settledIds,
      selection,
      processing,
      pool,
      plan,
      taskEnds,
      commands,
      control,
      recovery,
      controlRecovery,
      presence,
      metrics,
      bells,
      telemetry,
      alerts,
      isEnding: () => this.endedBy !== undefined,
      shareSlots: () => this.shareSlots(),
      wantListing: () => this.lookout.wantListing(),
      wake,
    };
    this.workerNews = new WorkerNews(parts);
    this.lookout = new Lookout(parts);
    this.documents = new OwnDocuments(parts);
    this.launching = new Launching(parts);
    this.ending = new Ending({ ...parts, launching: this.launching });
  }

  /**
   * Runs until it is drained, stopped or loses its lock.
   * @throws ErrSupervisorRunning when another live supervisor owns the tree; ErrIo when it cannot say so itself
   */
  async run(): Promise<RunSummary> {
    if (this.o.dryRun === true) return this.dryRun();
    await this.documents.introduce(this.status);
    this.launching.start(this.trays.clock.monotonicMs());
    this.telemetry.note("supervisor_started", { pid: process.pid, version: readVersion() });
    if (this.o.paused === true && !this.control.current.paused) {
      this.control.change({
        paused: true,
        paused_at: this.presence.startedAt,
        paused_by: "run --paused",
      });
    }
    const remembered = this.o.once === true ? undefined : this.rememberedSlots();
    if (remembered !== undefined) this.pool.setMaxSlots(remembered);
    this.o.onStart?.({
      slots: remembered ?? this.settings.workers,
      areSlotsRemembered: remembered !== undefined,
    });
    this.tellWhatHolds();
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
    await this.lookout.recoverAtStart();
    this.bells.start();
    this.intake.hint(undefined);
    void this.plan.start(this.o.once === true).then(() => this.ticker.wake());
    this.ticker.wake();
    const endedBy = await ended;
    await this.shutDown(endedBy);
    return this.summary(endedBy);
  }

  /** Asks it to end: after what runs has ended (`drain`), or after giving it back. A second call hurries the first. */
  stop(drain: boolean): void {
    if (this.status === "draining" && !drain) this.pool.hurry(this.stopLimitMs);
    this.status = drain ? "draining" : "stopping";
    this.end("stop");
  }

  // ── the tick ────────────────────────────────────────────────────────────────────────────────────────────────────

  private tick(): void {
    if (this.endedBy !== undefined) return;
    const { clock } = this.trays;
    const nowMs = clock.monotonicMs();
    this.commands.work();
    if (this.isOn) {
      this.intake.work(nowMs + SLICE_MS_MAX);
      const wasWalking = this.settledIds.hasWork;
      this.settledIds.work(clock.monotonicMs() + SETTLED_SLICE_MS);
      if (wasWalking && !this.settledIds.hasWork) this.taskEnds.recheckDependencies();
    }
    const dueMs = this.lookout.work(nowMs);
    const nextDueMs = this.backlog.promoteDue(clock.wallMs(), nowMs);
    this.plan.work(this.launching.allowance(nowMs));
    const hasMore = this.launch(nowMs);
    this.documents.work(nowMs, dueMs, this.status);
    if (this.intake.isComplete || !this.isOn) this.upkeep.work(nowMs);
    const endedBy = this.ending.find();
    if (endedBy !== undefined) {
      this.end(endedBy);
      return;
    }
    const isWalking = (this.isOn && this.settledIds.hasWork) || this.upkeep.hasWork;
    const isLooking =
      this.isOn && this.intake.hasWork && !(this.o.once === true && this.intake.isComplete);
    if (hasMore || isLooking || isWalking) this.ticker.wake();
    else this.ticker.sleepUntil(this.nextMs(nowMs, nextDueMs));
  }

  private launch(nowMs: number): boolean {
    const { launching, selection } = this;
    if (!launching.mayLaunch(nowMs)) return false;
    const hasMore = selection.select(launching.left, launching.isReplanning());
    if (selection.offeredCount > 0) this.lookout.expectChange(nowMs);
    return hasMore;
  }

  private nextMs(nowMs: number, nextDueMs: number | undefined): number {
    const relookMs = this.commands.relookMs;
    return Math.min(
      this.lookout.nextMs,
      this.plan.nextMs(),
      this.intake.nextLookMs() ?? FAR,
      nextDueMs === undefined ? FAR : nowMs + Math.max(1, nextDueMs),
      relookMs === undefined ? FAR : nowMs + relookMs,
    );
  }

  private end(endedBy: RunSummary["endedBy"]): void {
    if (this.endedBy !== undefined) return;
    this.endedBy = endedBy;
    this.ticker.stop();
    this.finish?.(endedBy);
  }

  // ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────

  private makePool(): Pool {
    const { tree, settings } = this.o;
    const boot = { stateDir: tree.dir, settings, mailboxDir: tree.mailbox };
    // Its news need what needs the pool.
    return new Pool(settings, tree.workers, boot, {
      onStarted: (worker) => this.workerNews.onStarted(worker),
      onLeaving: (worker, signal, files) => this.workerNews.onLeaving(worker, signal, files),
      onUnlike: (worker) => this.workerNews.onUnlike(worker),
      onChange: () => this.workerNews.onChange(),
      onProgress: (message) => this.workerNews.onProgress(message),
      onDeath: (death) => this.workerNews.onDeath(death),
    });
  }

  private shareSlots(): void {
    const running = this.processing.runningByOwner();
    if (running === undefined) return;
    this.pool.retireIdle(running);
    if (this.control.setSlots(this.pool.shares(running))) this.pool.tellAll({ type: "control" });
  }

  private lookSoon(): void {
    this.lookout.wantListing();
    this.ticker.wake();
  }

  // ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────

  private applyCommand(inHand: CommandInHand): object | Promise<object> {
    const result = applyCommand(this.commandContext(), inHand);
    // What happened is told before it is acknowledged.
    this.telemetry.flush();
    return result;
  }

  private commandContext(): CommandContext {
    return {
      tree: this.tree,
      trays: this.trays,
      backlog: this.backlog,
      selection: this.selection,
      pool: this.pool,
      control: this.control,
      telemetry: this.telemetry,
      settings: this.settings,
      newOwner: this.newCanceller,
      plan: this.plan,
      isFixed: this.o.once === true,
      notice: (message) => this.alerts.notice(message),
      shareSlots: () => this.shareSlots(),
      wake: () => this.lookSoon(),
      stop: (drain) => setTimeout(() => this.stop(drain), 0),
      hint: (file) => this.intake.hint(file),
    };
  }

  // ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

  private async shutDown(endedBy: RunSummary["endedBy"]): Promise<void> {
    this.bells.stop();
    this.upkeep.close();
    this.settledIds.close();
    if (endedBy === "lock-lost") this.pool.abandon();
    else {
      this.documents.tell(this.status === "running" ? "draining" : this.status);
      await this.closePool();
      if (this.isOn) await this.recovery.round(this.recovery.list());
      await this.recovery.idle();
      await this.plan.finish(PLAN_FINISH_MS);
      await this.refusals.idle();
      // The last look: nobody rings any more, and what is left is the next supervisor's, also a stop that is meant for us.
      this.commands.ring();
      this.commands.work();
    }
    this.commands.close();
    this.telemetry.note("supervisor_stopped", { pid: process.pid, reason: endedBy });
    this.telemetry.close();
    try {
      while (this.lookout.readJournal());
    } catch (error) {
      this.alerts.report("journal", `cannot read ${this.tree.events}: ${messageOf(error)}`);
    }
    this.metrics.close();
    await this.documents.leave(this.status, endedBy !== "lock-lost");
    this.alerts.close();
  }

  /** What `set-workers` has said before this start, unless this run was given another number than it overrode. */
  private rememberedSlots(): number | undefined {
    const { max_workers: slots, max_workers_over: over } = this.control.current;
    if (slots === null) return undefined;
    const isNewer = this.o.areWorkersGiven === true && over !== this.settings.workers;
    if (!isNewer || over === null) return slots;
    this.control.change({ max_workers: null, max_workers_by: null, max_workers_over: null });
    return undefined;
  }

  /** What commands have said before this start is in force still, and may surprise whoever started it. */
  private tellWhatHolds(): void {
    const { paused, paused_at, paused_by, replan_paused } = this.control.current;
    if (paused)
      this.alerts.notice(
        `paused since ${paused_at ?? "an unknown time"} (${paused_by ?? "unknown"}): nothing starts before \`mailchute resume\``,
      );
    if (replan_paused)
      this.alerts.notice("replanning: other nodes wait until the planner is through");
  }

  /** What runs may take its time to end: meanwhile commands are taken, above all those that end it. */
  private async closePool(): Promise<void> {
    const look = setInterval(() => {
      try {
        this.commands.work();
      } catch (error) {
        this.alerts.report("tick", `unexpected: ${messageOf(error)}`);
      }
    }, COMMANDS_LOOK_MS);
    await this.pool.close(this.status !== "stopping", this.stopLimitMs);
    clearInterval(look);
  }

  /** Workers that are to give back what they run have so long to go (ms). */
  private get stopLimitMs(): number {
    return this.settings.grace_ms * 2 + 2000;
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
    const { trays, backlog, intake, selection, plan } = this;
    return {
      ...this.taskEnds.counts,
      refused: this.refusals.count,
      blocked: backlog.count("blocked") + backlog.count("unmatched") + intake.unreadableCount,
      held: findHeldTasks({ trays, backlog, intake, selection, plan }),
      wouldRun: [],
      endedBy,
      ...plan.summary(),
    };
  }
}
