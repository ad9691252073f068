/** What follows when a task has settled: it is counted, who waited for it may run, and people hear of it when it failed. */
import { join } from "node:path";
import type { Backlog } from "../core/backlog.ts";
import { resultName } from "../core/names.ts";
import { readSettled, type SettledRecord } from "../mailbox/settled-record.ts";
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
  /** Whether leases that begin so are, or were, those of our own children. */
  isOwn: (ownerPrefix: string) => boolean;
}

/** Dependencies looked at again at a time. */
const RECHECKS_MAX = 512;
/** Of an error, for the terminal. */
const ERROR_CHARS_MAX = 200;

/** What all leases of the same process begin with after submission and attempt. */
function ownerPrefixOf(lease: string): string {
  const owner = lease.slice(lease.indexOf(".", lease.indexOf(".") + 1) + 1);
  return owner.slice(0, owner.lastIndexOf("-"));
}

export class TaskEnds {
  private readonly p: TaskEndsParts;
  /** Tasks settled since the start. What becomes of `failedNodes`, which are among `failed`, is for the plan to say. */
  readonly counts = { completed: 0, failed: 0, failedNodes: 0 };

  private rechecking: Iterator<string, undefined>;

  constructor(parts: TaskEndsParts) {
    this.p = parts;
    this.rechecking = parts.backlog.dependencies();
  }

  noteSettled(id: string, isCompleted: boolean): void {
    const { selection, plan } = this.p;
    selection.onSettled(id);
    plan.noteSettled(id);
    if (isCompleted) {
      this.counts.completed++;
      this.noteCompleted(id);
    } else {
      this.counts.failed++;
      if (plan.isNode(id)) this.counts.failedNodes++;
      else this.tellFailure(id);
    }
  }

  /**
   * It is gone from `processing/` and nobody has said so: a worker that is not our child has settled it, or somebody has taken it
   * away. Our own children say so themselves, if late.
   */
  noteVanished(id: string): void {
    let record: SettledRecord["record"] | undefined;
    try {
      record = readSettled(this.p.trays, id)?.record;
    } catch {
      // The disk does not give it now: it stays uncounted.
    }
    // Without a run it is the record of a file that was refused.
    if (record === undefined || record.attempts === 0) return;
    if (!this.p.isOwn(ownerPrefixOf(record.lease)))
      this.noteSettled(id, record.status === "completed");
  }

  /** The record is opened only for the few that are told. */
  private tellFailure(id: string): void {
    const see = `see \`mailchute show ${id}\``;
    this.p.alerts.alert("task_failed", `${id} failed for good; ${see}`, () => {
      const error = this.errorOf(id);
      return `${id} failed for good${error === "" ? "" : `: ${error}`}; ${see}`;
    });
  }

  /** One line; empty when the record cannot be read. */
  private errorOf(id: string): string {
    try {
      const record = readSettled(this.p.trays, id)?.record;
      const error = record?.status === "failed" ? record.error : "";
      return error.length > ERROR_CHARS_MAX ? `${error.slice(0, ERROR_CHARS_MAX)}…` : error;
    } catch {
      return "";
    }
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
