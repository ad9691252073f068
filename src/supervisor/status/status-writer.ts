/** What a supervisor writes of itself: supervisor.json, metrics.json, control.json; and it keeps the journals short. */
import type { SupervisorDocument } from "../../core/documents.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import { JOURNAL_ROTATE_BYTES, KV_HISTORY_ROTATE_BYTES } from "../../core/limits.ts";
import { kvHistoryOf } from "../../core/state-tree.ts";
import { rotate } from "../../journal/journal.ts";
import type { ControlFile } from "../documents/control-file.ts";
import type { Ownership, OwnershipFacts } from "../documents/ownership.ts";
import type { Environment } from "../environment/environment.ts";
import { NEVER, type Service, type Tick } from "../environment/service.ts";
import type { Shortages } from "../pool/shortages.ts";
import type { DiskLimit } from "../queue/disk-limit.ts";
import { type BlockedTasksParts, findBlockedTasks } from "./blocked-tasks.ts";
import { MissingAgents } from "./missing-agents.ts";

export interface StatusWriterParts extends BlockedTasksParts {
  ownership: Ownership;
  metrics: { write(wallMs: number): void };
  control: ControlFile;
  shortages: Shortages;
  watchers: { readonly watching: SupervisorDocument["watching"] };
  disk: DiskLimit;
}

/** Done with the look around that comes next: it wakes nothing by itself. */
const HEARTBEAT_MS = 2000;
/** What waits, and how far the plan is, is told this long after it was told last (ms): people look right after something ended. */
const NEWS_MS = 200;

export class StatusWriter implements Service {
  private readonly env: Environment;
  private readonly p: StatusWriterParts;
  private readonly noAgent: MissingAgents;
  private heartbeatAtMs = 0;
  private toldAtMs = Number.NEGATIVE_INFINITY;
  private told = "";

  constructor(env: Environment, parts: StatusWriterParts) {
    this.env = env;
    this.p = parts;
    this.noAgent = new MissingAgents(parts.backlog, parts.plan, env.alerts);
    env.facts.on("status:changed", () => this.hurry());
  }

  /** @throws ErrSupervisorRunning, ErrIo: see `Ownership.take` */
  async introduce(): Promise<void> {
    await this.p.ownership.take(this.facts());
  }

  /** Something changed that others should read of soon. */
  hurry(): void {
    this.heartbeatAtMs = 0;
  }

  /** When there is something to tell that is not told yet. */
  nextMs(): number {
    return this.news() === this.told ? NEVER : this.toldAtMs + NEWS_MS;
  }

  /** Writes all of it when it is due. */
  work({ nowMs, dueMs }: Tick): void {
    if (dueMs < this.heartbeatAtMs) {
      if (nowMs >= this.toldAtMs + NEWS_MS && this.news() !== this.told) this.tell();
      return;
    }
    this.heartbeatAtMs = nowMs + HEARTBEAT_MS;
    const { tree, clock, telemetry, alerts } = this.env;
    const { metrics, control } = this.p;
    this.tell();
    this.write(() => metrics.write(clock.wallMs()));
    control.save();
    for (const path of [tree.events, tree.leases, tree.alerts])
      this.write(() => rotate(path, JOURNAL_ROTATE_BYTES, clock.wallMs()));
    this.write(() => rotate(kvHistoryOf(tree), KV_HISTORY_ROTATE_BYTES, clock.wallMs()));
    telemetry.flush();
    this.noAgent.tell();
    alerts.flush();
  }

  /** Says how it stands, in supervisor.json. */
  tell(): void {
    this.toldAtMs = this.env.clock.monotonicMs();
    this.told = this.news();
    this.write(() => this.p.ownership.write(this.facts()));
  }

  /** The last words. @param isOwner false: another supervisor has taken over, and supervisor.json is its own */
  async leave(isOwner: boolean): Promise<void> {
    const { clock, alerts } = this.env;
    const { metrics, ownership } = this.p;
    this.noAgent.tell();
    try {
      metrics.write(clock.wallMs());
      if (isOwner) await ownership.leave(this.facts());
    } catch (error) {
      alerts.notice(`cannot write the last state: ${messageOf(error)}`);
    }
  }

  /** Documents are for others to look at: a full disk must not end the work. */
  private write(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.env.alerts.report(
        `document:${systemCode(error)}`,
        `cannot write the state of the supervisor: ${messageOf(error)}`,
      );
    }
  }

  /** Differs when people should read something else. What can run is left out: while much runs it differs at each look. */
  private news(): string {
    const { backlog, scanner, plan, shortages } = this.p;
    return [
      backlog.count("delayed"),
      backlog.count("blocked"),
      backlog.count("unmatched"),
      scanner.unsettledCount,
      scanner.unreadableCount,
      scanner.isComplete,
      plan.version,
      JSON.stringify(shortages.list()),
    ].join();
  }

  private facts(): OwnershipFacts {
    const { settings, lifecycle } = this.env;
    const { control, watchers, disk, backlog, scanner, plan, shortages } = this.p;
    return {
      status: lifecycle.status,
      workers: control.current.max_workers ?? settings.workers,
      processes: settings.processes,
      watching: watchers.watching,
      intake_stopped: disk.shortage === undefined ? null : { reason: "disk", ...disk.shortage },
      waiting: {
        runnable: backlog.count("runnable"),
        delayed: backlog.count("delayed"),
        blocked: backlog.count("blocked"),
        unmatched: backlog.count("unmatched"),
        unsettled: scanner.unsettledCount,
        unreadable: scanner.unreadableCount,
        is_complete: scanner.isComplete,
        held: findBlockedTasks(this.env.trays, this.p),
      },
      roadmap: plan.counts() ?? null,
      plan_holds: plan.holds() ?? null,
      roadmap_problem: plan.problem ?? null,
      troubles: shortages.list(),
    };
  }
}
