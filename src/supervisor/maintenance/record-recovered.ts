/** Recovers tasks for a supervisor, and writes to the journals what the mailbox did. */
import { join } from "node:path";
import { matchChosen } from "../../agents/chosen-agent.ts";
import { decodeRecord } from "../../codec/records.ts";
import type { BatchCounts } from "../../core/batch.ts";
import { RECOVER_MS } from "../../core/limits.ts";
import { leaseOf, type ProcessingName, runOf } from "../../core/names.ts";
import { retryPolicyOf } from "../../core/outcome.ts";
import type { AgentSettings, Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Task } from "../../core/task.ts";
import { judgeOwner, ownerSequence, processOf, workerIdOf } from "../../host/identity.ts";
import { endTree } from "../../host/process-tree.ts";
import { statOf } from "../../host/regular-file.ts";
import { recordConflict, recordReclaimed, recordSettled } from "../../journal/attempts.ts";
import { hasRecord, hasStarted } from "../../journal/lookup.ts";
import type { Telemetry } from "../../journal/telemetry.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { duplicateIn, skipIn } from "../../mailbox/find/failures.ts";
import { LeaseObserver } from "../../mailbox/recover/lease-observer.ts";
import type {
  ReclaimReason,
  Recovered,
  Recoverer,
  SettledFacts,
} from "../../mailbox/recover/recoverer.ts";
import type { Settlement } from "../../mailbox/settle/settle.ts";
import { excuseCrash } from "./machine-crash.ts";

export interface ChildFacts {
  /** Whether this is our child and its end has not been reported yet: until then its cause of death is not known. */
  isChild(ownerPrefix: string): boolean;
  /** Whether this process died for lack of memory. */
  lackedMemory(ownerPrefix: string): boolean;
}

/** The mailbox whose tasks are recovered, and the journals. */
export interface RescueScope {
  readonly tree: StateTree;
  readonly trays: Trays;
  readonly settings: Settings;
  readonly telemetry: Telemetry;
}

/** Called with the outcome for each task. */
export interface RescueListener {
  /** A task waits to be claimed again. `isLastRun`: its worker died, and only one run is left. */
  onReady(name: ProcessingName, why: string, isLastRun: boolean): void;
  onSettled(id: string, isCompleted: boolean, batch: BatchCounts | undefined): void;
  /** @param isDuplicate the reason: another task had its key */
  onSkipped(id: string, isDuplicate: boolean): void;
  /** A task failed for good because its worker died. */
  onFailed(id: string): void;
  /** Another file was at the final name of a record, which is now at `recordAs` (relative to the mailbox). */
  onConflict(id: string, recordAs: string): void;
  onUnkillable(lease: string, count: number): void;
}

/** @param children facts about processes that this supervisor started; the prefix of a lease names the process */
export function makeTaskRescue(
  scope: RescueScope,
  listener: RescueListener,
  newOwner: () => string = ownerSequence(),
  children?: ChildFacts,
): Recoverer {
  const { tree, trays, settings } = scope;
  const agentOf = (task: Task | undefined): AgentSettings | undefined =>
    task && matchChosen(tree.sessions, task, settings.agents).agent;
  return {
    trays,
    newOwner,
    judge: (owner) => (children?.isChild(processOf(owner)) === true ? "alive" : judgeOwner(owner)),
    lackedMemory: (owner) => children?.lackedMemory(processOf(owner)) === true,
    beatOf: (owner) => {
      const path = join(tree.workers, `${workerIdOf(owner)}.json`);
      return statOf(path)?.mtimeMs;
    },
    observer: new LeaseObserver(RECOVER_MS),
    unfinished: new Set(),
    excused: new Map(),
    excusesCrash: (name) => excuseCrash(tree.sessions, name),
    endLease: async (lease) => {
      const left = await endTree(lease, 0, undefined, tree.dir);
      if (left > 0) listener.onUnkillable(lease, left);
    },
    policyOf: (task) => ({
      maxAttempts: retryPolicyOf(settings, task).maxAttempts,
      agentId: agentOf(task)?.name ?? "none",
    }),
    traces: {
      dirOf: (name) => join(tree.runs, runOf(name)),
      isProgram: (task) => agentOf(task)?.kind === "exec",
      hasStarted: (name) => hasStarted(tree.events, leaseOf(name)),
    },
    onRecovered: (what) => recordRecovered(scope, listener, what),
    onSettled: (settled, facts) => recordSettlement(scope, listener, settled, facts),
  };
}

const REASONS: Record<ReclaimReason, string> = {
  dead: "its worker died",
  memory: "its worker died because memory ran out",
  silent: "its worker fell silent",
};

function recordRecovered(
  { telemetry }: RescueScope,
  listener: RescueListener,
  what: Recovered,
): void {
  switch (what.action) {
    case "reclaimed": {
      const subject = {
        task_id: what.name.id,
        agent_id: what.agentId,
        attempt: what.name.attempt,
        lease: leaseOf(what.name),
        group: what.group,
      };
      const { reason, hasBegun } = what;
      recordReclaimed(telemetry, subject, { reason, hasBegun, nextAttempt: what.next.attempt });
      const why = what.hasBegun ? REASONS[reason] : `${REASONS[reason]} before it was begun`;
      listener.onReady(what.next, why, what.isLastRun);
      return;
    }
    case "reopened":
    case "reclaimed_foreign": {
      const subject = {
        task_id: what.next.id,
        agent_id: "none",
        attempt: what.next.attempt,
        lease: "",
        group: what.group,
      };
      telemetry.event("reclaimed", subject, { reason: what.action });
      listener.onReady(
        what.next,
        what.action === "reopened"
          ? "its record was lost"
          : "the foreign program that had it is silent",
        false,
      );
      return;
    }
    case "failed":
      listener.onFailed(what.name.id);
      return;
    case "conflict": {
      const { name, agentId, lease, recordAs, group } = what;
      const subject = { task_id: name.id, agent_id: agentId, attempt: name.attempt, lease, group };
      recordConflict(telemetry, subject, recordAs);
      telemetry.flush();
      listener.onConflict(name.id, recordAs);
      return;
    }
    case "unskipped":
    case "published":
    case "quarantined":
    case "resubmitted":
    case "cleaned_foreign":
      return;
  }
}

function recordSettlement(
  { telemetry, tree }: RescueScope,
  listener: RescueListener,
  settled: Settlement,
  facts: SettledFacts,
): void {
  const record = decodeRecord(settled.record)?.record;
  if (record === undefined) return;
  const subject = {
    task_id: record.task_id,
    agent_id: record.agent_id,
    attempt: record.attempts,
    lease: record.lease,
    group: settled.task?.group,
  };
  // The dead owner, or another recovery, may have written the journal lines; they must not be written twice.
  const mayBeRecorded = facts.mayBeRecorded || settled.mayBeRecorded === true;
  const skip = skipIn(record);
  const of = duplicateIn(record);
  const isSkipped = skip !== undefined || of !== undefined;
  // A skipped task was never assigned.
  const isUntold =
    !isSkipped && (!mayBeRecorded || !hasRecord(tree.events, record.lease, "completed"));
  if (isUntold) {
    // The owner died between its claim and its journal lines, and no later attempt will write them.
    for (const event of ["assigned", "started"] as const)
      if (!hasRecord(tree.events, record.lease, event)) telemetry.event(event, subject);
    if (!hasRecord(tree.leases, record.lease, "active")) telemetry.lease("active", subject);
  }
  const details = {
    isCompleted: record.status === "completed",
    acquiredAtMs: 0,
    pid: 0,
    durationMs: record.status === "completed" ? record.duration_ms : null,
    error: facts.error,
    kind: facts.kind,
    skip,
    of,
    ...(record.batch === undefined ? {} : { batch: record.batch }),
  };
  recordSettled(telemetry, subject, details, mayBeRecorded);
  telemetry.flush();
  if (isSkipped) listener.onSkipped(record.task_id, of !== undefined);
  else listener.onSettled(record.task_id, record.status === "completed", record.batch);
}
