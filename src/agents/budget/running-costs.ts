/**
 * The costs so far of each running run: `analytics/running-costs/<lease>.json`. Runs see each other's costs in these files. For a run
 * whose process was killed, the file is the only trace of what it used. The next run books it.
 */
import fs from "node:fs";
import { join } from "node:path";
import { readDocument, removeDocument, replaceDocument } from "../../host/documents.ts";
import { judgeOwner } from "../../host/identity.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { type CostRecord, hasUsed } from "../cost-records.ts";
import type { Usage } from "../stream/facts.ts";

export interface RunningCost {
  v: 1;
  /** The owner of the run's lease. */
  owner: string;
  record: CostRecord;
  /** The name of its session's document, and what will be booked for the session, including this run. */
  session_key: string;
  booked: Usage;
}

const ENDING = ".json";

export class RunningCosts {
  private readonly dir: string;
  private readonly stagingDir: string;

  constructor(stateDir: string) {
    const analytics = join(stateDir, "analytics");
    this.dir = join(analytics, "running-costs");
    this.stagingDir = join(analytics, ".tmp");
  }

  /** @throws a system error */
  write(lease: string, cost: RunningCost): void {
    makeDirs(this.dir, 2);
    replaceDocument(this.pathOf(lease), cost, { stagingDir: this.stagingDir });
  }

  remove(lease: string): void {
    removeDocument(this.pathOf(lease));
  }

  /** The costs of the other running runs. An owner that cannot be checked counts as alive. */
  beside(lease: string): CostRecord[] {
    return this.list()
      .filter((one) => one.lease !== lease && judgeOwner(one.cost.owner) !== "dead")
      .map(({ cost }) => asOf(cost.record, Date.now()));
  }

  /** Runs whose process is dead, with their leases. */
  left(): { lease: string; cost: RunningCost }[] {
    return this.list().filter(({ cost }) => judgeOwner(cost.owner) === "dead");
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
    let names: string[];
    try {
      names = fs.readdirSync(this.dir);
    } catch {
      return [];
    }
    return names
      .filter((name) => name.endsWith(ENDING))
      .flatMap((name) => {
        const cost = readDocument<RunningCost>(join(this.dir, name));
        const isOne = cost?.v === 1 && typeof cost.record?.task_id === "string";
        return isOne ? [{ lease: name.slice(0, -ENDING.length), cost }] : [];
      });
  }

  private pathOf(lease: string): string {
    return join(this.dir, `${lease}${ENDING}`);
  }
}

/** Sets the time to now: the file is only written when something else has changed, and a run counts for the day on which it ends. */
function asOf(record: CostRecord, nowMs: number): CostRecord {
  const startedMs = record.at * 1000 - (record.duration_ms ?? 0);
  return { ...record, at: Math.floor(nowMs / 1000), duration_ms: nowMs - startedMs };
}
