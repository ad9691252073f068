/** What a supervisor writes of itself: supervisor.json, metrics.json, control.json; and it keeps the journals short. */
import type { Backlog } from "../core/backlog.ts";
import type { Clock } from "../core/clock.ts";
import type { SupervisorDocument } from "../core/documents.ts";
import { messageOf, systemCode } from "../core/errors.ts";
import { JOURNAL_ROTATE_BYTES } from "../core/limits.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { rotate } from "../journal/journal.ts";
import type { Telemetry } from "../journal/telemetry.ts";
import type { Trays } from "../mailbox/trays.ts";
import type { Alerts } from "./alerts.ts";
import type { Bells } from "./bells.ts";
import type { ControlState } from "./control-state.ts";
import { findHeldTasks } from "./held-tasks.ts";
import type { Intake } from "./intake.ts";
import type { Metrics } from "./metrics.ts";
import type { PlanEngine } from "./plan/plan-engine.ts";
import type { Presence, PresenceFacts } from "./presence.ts";
import type { Selection } from "./selection.ts";

export interface OwnDocumentsParts {
  tree: StateTree;
  settings: Settings;
  clock: Clock;
  presence: Presence;
  metrics: Metrics;
  control: ControlState;
  telemetry: Telemetry;
  alerts: Alerts;
  bells: Bells;
  backlog: Backlog;
  intake: Intake;
  trays: Trays;
  selection: Selection;
  plan: PlanEngine;
}

type Status = SupervisorDocument["status"];

/** Done with the look around that comes next: nobody wakes for it. */
const HEARTBEAT_MS = 2000;

export class OwnDocuments {
  private readonly p: OwnDocumentsParts;
  private heartbeatAtMs = 0;

  constructor(parts: OwnDocumentsParts) {
    this.p = parts;
  }

  /** @throws ErrSupervisorRunning, ErrIo: see `Presence.take` */
  async introduce(status: Status): Promise<void> {
    await this.p.presence.take(this.facts(status));
  }

  /** Something changed that others should read of soon. */
  hurry(): void {
    this.heartbeatAtMs = 0;
  }

  /** Writes all of it when it is due. @param dueMs what is due by then is done now; like `nowMs`, monotonic */
  work(nowMs: number, dueMs: number, status: Status): void {
    if (dueMs < this.heartbeatAtMs) return;
    this.heartbeatAtMs = nowMs + HEARTBEAT_MS;
    const { tree, clock, metrics, control, telemetry, alerts } = this.p;
    this.tell(status);
    this.write(() => metrics.write(clock.wallMs()));
    control.save();
    for (const path of [tree.events, tree.leases, tree.alerts])
      this.write(() => rotate(path, JOURNAL_ROTATE_BYTES, clock.wallMs()));
    telemetry.flush();
    alerts.flush();
  }

  /** Says how it stands, in supervisor.json. */
  tell(status: Status): void {
    this.write(() => this.p.presence.write(this.facts(status)));
  }

  /** The last words. @param isOwner false: another supervisor has taken over, and supervisor.json is its own */
  async leave(status: Status, isOwner: boolean): Promise<void> {
    const { clock, metrics, presence, alerts } = this.p;
    try {
      metrics.write(clock.wallMs());
      if (isOwner) await presence.leave(this.facts(status));
    } catch (error) {
      alerts.notice(`cannot write the last state: ${messageOf(error)}`);
    }
  }

  /** Documents are for others to look at: a full disk must not end the work. */
  private write(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.p.alerts.report(
        `document:${systemCode(error)}`,
        `cannot write the state of the supervisor: ${messageOf(error)}`,
      );
    }
  }

  private facts(status: Status): PresenceFacts {
    const { settings, control, bells, backlog, intake, plan } = this.p;
    return {
      status,
      workers: control.current.max_workers ?? settings.workers,
      processes: settings.processes,
      watching: bells.watching,
      waiting: {
        runnable: backlog.count("runnable"),
        delayed: backlog.count("delayed"),
        blocked: backlog.count("blocked"),
        unmatched: backlog.count("unmatched"),
        unsettled: intake.unsettledCount,
        unreadable: intake.unreadableCount,
        is_complete: intake.isComplete,
        held: findHeldTasks(this.p),
      },
      roadmap: plan.counts() ?? null,
      plan_holds: plan.holds() ?? null,
      roadmap_problem: plan.problem ?? null,
    };
  }
}
