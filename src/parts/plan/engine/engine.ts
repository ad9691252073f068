/**
 * Drives the plan for the supervisor. `NodeLauncher` submits nodes that may run, `NodeFinisher` writes the results of ended
 * nodes into the plan, and `Reconciler` compares the nodes in flight with the mailbox.
 * The order survives a crash: a node is `in_progress` on disk before its task is submitted, and all changes that follow from a
 * settled task are one replacement of the roadmap. So a node in progress without a task was never launched, and one with a
 * settled task still needs these changes. The next start finds both.
 */
import fs from "node:fs";
import { messageOf, systemCode } from "../../../core/errors.ts";
import { isContainer, isNodeTask, type RoadmapNode } from "../../../core/roadmap.ts";
import { withdraw } from "../../../mailbox/submit/withdraw.ts";
import { REMEMBERED_MS } from "../file/stale-save.ts";
import { ActiveNodes } from "./active-nodes.ts";
import { readEarlierRuns } from "./earlier-runs.ts";
import type { PlanParts } from "./engine-parts.ts";
import { NodeFinisher } from "./finish-nodes.ts";
import { type LaunchAllowance, NodeLauncher } from "./launch-nodes.ts";
import { PlanStatus } from "./plan-status.ts";
import { Questions } from "./questions.ts";
import { Reconciler } from "./reconcile.ts";
import { tellBudget } from "./tell-budget.ts";

/** The planner node that `replan` opens again. */
const PLANNER_ID = "plan-000";
/** The ids of schedules' tasks: such a task may have reset the plan. */
const MAY_RESET = /\.(?:\d{8}T\d{6}Z|manual-[0-9a-v]+)$/;
const LOOK_AGAIN_MS = 5;
const FLUSH_TRIES_MAX = 200;

export class PlanEngine {
  private readonly p: PlanParts;
  private readonly questions: Questions;
  private readonly active = new ActiveNodes();
  private readonly launcher: NodeLauncher;
  private readonly finisher: NodeFinisher;
  private readonly reconciler: Reconciler;
  /** Nodes whose tasks must be removed from the mailbox: see `takeUnwanted`. */
  private readonly unwanted = new Set<string>();
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
   * Loads the plan and finds out what the previous supervisor left. Never rejects: without a plan, the mailbox still works.
   * @param isOnePass only nodes that are ready now may ever be launched
   */
  async start(isOnePass: boolean): Promise<void> {
    try {
      const { trays, tree } = this.p.env;
      const hasPlan = fs.existsSync(tree.roadmap);
      await this.p.store.start(
        hasPlan ? readEarlierRuns(tree.events, trays.clock.wallMs(), REMEMBERED_MS) : undefined,
      );
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

  /** Nodes in progress that no worker has claimed yet. */
  unbegun(): string[] {
    return this.active.listUnbegun();
  }

  addLine(line: string): void {
    this.active.events.addLine(line);
  }

  /** Called when a task was selected to run: a new one, one that a person retries, or one that was put back. */
  noteSelected(id: string): void {
    const node = this.p.store.find(id);
    if (node === undefined || node.id !== id || isContainer(node)) return;
    this.active.noteSelected(id);
    if (node.status === "in_progress") return;
    // A person set other statuses, blocked or done, while the task was running. They stay.
    if (node.status === "open" || node.status === "failed")
      this.p.store.setStatus(id, "in_progress");
  }

  /** Called when the first run of a node's task has begun, or the task is being taken back. From then on a pause stops its next run. */
  noteBegun(id: string): void {
    this.active.noteBegun(id);
  }

  noteSettled(id: string): void {
    if (this.active.has(id)) this.finisher.noteSettled(id);
    else if (MAY_RESET.test(id)) this.p.store.expectSave();
  }

  /** True if the node's task is in the mailbox or about to be. */
  isLive(id: string): boolean {
    return this.active.has(id);
  }

  isNode(id: string): boolean {
    const node = this.p.store.find(id);
    return node !== undefined && !isContainer(node);
  }

  /** True if a person or program dropped the task of this id: it was not made from a node. */
  isForeignLive(id: string): boolean {
    return this.launcher.liveTask(id) === "foreign";
  }

  canLaunchNow(onlyPlanners: boolean): boolean {
    return this.launcher.canLaunchNow(onlyPlanners);
  }

  isOpen(id: string): boolean {
    return this.p.store.find(id)?.status === "open";
  }

  /** Called when another plan was loaded. */
  onAdopted(): void {
    tellBudget(this.p);
    this.launcher.onAdopted();
    this.reconciler.adoptRunning();
    this.findUnwanted();
    this.p.env.wake();
  }

  /** Called when a person's save has made the changes that follow from a node's end impossible. */
  onEndRefused(id: string, why: string): void {
    this.finisher.fail(id, why);
  }

  /** Finds tasks that settled unnoticed or vanished. @param files a listing of `processing/` */
  survey(files: readonly string[]): void {
    this.reconciler.compare(files);
    this.findUnwanted();
  }

  /**
   * A node that a person marked blocked or done does not run again, not even for a retry. A run that has begun goes on to its end.
   * While the pool is paused, a node begins only if `launched` of control.json names it. Any other node that has not begun is opened again.
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

  /** Returns the nodes whose tasks must be removed from the mailbox. Each `survey` finds the remaining ones again. */
  takeUnwanted(): string[] {
    const ids = [...this.unwanted];
    this.unwanted.clear();
    return ids;
  }

  // ── the tick ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** @param allowance what may be launched; undefined: nothing */
  work(allowance: LaunchAllowance | undefined): void {
    const { store } = this.p;
    store.look(this.nowMs());
    if (store.doc === undefined) return;
    this.finisher.work();
    this.answerInTime();
    if (allowance !== undefined) this.launcher.launch(allowance);
    if (store.flush()) this.launcher.submitDue();
  }

  /** Monotonic ms at which the engine has work again without an event. */
  nextMs(): number {
    const soon = this.nowMs() + LOOK_AGAIN_MS;
    if (this.p.store.hasPending) return Math.max(soon, this.p.store.writeAgainMs);
    return Math.min(
      Math.max(soon, Math.min(this.launcher.submitDueMs, this.finisher.nextMs)),
      this.nowMs() + (this.questions.nextInMs() ?? Number.POSITIVE_INFINITY),
    );
  }

  /** True if no node in flight will go on, no node could be launched, and no question has a time limit. */
  isIdle(onlyPlanners: boolean): boolean {
    return (
      this.active.countBut((id) => this.launcher.isStuck(id)) === 0 &&
      !this.isApplying() &&
      !this.launcher.canLaunch(onlyPlanners) &&
      this.questions.nextInMs() === undefined
    );
  }

  private isMoving(): boolean {
    return this.active.size > 0 || this.isApplying();
  }

  /** True while results are being written into the plan, or nodes are about to be launched. */
  isApplying(): boolean {
    const isBusy = this.finisher.isBusy || this.launcher.isBusy || this.active.unselectedCount > 0;
    return isBusy || this.p.store.hasPending;
  }

  /** Called at shutdown: writes the results of the nodes that settled last into the plan. Gives up after `limitMs`. */
  async finish(limitMs: number): Promise<void> {
    const untilMs = this.nowMs() + limitMs;
    try {
      this.surveyNow();
    } catch (error) {
      // The next start finds nodes that settled unnoticed.
      this.p.env.alerts.report(
        "roadmap:survey",
        `cannot find out which tasks settled last: ${messageOf(error)}`,
      );
    }
    while (this.nowMs() < untilMs) {
      this.work(undefined);
      if (!this.finisher.hasUntried && !this.p.store.hasPending) break;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
    try {
      await this.p.store.close();
    } catch (error) {
      this.p.env.alerts.report(
        "roadmap:close",
        `cannot check the roadmap a last time: ${messageOf(error)}`,
      );
    }
    this.p.kv.close();
  }

  /** True if there is a plan. */
  get isInForce(): boolean {
    return this.p.store.doc !== undefined;
  }

  /** Returns a function that says whether an id is in the current plan; undefined while that plan is not known. */
  membership(): ((id: string) => boolean) | undefined {
    const { store } = this.p;
    const { tree } = this.p.env;
    if (!this.isStarted || (store.doc === undefined && fs.existsSync(tree.roadmap)))
      return undefined;
    return (id) => store.find(id) !== undefined;
  }

  /** Answers questions by their default when their time limit is over. */
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

  /** Opens the planner node again. False if the plan has none. */
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

  /** True if the planner is open and cannot start. Then the nodes that it waits for must be allowed to start. */
  isPlannerWaiting(): boolean {
    const planner = this.planner();
    return planner?.status === "open" && !this.launcher.isReady(planner.id);
  }

  /** Takes a task out of the mailbox after it was stopped and put back, and opens its node again. */
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

  /** Waits until all edits are on disk; gives up after some tries, because the disk may be full. */
  private async flushed(): Promise<void> {
    for (let tries = 0; tries < FLUSH_TRIES_MAX && !this.p.store.flush(); tries++) {
      this.p.store.look(this.nowMs());
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }

  /** `plan-000`, or else the first plan without a parent. */
  private planner(): RoadmapNode | undefined {
    return (
      this.p.store.find(PLANNER_ID) ??
      this.p.store.nodes.find((node) => node.type === "plan" && node.parent === undefined)
    );
  }

  /** Compares the nodes in flight with `processing/`. If it cannot be listed, the next poll compares again. */
  private surveyNow(): void {
    const { storage, processing } = this.p.env.trays;
    let files: string[] = [];
    try {
      files = storage.list(processing);
    } catch (error) {
      // The tray is missing when the mailbox is switched off or a person deleted the trays: then it counts as empty.
      if (systemCode(error) !== "ENOENT") return;
    }
    this.survey(files);
  }

  private nowMs(): number {
    return this.p.env.trays.clock.monotonicMs();
  }
}
