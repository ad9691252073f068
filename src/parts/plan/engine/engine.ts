/**
 * Drives the plan for the supervisor. `NodeLauncher` submits nodes that may run, `NodeFinisher` writes the results of ended
 * nodes into the plan, and `Reconciler` compares the nodes in flight with the mailbox.
 * The order survives a crash: a node is `in_progress` on disk before its task is submitted, and all changes that follow from a
 * settled task are one replacement of the roadmap. So a node in progress without a task was never launched, and one with a
 * settled task still needs these changes. The next start finds both.
 */
import fs from "node:fs";
import { NODES_OF_PLAN } from "../../../agents/budget/limits.ts";
import { PLAN_BUDGET, planBudgets } from "../../../agents/budget/plan-of.ts";
import { messageOf, systemCode } from "../../../core/errors.ts";
import { isContainer } from "../../../core/roadmap.ts";
import { QuestionStore } from "../../../questions/question-store.ts";
import { REMEMBERED_MS } from "../file/stale-save.ts";
import { readEarlierRuns } from "./earlier-runs.ts";
import type { EngineParts } from "./engine-parts.ts";
import { NodeFinisher } from "./finish-nodes.ts";
import { type LaunchAllowance, NodeLauncher } from "./launch-nodes.ts";
import { PlanStatus } from "./plan-status.ts";
import { Reconciler } from "./reconcile.ts";

/** The ids of schedules' tasks: such a task may have reset the plan. */
const MAY_RESET = /\.(?:\d{8}T\d{6}Z|manual-[0-9a-v]+)$/;
const LOOK_AGAIN_MS = 5;

export class PlanEngine {
  readonly launcher: NodeLauncher;
  readonly reconciler: Reconciler;
  readonly status: PlanStatus;
  private readonly finisher: NodeFinisher;
  isStarted = false;

  constructor(private readonly deps: EngineParts) {
    this.launcher = new NodeLauncher(deps, (id) => this.noteSelected(id));
    this.finisher = new NodeFinisher(deps, this.launcher);
    this.reconciler = new Reconciler(deps, this.launcher, this.finisher);
    this.status = new PlanStatus(
      deps,
      this.launcher,
      () => deps.active.size > 0 || this.isApplying(),
    );
  }

  /**
   * Loads the plan and finds out what the previous supervisor left. Never rejects: without a plan, the mailbox still works.
   * @param isOnePass only nodes that are ready now may ever be launched
   */
  async start(isOnePass: boolean): Promise<void> {
    await this.attempt("start", "load the roadmap", async () => {
      const { trays, tree } = this.deps.env;
      const hasPlan = fs.existsSync(tree.roadmap);
      await this.deps.store.start(
        hasPlan ? readEarlierRuns(tree.events, trays.clock.wallMs(), REMEMBERED_MS) : undefined,
      );
      this.reconciler.adoptRunning();
      await this.deps.active.events.load(tree.events);
      this.surveyNow();
      if (isOnePass) this.launcher.beginPass();
    });
    this.isStarted = true;
  }

  /** Called when a task was selected to run: a new one, one that a person retries, or one that was put back. */
  noteSelected(id: string): void {
    const node = this.deps.store.find(id);
    if (node === undefined || node.id !== id || isContainer(node)) return;
    this.deps.active.noteSelected(id);
    if (node.status === "in_progress") return;
    // A person set other statuses, blocked or done, while the task was running. They stay.
    if (node.status === "open" || node.status === "failed")
      this.deps.store.setStatus(id, "in_progress");
  }

  noteSettled(id: string): void {
    if (this.deps.active.has(id)) this.finisher.noteSettled(id);
    else if (MAY_RESET.test(id)) this.deps.store.expectSave();
  }

  /** Called when another plan was loaded. */
  onAdopted(): void {
    tellBudget(this.deps);
    this.launcher.onAdopted();
    this.reconciler.adoptRunning();
    this.reconciler.findUnwanted();
    this.deps.env.wake();
  }

  /** Called when a person's save has made the changes that follow from a node's end impossible. */
  onEndRefused(id: string, why: string): void {
    this.finisher.fail(id, why);
  }

  // ── the tick ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** @param allowance what may be launched; undefined: nothing */
  work(allowance: LaunchAllowance | undefined): void {
    const { store } = this.deps;
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
    if (this.deps.store.hasPending) return Math.max(soon, this.deps.store.writeAgainMs);
    return Math.min(
      Math.max(soon, Math.min(this.launcher.submitDueMs, this.finisher.nextMs)),
      this.nowMs() + (this.deps.questions.nextInMs() ?? Number.POSITIVE_INFINITY),
    );
  }

  /** True if no node in flight will go on, no node could be launched, and no question has a time limit. */
  isIdle(onlyPlanners: boolean): boolean {
    return (
      this.deps.active.countBut((id) => this.launcher.isStuck(id)) === 0 &&
      !this.isApplying() &&
      !this.launcher.canLaunch(onlyPlanners) &&
      this.deps.questions.nextInMs() === undefined
    );
  }

  /** True while results are being written into the plan, or nodes are about to be launched. */
  isApplying(): boolean {
    const isBusy =
      this.finisher.isBusy || this.launcher.isBusy || this.deps.active.unselectedCount > 0;
    return isBusy || this.deps.store.hasPending;
  }

  /** Called at shutdown: writes the results of the nodes that settled last into the plan. Gives up after `limitMs`. */
  async finish(limitMs: number): Promise<void> {
    const untilMs = this.nowMs() + limitMs;
    // If this fails, the next start finds nodes that settled unnoticed.
    await this.attempt("survey", "find out which tasks settled last", () => this.surveyNow());
    while (this.nowMs() < untilMs) {
      this.work(undefined);
      if (!this.finisher.hasUntried && !this.deps.store.hasPending) break;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
    await this.attempt("close", "check the roadmap a last time", () => this.deps.store.close());
    this.deps.kv.close();
  }

  /** Reports what cannot be done, and goes on. */
  private async attempt(
    key: string,
    what: string,
    work: () => void | Promise<void>,
  ): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.deps.env.alerts.report(`roadmap:${key}`, `cannot ${what}: ${messageOf(error)}`);
    }
  }

  /** Returns a function that says whether an id is in the current plan; undefined while that plan is not known. */
  membership(): ((id: string) => boolean) | undefined {
    const { store } = this.deps;
    const { tree } = this.deps.env;
    if (!this.isStarted || (store.doc === undefined && fs.existsSync(tree.roadmap)))
      return undefined;
    return (id) => store.find(id) !== undefined;
  }

  /** Answers questions by their default when their time limit is over. */
  private answerInTime(): void {
    for (const id of this.deps.questions.due(this.deps.store.nodes)) {
      void this.deps.questions.answerByDefault(id).then(
        (answer) => {
          if (answer === undefined) return;
          this.deps.env.alerts.alert(
            "answered",
            `${id} got no answer in time: it goes on with ${JSON.stringify(answer)}`,
          );
          if (this.deps.store.find(id)?.status === "needs_human")
            this.deps.store.setStatus(id, "open");
          this.deps.env.wake();
        },
        (error: unknown) => this.deps.env.alerts.report(`answer:${id}`, messageOf(error)),
      );
    }
  }

  /** Compares the nodes in flight with `processing/`. If it cannot be listed, the next poll compares again. */
  private surveyNow(): void {
    const { storage, processing } = this.deps.env.trays;
    let files: string[] = [];
    try {
      files = storage.list(processing);
    } catch (error) {
      // The tray is missing when the mailbox is switched off or a person deleted the trays: then it counts as empty.
      if (systemCode(error) !== "ENOENT") return;
    }
    this.reconciler.compare(files);
  }

  private nowMs(): number {
    return this.deps.env.trays.clock.monotonicMs();
  }
}

/** Writes the budget of the plan into the file that the runs of its nodes read. So a change also counts for runs in progress. */
function tellBudget({ env, store }: Pick<EngineParts, "env" | "store">): void {
  const told = planBudgets(env.tree.dir);
  const budget = store.doc?.budget;
  try {
    const now = budget && { v: 1, ...budget };
    if (JSON.stringify(told.load(PLAN_BUDGET)) === JSON.stringify(now)) return;
    if (now === undefined) told.remove(PLAN_BUDGET);
    else told.replace(PLAN_BUDGET, now);
    // The new budget may be enough, so open questions about it are closed. If it is not enough, the next run asks again.
    const questions = new QuestionStore(env.tree.dir);
    for (const { id, who } of questions.open(env.trays.clock.wallMs()))
      if (who === NODES_OF_PLAN) questions.close(id);
  } catch (error) {
    env.alerts.report("plan-budget", `cannot write the budget of the plan: ${messageOf(error)}`);
  }
}
