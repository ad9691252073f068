/**
 * The costs so far of each running run: `analytics/running-costs/<lease>.json`. Runs see each other's costs in these files. For a run
 * whose process was killed, the file is the only trace of what it used. The next run books it.
 */
import { join } from "node:path";
import { having, type Is, ifThere, isText, type Of, oneOf, shape } from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import { removeDocument } from "../../host/documents.ts";
import { judgeOwner } from "../../host/identity.ts";
import { type CostRecord, hasUsed } from "../cost-records.ts";
import type { Usage } from "../stream/facts.ts";
import { isUsage } from "../stream/run-state.ts";

const runningCost = shape({
  v: oneOf(1),
  /** The owner of the run's lease. */
  owner: isText,
  record: having({ task_id: isText }) as Is<CostRecord>,
  /** The name of its session's document, and what will be booked for the session, including this run. */
  session_key: ifThere(isText) as Is<string>,
  booked: ifThere(isUsage) as Is<Usage>,
});
export type RunningCost = Of<typeof runningCost>;

/** Files of runs of this process that have ended and could not be booked: the disk was full. */
const unbooked = new Set<string>();

export class RunningCosts {
  private readonly costs: Documents<RunningCost>;

  constructor(stateDir: string) {
    // The sweep finds staged files there.
    const stagingDir = join(stateDir, "analytics", ".tmp");
    this.costs = new Documents(stateDir, join("analytics", "running-costs"), runningCost, {
      stagingDir,
    });
  }

  /** @throws a system error */
  write(lease: string, cost: RunningCost): void {
    this.costs.replace(lease, cost);
    // The next phase of a node has the same lease.
    unbooked.delete(this.costs.path(lease));
  }

  remove(lease: string): void {
    removeDocument(this.costs.path(lease));
    unbooked.delete(this.costs.path(lease));
  }

  /** This run of this process has ended, and its costs could not be booked. */
  noteUnbooked(lease: string): void {
    unbooked.add(this.costs.path(lease));
  }

  isUnbooked(lease: string): boolean {
    return unbooked.has(this.costs.path(lease));
  }

  /** The costs of the other running runs. An owner that cannot be checked counts as alive. */
  beside(lease: string): CostRecord[] {
    return this.list()
      .filter((one) => one.lease !== lease && !this.hasEnded(one))
      .map(({ cost }) => asOf(cost.record, Date.now()));
  }

  /** Runs whose process is dead, or that could not be booked at their end, with their leases. */
  left(): { lease: string; cost: RunningCost }[] {
    return this.list().filter((one) => this.hasEnded(one));
  }

  private hasEnded({ lease, cost }: { lease: string; cost: RunningCost }): boolean {
    return this.isUnbooked(lease) || judgeOwner(cost.owner) === "dead";
  }

  /** The runs whose files this owner has written, with their leases. */
  ofOwner(owner: string): { lease: string; cost: RunningCost }[] {
    return this.list().filter(({ cost }) => cost.owner === owner);
  }

  /** The costs of runs that are running or not booked yet. */
  all(): CostRecord[] {
    return this.list()
      .map(({ cost }) => cost.record)
      .filter(hasUsed);
  }

  private list(): { lease: string; cost: RunningCost }[] {
    return this.costs.readAll().map(([lease, cost]) => ({ lease, cost }));
  }
}

/** Sets the time to now: the file is only written when something else has changed, and a run counts for the day on which it ends. */
function asOf(record: CostRecord, nowMs: number): CostRecord {
  const startedMs = record.at * 1000 - (record.duration_ms ?? 0);
  return { ...record, at: Math.floor(nowMs / 1000), duration_ms: nowMs - startedMs };
}
