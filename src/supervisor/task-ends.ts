/** What follows when a task has settled: it is counted, who waited for it may run, and people hear of it when it failed. */
import { join } from "node:path";
import type { Backlog } from "../core/backlog.ts";
import { resultName } from "../core/names.ts";
import type { Trays } from "../mailbox/trays.ts";
import type { Alerts } from "./alerts.ts";
import type { PlanEngine } from "./plan/plan-engine.ts";
import type { Selection } from "./selection.ts";

export interface TaskEndsParts {
  trays: Trays;
  backlog: Backlog;
  selection: Selection;
  plan: PlanEngine;
  alerts: Alerts;
}

/** Dependencies looked at again at a time. */
const RECHECKS_MAX = 512;

export class TaskEnds {
  private readonly p: TaskEndsParts;
  /** Tasks settled since the start; what becomes of a node that failed is for the plan to say. */
  readonly counts = { completed: 0, failed: 0 };

  constructor(parts: TaskEndsParts) {
    this.p = parts;
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
      alerts.raise("task_failed", `${id} failed for good; see \`mailchute show ${id}\``);
    }
  }

  /** A node's task may have completed with a question, or without what the plan wants: the plan knows. */
  noteCompleted(id: string): void {
    if (this.p.plan.isDone(id) !== false) this.p.backlog.resolveDependency(id);
  }

  isMet(dependency: string): boolean {
    const { plan, trays } = this.p;
    return (
      plan.isDone(dependency) ??
      trays.storage.look(join(trays.outbox, resultName(dependency))) !== undefined
    );
  }

  /** Looks whether what others wait for is there, in case nobody told. */
  recheckDependencies(): void {
    for (const id of [...this.p.backlog.dependencies()].slice(0, RECHECKS_MAX))
      if (this.isMet(id)) this.p.backlog.resolveDependency(id);
  }
}
