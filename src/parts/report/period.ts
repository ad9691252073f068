/** Collects from the journal of events what happened in a period. Pure: the caller gives it the lines in the order of the files. */
import { isSkippedKind } from "../../core/skipped.ts";
import type { Failure } from "../../view/causes.ts";
import { Durations } from "../../view/tally.ts";

type Line = Readonly<Record<string, unknown>>;

/** The last end of a task in the period. */
export interface Ended {
  id: string;
  agent: string;
  atMs: number;
  /** How many runs it took. */
  attempts: number;
  durationMs: number | null;
}

/** A wait of tasks at a gate, such as the quota of an account. */
export interface GateWait {
  gate: string;
  /** The reason that the first wait gave. */
  why: string;
  /** How many times a task waited there. */
  waits: number;
  from_ms: number;
  /** Null while a task still waits. */
  to_ms: number | null;
  /** All waits added up (ms). */
  total_ms: number;
}

export interface Crash {
  what: string;
  at_ms: number;
}

export interface EndedFailure extends Failure {
  /** `<s>.<n>` of its last run; "" when the line has none. */
  lease: string;
}

/** How many tasks are kept by name. The counts have no such bound. */
const KEPT_MAX = 200;
const SLOWEST_MAX = 5;
const CRASHES_MAX = 1000;

export class Period {
  /** Completed tasks, in order of time; only the last ones if there are very many. */
  readonly completed: Ended[] = [];
  /** The last failure of each task, by its id, in order of time. */
  readonly failures = new Map<string, EndedFailure>();
  /** The landings that completed. */
  readonly landed: Ended[] = [];
  /** The tools that the last run of each task was denied, by its id. */
  readonly denials = new Map<string, string[]>();
  readonly refused: Failure[] = [];
  readonly crashes: Crash[] = [];
  slowest: Ended[] = [];
  /** How long tasks were in the inbox, and how long their last runs took. */
  readonly waited = new Durations();
  readonly ran = new Durations();
  completedCount = 0;
  cancelledCount = 0;
  /** Tasks that did not run, because a task that they depend on had failed. */
  skippedCount = 0;
  retryCount = 0;
  refusedCount = 0;
  crashCount = 0;
  /** How many runs were taken back from a dead or silent worker. */
  reclaimedCount = 0;
  /** Tasks that failed in the period and completed later in it. */
  mendedCount = 0;
  /** Nodes that ended with a question. */
  askedCount = 0;
  linesFailedCount = 0;
  private readonly gates = new Map<string, GateWait>();
  /** The tasks that wait at a gate, by id, and when their waits began. */
  private readonly held = new Map<string, { gate: string; sinceMs: number }>();
  /** Tasks that failed and were put back. */
  private readonly reopened = new Set<string>();
  /** Why tasks end as failed. The journal has this line just before the line of their end. */
  private readonly reasons = new Map<string, { error: string; kind: string }>();
  private lastOfSupervisor = "";

  /**
   * @param toMs excluded
   * @param landingIds the ids of tasks that land the work of others
   */
  constructor(
    private readonly fromMs: number,
    private readonly toMs: number,
    private readonly landingIds: ReadonlySet<string>,
  ) {}

  add(line: Line): void {
    const atMs = numberOf(line["t"]);
    if (atMs === null || atMs >= this.toMs) return;
    const event = textOf(line["event"]);
    // Earlier lines count, too: they say whether the supervisor before the first one of the period had stopped in order.
    if (event === "supervisor_started" || event === "supervisor_stopped")
      this.addSupervisor(event, atMs);
    if (atMs >= this.fromMs) this.addTask(event, line, atMs);
  }

  /** Waits at gates, the longest first. */
  gateWaits(): GateWait[] {
    const waits = [...this.gates.values()].map((wait) => ({ ...wait }));
    for (const { gate, sinceMs } of this.held.values()) {
      const wait = waits.find((one) => one.gate === gate);
      if (wait === undefined) continue;
      wait.total_ms += this.toMs - sinceMs;
      wait.to_ms = null;
    }
    return waits.sort((a, b) => b.total_ms - a.total_ms || (a.gate < b.gate ? -1 : 1));
  }

  private addSupervisor(event: string, atMs: number): void {
    const before = this.lastOfSupervisor;
    this.lastOfSupervisor = event;
    if (event === "supervisor_started" && before === "supervisor_started" && atMs >= this.fromMs)
      this.addCrash("the supervisor had died, and a new one went on", atMs);
  }

  private addTask(event: string, line: Line, atMs: number): void {
    const id = textOf(line["task_id"]);
    const error = textOf(line["error"]);
    switch (event) {
      case "selected":
        // A person has put the task back, or a program has dropped it again, so it is open.
        this.waited.add(line["queue_ms"]);
        if (line["attempt"] === 1 && this.failures.delete(id)) this.reopened.add(id);
        break;
      case "assigned":
        this.endWait(id, atMs);
        break;
      case "failed":
      case "cancelled":
      case "skipped":
        this.reasons.set(id, { error, kind: textOf(line["kind"]) || event });
        break;
      case "completed":
        this.addEnd(line, id, atMs);
        break;
      case "held":
        if (this.landingIds.has(id)) break;
        this.beginWait(id, textOf(line["gate"]), error, atMs);
        break;
      case "worker_stopped":
        this.addCrash(`worker ${textOf(line["id"])} ended (${error})`, atMs);
        break;
      case "blocked":
        this.addQuestion(id);
        break;
      case "quarantined":
        this.addRefused({ id, kind: "refused", error, atMs });
        break;
      default:
        this.countOther(event);
    }
  }

  private countOther(event: string): void {
    if (event === "retry_scheduled") this.retryCount++;
    else if (event === "reclaimed") this.reclaimedCount++;
    else if (event === "lines_failed") this.linesFailedCount++;
  }

  private addRefused(refused: Failure): void {
    this.refusedCount++;
    if (this.refused.length < KEPT_MAX) this.refused.push(refused);
  }

  private addEnd(line: Line, id: string, atMs: number): void {
    this.endWait(id, atMs);
    const { error = "", kind = "unknown" } = this.reasons.get(id) ?? {};
    this.reasons.delete(id);
    const ended: Ended = {
      id,
      agent: textOf(line["agent_id"]),
      atMs,
      attempts: numberOf(line["attempt"]) ?? 0,
      durationMs: numberOf(line["duration_ms"]),
    };
    if (this.landingIds.has(id)) {
      // The section about work reports a landing that failed.
      if (line["status"] === "completed") this.landed.push(ended);
      return;
    }
    this.noteRun(ended);
    this.noteDenied(id, line["denied"]);
    if (line["status"] === "completed") {
      this.addCompleted(ended);
      const hadFailed = [this.failures.delete(id), this.reopened.delete(id)].includes(true);
      if (hadFailed) this.mendedCount++;
    } else if (kind === "cancelled") this.cancelledCount++;
    else if (isSkippedKind(kind)) this.skippedCount++;
    else {
      this.failures.delete(id);
      this.failures.set(id, { id, kind, error, atMs, lease: textOf(line["lease"]) });
    }
  }

  private noteDenied(id: string, tools: unknown): void {
    this.denials.delete(id);
    if (Array.isArray(tools) && this.denials.size < KEPT_MAX)
      this.denials.set(id, tools.map(textOf));
  }

  private addCompleted(ended: Ended): void {
    this.completedCount++;
    this.completed.push(ended);
    if (this.completed.length > 2 * KEPT_MAX) this.completed.splice(0, KEPT_MAX);
  }

  /** A node that asks a person has ended its run, but is not done. */
  private addQuestion(id: string): void {
    this.askedCount++;
    const at = this.completed.findLastIndex((one) => one.id === id);
    if (at === -1) return;
    this.completed.splice(at, 1);
    this.completedCount--;
  }

  private noteRun(ended: Ended): void {
    this.ran.add(ended.durationMs);
    const least = this.slowest.at(-1)?.durationMs ?? 0;
    if (ended.durationMs === null) return;
    if (this.slowest.length === SLOWEST_MAX && ended.durationMs <= least) return;
    this.slowest = [...this.slowest, ended]
      .sort((a, b) => (b.durationMs ?? 0) - (a.durationMs ?? 0))
      .slice(0, SLOWEST_MAX);
  }

  private addCrash(what: string, atMs: number): void {
    this.crashCount++;
    if (this.crashes.length < CRASHES_MAX) this.crashes.push({ what, at_ms: atMs });
  }

  private beginWait(id: string, gate: string, why: string, atMs: number): void {
    // The task may have waited at another gate, or at this one for another reason.
    this.endWait(id, atMs);
    const known = this.gates.get(gate);
    this.held.set(id, { gate, sinceMs: atMs });
    if (known !== undefined) known.waits++;
    else this.gates.set(gate, { gate, why, waits: 1, from_ms: atMs, to_ms: atMs, total_ms: 0 });
  }

  private endWait(id: string, atMs: number): void {
    const held = this.held.get(id);
    const wait = held && this.gates.get(held.gate);
    if (held === undefined || wait === undefined) return;
    this.held.delete(id);
    wait.total_ms += atMs - held.sinceMs;
    wait.to_ms = Math.max(wait.to_ms ?? 0, atMs);
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
