/** Writes a supervisor's own documents, supervisor.json and control.json, and rotates the journals. */
import { join } from "node:path";
import type { SupervisorDocument } from "../../core/documents.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import { JOURNAL_ROTATE_BYTES, KV_HISTORY_ROTATE_BYTES } from "../../core/limits.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { beatMsOf } from "../../core/stall.ts";
import { kvHistoryOf } from "../../core/state-tree.ts";
import { rotate } from "../../journal/journal.ts";
import type { ControlFile } from "../documents/control-file.ts";
import type { Ownership, OwnershipFacts } from "../documents/ownership.ts";
import type { Environment } from "../environment/environment.ts";
import type { Lifecycle } from "../environment/lifecycle.ts";
import type { PartReport } from "../environment/part.ts";
import type { Parts } from "../environment/parts.ts";
import { NEVER, type Service, type Tick } from "../environment/service.ts";
import type { Shortages } from "../pool/shortages.ts";
import type { DiskLimit } from "../queue/disk-limit.ts";
import { type BlockedTasksParts, findBlockedTasks } from "./blocked-tasks.ts";
import { ReplacedPackage } from "./replaced-package.ts";

export interface StatusWriterParts extends BlockedTasksParts {
  ownership: Ownership;
  control: ControlFile;
  shortOf: MachineShortages;
}

/** The troubles of the machine: they keep tasks from starting, or make us slower. */
interface MachineShortages {
  shortages: Shortages;
  disk: DiskLimit;
  watchers: { readonly watching: SupervisorDocument["watching"] };
}

/** The heartbeat is written with the next look around and does not wake the supervisor by itself. */
const HEARTBEAT_MS = 2000;
/** Minimum time between two reports of the waiting tasks and the plan (ms). It is short, because people look right after something ended. */
const NEWS_MS = 200;

/** How many tasks, and items of each part, that no agent fits are looked at each time. */
const LOOKED_AT_MAX = 100;

export class StatusWriter implements Service {
  private readonly deps: StatusWriterParts;
  private readonly replaced: ReplacedPackage;
  /** The state that was last written to `supervisor.json`, or should have been. */
  last: OwnershipFacts | undefined;
  private readonly beatMs: number;
  private heartbeatAtMs = 0;
  private toldAtMs = Number.NEGATIVE_INFINITY;
  private told = "";
  /** What no agent fits and was reported. */
  private missing = new Set<string>();

  constructor(
    private readonly env: Environment,
    private readonly lifecycle: Lifecycle,
    parts: StatusWriterParts,
  ) {
    this.deps = parts;
    this.beatMs = beatMsOf(env.settings, HEARTBEAT_MS);
    this.replaced = new ReplacedPackage(env, parts.shortOf.shortages);
    env.facts.on("status:changed", () => this.hurry());
  }

  /** @returns the time of the start, ISO 8601. @throws ErrSupervisorRunning, ErrIo: see `Ownership.take` */
  async introduce(): Promise<string> {
    const { ownership } = this.deps;
    await ownership.take(this.facts());
    return ownership.startedAt;
  }

  /** Call when something changed that others should read soon. */
  hurry(): void {
    this.heartbeatAtMs = 0;
  }

  /** When the next unreported change must be written. */
  nextMs(): number {
    return this.news() === this.told ? NEVER : this.toldAtMs + NEWS_MS;
  }

  /** Writes the documents when they are due. */
  work({ nowMs, dueMs }: Tick): void {
    if (dueMs < this.heartbeatAtMs) {
      if (nowMs >= this.toldAtMs + NEWS_MS && this.news() !== this.told) this.tell();
      return;
    }
    this.heartbeatAtMs = nowMs + this.beatMs;
    const { tree, trays, telemetry, alerts, settings } = this.env;
    this.write(() => this.replaced.look());
    this.tell();
    this.deps.control.save();
    const agentLogs = settings.agents.map(({ name }) => join(tree.logs, `${name}.jsonl`));
    for (const path of [tree.events, tree.leases, tree.alerts, ...agentLogs])
      this.write(() => rotate(path, JOURNAL_ROTATE_BYTES, trays.clock.wallMs()));
    this.write(() => rotate(kvHistoryOf(tree), KV_HISTORY_ROTATE_BYTES, trays.clock.wallMs()));
    telemetry.flush();
    this.tellMissing();
    alerts.flush();
  }

  /** Writes the heartbeat by a timer, while no tick comes. @returns call this to end that */
  beatByTimer(): () => void {
    const timer = setInterval(() => this.tell(), this.beatMs);
    return () => clearInterval(timer);
  }

  /** Writes the state to supervisor.json. */
  tell(): void {
    this.toldAtMs = this.env.trays.clock.monotonicMs();
    this.told = this.news();
    this.write(() => {
      this.last = this.facts();
      this.deps.ownership.write(this.last);
    });
  }

  /** Writes the last state. @param isOwner false: another supervisor has taken over, and supervisor.json belongs to it */
  async leave(isOwner: boolean): Promise<void> {
    this.tellMissing();
    try {
      if (isOwner) await this.deps.ownership.leave(this.facts());
    } catch (error) {
      this.env.alerts.notice(`cannot write the last state: ${messageOf(error)}`);
    }
  }

  /** Reports tasks, and items of parts, that no agent fits: each once while it waits. */
  private tellMissing(): void {
    const { queue, parts } = this.deps;
    const found = new Set(parts.statuses.flatMap((one) => one.unmatched?.(LOOKED_AT_MAX) ?? []));
    let left = LOOKED_AT_MAX;
    for (const { id, reason } of queue.backlog.waitingAs("unmatched")) {
      if (left-- === 0) break;
      found.add(`task ${id} cannot run: ${reason ?? "no agent fits"}`);
    }
    for (const message of found)
      if (!this.missing.has(message)) this.env.alerts.alert("no_agent", message);
    this.missing = found;
  }

  /** Runs a write that may fail: the documents are only for readers, and a full disk must not end the work. */
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

  /** Differs when people should read something new. The number of tasks that can run is left out, because it changes all the time. */
  private news(): string {
    const { backlog, scanner } = this.deps.queue;
    const { parts, shortOf } = this.deps;
    return [
      backlog.timedCount,
      backlog.count("blocked"),
      backlog.count("unmatched"),
      scanner.toldUnsettledCount,
      scanner.unreadableCount,
      scanner.isComplete,
      scanner.fieldNotes.version,
      ...parts.statuses.map((status) => status.version),
      JSON.stringify(shortOf.shortages.list()),
    ].join();
  }

  private facts(): OwnershipFacts {
    const { settings } = this.env;
    const { control, parts } = this.deps;
    const { shortages, disk, watchers } = this.deps.shortOf;
    const { backlog, scanner } = this.deps.queue;
    const report = reportOf(parts);
    return {
      status: this.lifecycle.status,
      workers: control.current.max_workers ?? settings.workers,
      processes: settings.processes,
      watching: watchers.watching,
      intake_stopped: disk.shortage === undefined ? null : { reason: "disk", ...disk.shortage },
      waiting: {
        runnable: backlog.count("runnable"),
        delayed: backlog.timedCount,
        blocked: backlog.count("blocked"),
        unmatched: backlog.count("unmatched"),
        unsettled: scanner.toldUnsettledCount,
        unreadable: scanner.unreadableCount,
        is_complete: scanner.isComplete,
        held: findBlockedTasks(this.env.trays, this.deps),
      },
      roadmap: report.roadmap ?? null,
      plan_holds: report.planHolds ?? null,
      roadmap_problem: report.roadmapProblem ?? null,
      troubles: shortages.list(),
      field_warnings: scanner.fieldNotes.list(),
      gates: parts.gates,
      limits: report.limits ?? {},
      ...handlersOf(settings.agents),
      ...(!settings.mailbox_enabled && { mailbox_enabled: false as const }),
      ...(parts.replan() !== undefined && { replans: true as const }),
    };
  }
}

/** The reports of all parts. */
export function reportOf({ statuses }: Parts): PartReport {
  return Object.assign({}, ...statuses.map((status) => status.report?.()));
}

/** The agents that are functions of this program: their settings name no module. */
function handlersOf(agents: readonly AgentSettings[]): { handlers?: string[] } {
  const own = agents.filter(({ kind, module }) => kind === "module" && module === undefined);
  return own.length === 0 ? {} : { handlers: own.map(({ name }) => name) };
}
