/** What follows when a task has settled: it is counted, who waited for it may run, and people hear of it when it failed. */
import { join } from "node:path";
import type { Backlog } from "../core/backlog.ts";
import { resultName } from "../core/names.ts";
import type { Trays } from "../mailbox/trays.ts";
import type { Alerts } from "./alerts.ts";
import type { PlanEngine } from "./plan/plan-engine.ts";
import type { Selection } from "./selection.ts";
import type { SettledIds } from "./settled-ids.ts";

export interface TaskEndsParts {
  trays: Trays;
  backlog: Backlog;
  selection: Selection;
  settledIds: SettledIds;
  plan: PlanEngine;
  alerts: Alerts;
}

/** Dependencies looked at again at a time. */
const RECHECKS_MAX = 512;
/** So many failures are told on the terminal, one by one; the rest is counted. */
const FAILURES_TOLD_MAX = 20;

export class TaskEnds {
  private readonly p: TaskEndsParts;
  /** Tasks settled since the start; what becomes of a node that failed is for the plan to say. */
  readonly counts = { completed: 0, failed: 0 };

  private rechecking: Iterator<string, undefined>;

  constructor(parts: TaskEndsParts) {
    this.p = parts;
    this.rechecking = parts.backlog.dependencies();
  }

  noteSettled(id: string, isCompleted: boolean): void {
    const { selection, plan, alerts } = this.p;
    selection.onSettled(id);
    plan.noteSettled(id);
    if (isCompleted) {
      this.counts.completed++;
      this.noteCompleted(id);
    } else if (!plan.isNode(id)) {
      this.counts.failed++;
      const message = `${id} failed for good; see \`mailchute show ${id}\``;
      alerts.raise("task_failed", message);
      this.tellFailure(message);
    }
  }

  private tellFailure(message: string): void {
    const { failed } = this.counts;
    if (failed <= FAILURES_TOLD_MAX) this.p.alerts.notice(message);
    if (failed === FAILURES_TOLD_MAX)
      this.p.alerts.notice(
        "further failures are only counted; see `mailchute ls --state-is failed`",
      );
  }

  /** A node's task may have completed with a question, or without what the plan wants: the plan knows. */
  noteCompleted(id: string): void {
    if (this.p.plan.isDone(id) !== false) this.p.backlog.resolveDependency(id);
  }

  /** In any case. False, too, while it is found out whether it has completed under another spelling. */
  isMet(dependency: string): boolean {
    const { plan, trays, settledIds } = this.p;
    const result = join(trays.outbox, resultName(dependency));
    return (
      plan.isDone(dependency) ??
      (trays.storage.look(result) !== undefined || settledIds.hasResult(dependency))
    );
  }

  /** Looks whether what others wait for is there, in case nobody told: the next so many of them, round and round. */
  recheckDependencies(): void {
    const { backlog } = this.p;
    for (let count = 0; count < RECHECKS_MAX; count++) {
      const { value: id, done } = this.rechecking.next();
      if (done === true) {
        this.rechecking = backlog.dependencies();
        return;
      }
      if (this.isMet(id)) backlog.resolveDependency(id);
    }
  }
}
