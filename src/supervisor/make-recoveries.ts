/** The two recoveries of a supervisor: of tasks, and of commands. What they find is told to whoever keeps count of it. */
import { messageOf, systemCode } from "../core/errors.ts";
import { formatName, type ProcessingName } from "../core/names.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { judgeOwner } from "../host/identity.ts";
import type { Telemetry } from "../journal/telemetry.ts";
import { LeaseObserver } from "../mailbox/recover.ts";
import type { Trays } from "../mailbox/trays.ts";
import { type Alerts, tellConflict } from "./alerts.ts";
import { RecoveryRounds } from "./recovery-rounds.ts";
import { makeTaskRecoverer, RECOVER_MS } from "./task-recoverer.ts";

export interface TaskRecoveryParts {
  tree: StateTree;
  trays: Trays;
  settings: Settings;
  telemetry: Telemetry;
  alerts: Alerts;
  newOwner: () => string;
  /** A task waits in `processing/` again; its worker died, and no run is left after the next one (`isLastRun`). */
  onReady(name: ProcessingName, isLastRun: boolean): void;
  onSettled(id: string, isCompleted: boolean): void;
}

export function makeTaskRecovery(parts: TaskRecoveryParts): RecoveryRounds {
  const { settings, alerts } = parts;
  const recoverer = makeTaskRecoverer({
    ...parts,
    onReady: (name, why, isLastRun) => {
      parts.onReady(name, isLastRun);
      alerts.notice(`took back ${name.id}: ${why}`);
    },
    onFailed: (id) =>
      alerts.raise("worker_died", `${id} failed: its worker died in its last attempt`),
    onConflict: (id, recordAs) => tellConflict(alerts, id, recordAs),
    onUnkillable: (lease, count) =>
      alerts.report(`tree:${lease}`, `${count} processes of lease ${lease} cannot be killed`),
  });
  return new RecoveryRounds(recoverer, settings.lease_ttl_ms, (error) =>
    alerts.report(`recover:${systemCode(error)}`, `recovery: ${messageOf(error)}; trying again`),
  );
}

export interface CommandRecoveryParts {
  controlTrays: Trays;
  settings: Settings;
  alerts: Alerts;
  newOwner: () => string;
  /** A command waits in `processing/` again. */
  onReady(file: string): void;
}

export function makeCommandRecovery(parts: CommandRecoveryParts): RecoveryRounds {
  const { controlTrays, settings, alerts, newOwner } = parts;
  return new RecoveryRounds(
    {
      trays: controlTrays,
      newOwner,
      judge: judgeOwner,
      observer: new LeaseObserver(RECOVER_MS),
      unfinished: new Set(),
      endLease: () => Promise.resolve(),
      // Commands are idempotent: taken up again as often as it takes.
      policyOf: () => ({ maxAttempts: Number.POSITIVE_INFINITY, agentId: "supervisor" }),
      onRecovered: (what) => {
        if (what.action === "reclaimed" || what.action === "reopened")
          parts.onReady(formatName(what.next));
      },
      onSettled: () => {},
    },
    settings.lease_ttl_ms,
    (error) => alerts.report("control-recover", `control recovery: ${messageOf(error)}`),
  );
}
