/** Makes the two recoveries of a supervisor: of tasks, and of commands. */
import { messageOf, systemCode } from "../../core/errors.ts";
import { RECOVER_MS } from "../../core/limits.ts";
import { formatName } from "../../core/names.ts";
import { judgeOwner } from "../../host/identity.ts";
import { tellConflict } from "../../journal/alerts.ts";
import { LeaseObserver } from "../../mailbox/recover/lease-observer.ts";
import type { Environment } from "../environment/environment.ts";
import { type ChildFacts, makeTaskRescue, type RescueListener } from "./record-recovered.ts";
import { TaskRecovery } from "./task-recovery.ts";

/** @param children facts about our own worker processes */
export function makeTaskRecovery(
  env: Environment,
  newOwner: () => string,
  children: ChildFacts,
): TaskRecovery {
  const { settings, alerts, facts, wake } = env;
  const listener: RescueListener = {
    onReady: (name, why, isLastRun) => {
      facts.emit("task:returned", name, isLastRun);
      alerts.notice(`took back ${name.id}: ${why}`);
    },
    onSettled: (id, isCompleted, batch) => {
      facts.emit("task:settled", id, isCompleted, batch);
      wake();
    },
    onSkipped: (id, isDuplicate) => {
      facts.emit("task:skipped", id, isDuplicate);
      wake();
    },
    onFailed: (id) =>
      alerts.raise("worker_died", `${id} failed: its worker died in its last attempt`),
    onConflict: (id, recordAs) => tellConflict(alerts, id, recordAs),
    onUnkillable: (lease, count) =>
      alerts.report(`tree:${lease}`, `${count} processes of lease ${lease} cannot be killed`),
  };
  const recoverer = makeTaskRescue(env, listener, newOwner, children);
  return new TaskRecovery(recoverer, settings.lease_ttl_ms, (error) =>
    alerts.report(`recover:${systemCode(error)}`, `recovery: ${messageOf(error)}; trying again`),
  );
}

/** @param onReady called when a command waits in `processing/` again */
export function makeCommandRecovery(
  env: Environment,
  newOwner: () => string,
  onReady: (file: string) => void,
): TaskRecovery {
  const { controlTrays, settings, alerts } = env;
  return new TaskRecovery(
    {
      trays: controlTrays,
      newOwner,
      judge: judgeOwner,
      observer: new LeaseObserver(RECOVER_MS),
      unfinished: new Set(),
      excused: new Map(),
      endLease: () => Promise.resolve(),
      // Commands are idempotent, so they may be taken up again without limit.
      policyOf: () => ({ maxAttempts: Number.POSITIVE_INFINITY, agentId: "supervisor" }),
      onRecovered: (what) => {
        if (what.action === "reclaimed" || what.action === "reopened")
          onReady(formatName(what.next));
      },
      onSettled: () => {},
    },
    settings.lease_ttl_ms,
    (error) => alerts.report("control-recover", `control recovery: ${messageOf(error)}`),
  );
}
