/**
 * Books the costs of runs at other machines in the same files as those of local runs, so that `cost`, budgets and pages know them.
 * A run is booked before its task settles. After a crash it may be booked again, and readers still count it once.
 */
import { RunningCosts } from "../../../agents/budget/running-costs.ts";
import { type CostRecord, hasUsed } from "../../../agents/cost-records.ts";
import { NO_USAGE } from "../../../agents/stream/run-state.ts";
import { leaseOf, type ProcessingName } from "../../../core/names.ts";
import { costsOf, type StateTree } from "../../../core/state-tree.ts";
import { fileOfDay } from "../../../journal/daily.ts";
import { Journal } from "../../../journal/journal.ts";
import type { RunCost } from "../protocol/messages.ts";

/** No owner token of a process, so it never counts as dead. Only a bridge removes the files with this owner. */
const OWNER = "cluster";

/** A run that has costs. */
export interface CostlyRun {
  /** Its name in `processing/`, while it waits for its result. */
  name: ProcessingName;
  /** The agent of the task here. */
  agent: string;
}

export class OriginCosts {
  private readonly running: RunningCosts;
  /** Runs that this process has booked and still shows, by lease. */
  private readonly booked = new Set<string>();

  constructor(private readonly tree: StateTree) {
    this.running = new RunningCosts(tree.dir);
  }

  /** The costs as records of this tree. The account is one of that machine. */
  recordsOf({ name, agent }: CostlyRun, machine: string, costs: readonly RunCost[]): CostRecord[] {
    const at = Math.floor(Date.now() / 1000);
    const { id, submission, attempt } = name;
    return costs.map((cost) => ({
      at,
      task_id: id,
      run: `${id}@${submission}.${attempt}.0`,
      lease: leaseOf(name),
      agent,
      ...cost,
      account: `${machine}/${cost.account}`,
    }));
  }

  /** Appends records to the journal of costs. @throws a system error when the disk refuses it */
  book(records: readonly CostRecord[]): void {
    const used = records.filter(hasUsed);
    const [first] = used;
    if (first === undefined) return;
    const journal = new Journal(fileOfDay(costsOf(this.tree), first.at * 1000), true);
    for (const record of used) journal.append(JSON.stringify(record));
    const isBooked = journal.flush();
    journal.close();
    if (!isBooked) throw journal.lastError;
    if (first.lease !== undefined) this.booked.add(first.lease);
  }

  isBooked(lease: string): boolean {
    return this.booked.has(lease);
  }

  /** The agent of a run whose costs are shown. */
  agentOf(lease: string): string | undefined {
    return this.running.ofOwner(OWNER).find((one) => one.lease === lease)?.cost.record.agent;
  }

  /** Writes what a running run has used so far. @throws a system error */
  show(lease: string, record: CostRecord): void {
    const ours = { v: 1, owner: OWNER, session_key: "", booked: NO_USAGE } as const;
    this.running.write(lease, { ...ours, record });
  }

  hide(lease: string): void {
    this.running.remove(lease);
    this.booked.delete(lease);
  }

  /** Books the runs that earlier processes have shown and that have ended since. */
  keepOnly(leases: ReadonlySet<string>): void {
    for (const { lease, cost } of this.running.ofOwner(OWNER)) {
      if (leases.has(lease)) continue;
      this.book([cost.record]);
      this.hide(lease);
    }
  }
}
