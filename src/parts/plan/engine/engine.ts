/**
 * Drives the plan: what the supervisor tells and asks of it, and one tick of its parts. The launcher submits what may run, node
 * ends carry what became of it back, the survey finds out what is true of what is in flight.
 * The order survives a crash: a node is `in_progress` on disk before its task is submitted, and all that follows from a
 * settled task is one replacement of the roadmap. So a node in progress without a task was never launched, and one with a
 * settled task waits for what follows from it; both are found again at the start.
 */
import fs from "node:fs";
import { messageOf, systemCode } from "../../../core/errors.ts";
import { isContainer, isNodeTask, type RoadmapNode } from "../../../core/roadmap.ts";
import { withdraw } from "../../../mailbox/withdraw.ts";
import { ActiveNodes } from "./active-nodes.ts";
import type { PlanParts } from "./engine-parts.ts";
import { NodeFinisher } from "./finish-nodes.ts";
import { type LaunchAllowance, NodeLauncher } from "./launch-nodes.ts";
import { PlanStatus } from "./plan-status.ts";
import { Questions } from "./questions.ts";
import { Reconciler } from "./reconcile.ts";

/** The planner that `replan` opens again. */
const PLANNER_ID = "plan-000";
const LOOK_AGAIN_MS = 5;
const FLUSH_TRIES_MAX = 200;

export class PlanEngine {
  private readonly p: PlanParts;
  private readonly questions: Questions;
  private readonly active = new ActiveNodes();
  private readonly launcher: NodeLauncher;
  private readonly finisher: NodeFinisher;
  private readonly reconciler: Reconciler;
  /** Nodes whose tasks are to go: see `takeUnwanted`. */
  private readonly unwanted = new Set<string>();
  /** What is told of the plan. */
  readonly status: PlanStatus;
  isStarted = false;

  constructor(parts: PlanParts) {
    this.p = parts;
    this.questions = new Questions(parts.kv, parts.env.trays.clock);
    const shared = { ...parts, active: this.active, questions: this.questions };
    this.launcher = new NodeLauncher(shared, (id) => this.noteSelected(id));
    this.finisher = new NodeFinisher(shared, this.launcher);
    this.reconciler = new Reconciler(shared, this.launcher, this.finisher);
    this.status = new PlanStatus(shared, this.launcher, () => this.isMoving());
  }

  /**
   * Loads the plan and finds out what a supervisor before us left. Never rejects: without a plan the mailbox goes on.
   * @param isOnePass only what is ready now may ever be launched
   */
  async start(isOnePass: boolean): Promise<void> {
    try {
      await this.p.store.start();
      await this.takeOver();
      if (isOnePass) this.launcher.beginPass();
    } catch (error) {
      this.p.env.alerts.report("roadmap:start", `cannot load the roadmap: ${messageOf(error)}`);
    }
    this.isStarted = true;
  }

  private async takeOver(): Promise<void> {
    this.reconciler.adoptRunning();
    await this.active.events.load(this.p.env.tree.events);
    this.surveyNow();
  }

  /** Nodes that are in progress and that no worker has claimed yet: a pause lets them begin. */
  unbegun(): string[] {
    return this.active.listUnbegun();
  }

  addLine(line: string): void {
    this.active.events.addLine(line);
  }

  /** A task was selected to run. A person may have retried it, or it came back. */
  noteSelected(id: string): void {
    const node = this.p.store.find(id);
    if (node === undefined || node.id !== id || isContainer(node)) return;
    this.active.noteSelected(id);
    if (node.status === "in_progress") return;
    // Blocked, done: a person has set this while the task runs, and it stays.
    if (node.status === "open" || node.status === "failed")
      this.p.store.setStatus(id, "in_progress");
  }

  /** The first run of a node's task has begun, or the task is being taken back. A pause holds for the next run. */
  noteBegun(id: string): void {
    this.active.noteBegun(id);
  }

  noteSettled(id: string): void {
    if (this.active.has(id)) this.finisher.noteSettled(id);
  }

  /** Whether the mailbox holds, or is about to hold, the node's task. */
  isLive(id: string): boolean {
    return this.active.has(id);
  }

  isNode(id: string): boolean {
    const node = this.p.store.find(id);
    return node !== undefined && !isContainer(node);
  }

  /** Whether a person or program dropped the task of this id: it was not made from a node. */
  isForeignLive(id: string): boolean {
    return this.launcher.liveTask(id) === "foreign";
  }

  /** Whether a node may be launched. */
  canLaunch(onlyPlanners: boolean): boolean {
    return this.launcher.canLaunch(onlyPlanners);
  }

  isOpen(id: string): boolean {
    return this.p.store.find(id)?.status === "open";
  }

  /** Another plan is in force. */
  onAdopted(): void {
    this.launcher.onAdopted();
    this.reconciler.adoptRunning();
    this.findUnwanted();
    this.p.env.wake();
  }

  /** What follows from a node's end cannot be written any more. */
  onEndRefused(id: string, why: string): void {
    this.finisher.fail(id, why);
  }

  /** @param files a listing of `processing/`: what settled unnoticed, and what vanished, is found by it */
  survey(files: readonly string[]): void {
    this.reconciler.compare(files);
    this.findUnwanted();
  }

  /**
   * A node that a person marked blocked or done does not run again, not even for its retry; a run that has begun goes on to its
   * end. A node that an earlier supervisor launched does not begin either when the pool was paused before we came: it is open again.
   */
  private findUnwanted(): void {
    const { paused, launched } = this.p.control.current;
    const unbegun = new Set(paused ? this.active.listUnbegun() : []);
    for (const id of this.active.list()) {
      const status = this.p.store.find(id)?.status;
      const isHeldUp = unbegun.has(id) && !launched.includes(id);
      if (status !== "blocked" && status !== "done" && !isHeldUp) continue;
      if (!this.launcher.isOnTheWay(id) && !this.finisher.has(id)) this.unwanted.add(id);
    }
  }

  /** Nodes whose tasks are to be taken out of the mailbox. Each survey finds those again that are still there. */
  takeUnwanted(): string[] {
    const ids = [...this.unwanted];
    this.unwanted.clear();
    return ids;
  }

  // ── the tick ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** @param allowance what may be launched; undefined = nothing */
  work(allowance: LaunchAllowance | undefined): void {
    const { store } = this.p;
    store.look(this.nowMs());
    if (store.doc === undefined) return;
    this.finisher.work();
    this.answerInTime();
    if (allowance !== undefined) this.launcher.launch(allowance);
    if (store.flush()) this.launcher.submitDue();
  }

  /** Monotonic ms at which there is something to do by itself. */
  nextMs(): number {
    const soon = this.nowMs() + LOOK_AGAIN_MS;
    if (this.p.store.hasPending) return Math.max(soon, this.p.store.writeAgainMs);
    return Math.min(
      Math.max(soon, Math.min(this.launcher.submitDueMs, this.finisher.nextMs)),
      this.nowMs() + (this.questions.nextInMs() ?? Number.POSITIVE_INFINITY),
    );
  }

  /** Nothing is under way and nothing could be launched. */
  isIdle(onlyPlanners: boolean): boolean {
    return (
      !this.isMoving() &&
      !this.launcher.canLaunch(onlyPlanners) &&
      this.questions.nextInMs() === undefined
    );
  }

  private isMoving(): boolean {
    return this.active.size > 0 || this.isApplying();
  }

  /** What settled is being carried into the plan, or is about to be launched. */
  isApplying(): boolean {
    const isBusy = this.finisher.isBusy || this.launcher.isBusy || this.active.unselectedCount > 0;
    return isBusy || this.p.store.hasPending;
  }

  /** Does what follows from what settled last, for at most this long. */
  async finish(limitMs: number): Promise<void> {
    const untilMs = this.nowMs() + limitMs;
    try {
      this.surveyNow();
    } catch (error) {
      // What settled unnoticed is found at the next start.
      this.p.env.alerts.report(
        "roadmap:survey",
        `cannot look at what settled last: ${messageOf(error)}`,
      );
    }
    while (this.nowMs() < untilMs) {
      this.work(undefined);
      if (!this.finisher.isBusy && !this.p.store.hasPending) break;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
    try {
      await this.p.store.close();
    } catch (error) {
      this.p.env.alerts.report(
        "roadmap:close",
        `the last look at the roadmap failed: ${messageOf(error)}`,
      );
    }
    this.p.kv.close();
  }

  /** Whether there is a plan: a person may save it at any moment. */
  get isInForce(): boolean {
    return this.p.store.doc !== undefined;
  }

  /** Whether the plan in force has a node or item; undefined while it is not known which plan that is. */
  membership(): ((id: string) => boolean) | undefined {
    const { store } = this.p;
    const { tree } = this.p.env;
    if (!this.isStarted || (store.doc === undefined && fs.existsSync(tree.roadmap)))
      return undefined;
    return (id) => store.find(id) !== undefined;
  }

  /** Checkpoints with a time limit and a safe default answer themselves. */
  private answerInTime(): void {
    for (const id of this.questions.due(this.p.store.nodes)) {
      void this.questions.answerByDefault(id).then(
        (answer) => {
          if (answer === undefined) return;
          this.p.env.alerts.alert(
            "answered",
            `${id} got no answer in time: it goes on with ${JSON.stringify(answer)}`,
          );
          if (this.p.store.find(id)?.status === "needs_human") this.p.store.setStatus(id, "open");
          this.p.env.wake();
        },
        (error: unknown) => this.p.env.alerts.report(`answer:${id}`, messageOf(error)),
      );
    }
  }

  // ── steering ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Opens the planner again. False when there is none. */
  async reopenPlanner(): Promise<boolean> {
    const planner = this.planner();
    if (planner === undefined) return false;
    if (planner.status !== "open" && planner.status !== "in_progress") {
      this.p.store.setStatus(planner.id, "open");
      await this.flushed();
    }
    return true;
  }

  isPlanning(): boolean {
    const status = this.planner()?.status;
    return status === "open" || status === "in_progress";
  }

  /** The planner is open and cannot start, so the nodes that it waits for must be allowed to. */
  isPlannerWaiting(): boolean {
    const planner = this.planner();
    return planner?.status === "open" && !this.launcher.isReady(planner.id);
  }

  /** Takes a stopped task, which was put back, out of the mailbox. The node is open again. */
  async withdraw(id: string): Promise<boolean> {
    const { store } = this.p;
    const { trays } = this.p.env;
    const node = store.find(id);
    if (node === undefined || isContainer(node)) return false;
    if (node.status === "in_progress") this.p.store.setStatus(id, "open");
    await this.flushed();
    const isOurs = (bytes: Buffer): boolean => {
      try {
        return isNodeTask(JSON.parse(bytes.toString("utf8")), id);
      } catch {
        return false;
      }
    };
    const isOut = withdraw(trays, id, isOurs);
    if (isOut) this.active.leave(id);
    return isOut;
  }

  /** Waits until the plan on disk is the one in force, with a limit for a full disk. */
  private async flushed(): Promise<void> {
    for (let tries = 0; tries < FLUSH_TRIES_MAX && !this.p.store.flush(); tries++) {
      this.p.store.look(this.nowMs());
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }

  /** `plan-000`, or the first plan that stands under no other. */
  private planner(): RoadmapNode | undefined {
    return (
      this.p.store.find(PLANNER_ID) ??
      this.p.store.nodes.find((node) => node.type === "plan" && node.parent === undefined)
    );
  }

  /** When `processing/` cannot be listed, the next look at it finds out. */
  private surveyNow(): void {
    const { storage, processing } = this.p.env.trays;
    let files: string[] = [];
    try {
      files = storage.list(processing);
    } catch (error) {
      // A mailbox that is off has no trays, and one whose trays were deleted gets them again.
      if (systemCode(error) !== "ENOENT") return;
    }
    this.survey(files);
  }

  private nowMs(): number {
    return this.p.env.trays.clock.monotonicMs();
  }
}
