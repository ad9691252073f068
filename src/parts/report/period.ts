/** Collects from the journal of events what happened in a period. Pure: the caller gives it the lines in the order of the files. */
import { isSkippedKind } from "../../core/skipped.ts";
import type { Failure } from "../../view/causes.ts";
import { Durations } from "../../view/tally.ts";
import { Timeline, type TimelineMark } from "../../view/timeline/timeline.ts";

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

export interface EndedFailure extends Failure {
  /** `<s>.<n>` of its last run; "" when the line has none. */
  lease: string;
}

export interface PeriodCounts {
  /** Tasks that completed, without landings and without nodes that asked a question. */
  completed: number;
  cancelled: number;
  /** Tasks that did not run, because a task that they depend on had failed. */
  skipped: number;
  /** Files that were no task. */
  refused: number;
  /** Tasks that failed and completed later, both in the period. */
  mended: number;
  /** Failed runs that were followed by another. */
  retries: number;
  /** Batches with failed lines. */
  with_failed_lines: number;
  /** Runs that were taken back from a dead or silent worker. */
  reclaimed: number;
}

/** How many tasks are kept by name. The counts have no such bound. */
const KEPT_MAX = 200;
const SLOWEST_MAX = 5;

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
  slowest: Ended[] = [];
  /** How long tasks were in the inbox, and how long their last runs took. */
  readonly waited = new Durations();
  readonly ran = new Durations();
  readonly counts: PeriodCounts = {
    completed: 0,
    cancelled: 0,
    skipped: 0,
    refused: 0,
    mended: 0,
    retries: 0,
    with_failed_lines: 0,
    reclaimed: 0,
  };
  /** Who ran when, also before the period and after it. */
  readonly timeline = new Timeline();
  /** Tasks that failed and were put back. */
  private readonly reopened = new Set<string>();
  /** Why tasks end as failed. The journal has this line just before the line of their end. */
  private readonly reasons = new Map<string, { error: string; kind: string }>();

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
    this.timeline.add(line);
    const atMs = numberOf(line["t"]);
    if (atMs !== null && this.isIn(atMs)) this.addTask(textOf(line["event"]), line, atMs);
  }

  private isIn(atMs: number): boolean {
    return atMs >= this.fromMs && atMs < this.toMs;
  }

  /** The deaths of workers and supervisors. */
  crashes(): TimelineMark[] {
    return this.timeline.marks.filter(({ at_ms: atMs }) => this.isIn(atMs));
  }

  /** Waits at gates that began in the period, the longest first. */
  gateWaits(): GateWait[] {
    const gates = new Map<string, GateWait>();
    for (const { id, gate, why, from_ms: fromMs, to_ms: toMs } of this.timeline.waits) {
      if (!this.isIn(fromMs) || id === "" || this.landingIds.has(id)) continue;
      const endMs = Math.min(toMs ?? this.toMs, this.toMs);
      const known = gates.get(gate) ?? {
        gate,
        why,
        waits: 0,
        from_ms: fromMs,
        to_ms: fromMs,
        total_ms: 0,
      };
      gates.set(gate, known);
      known.waits++;
      known.total_ms += endMs - fromMs;
      known.to_ms =
        endMs === this.toMs || known.to_ms === null ? null : Math.max(known.to_ms, endMs);
    }
    return [...gates.values()].sort(
      (a, b) => b.total_ms - a.total_ms || (a.gate < b.gate ? -1 : 1),
    );
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
      case "failed":
      case "cancelled":
      case "skipped":
        this.reasons.set(id, { error, kind: textOf(line["kind"]) || event });
        break;
      case "completed":
        this.addEnd(line, id, atMs);
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
    if (event === "retry_scheduled") this.counts.retries++;
    else if (event === "reclaimed") this.counts.reclaimed++;
    else if (event === "lines_failed") this.counts.with_failed_lines++;
  }

  private addRefused(refused: Failure): void {
    this.counts.refused++;
    if (this.refused.length < KEPT_MAX) this.refused.push(refused);
  }

  private addEnd(line: Line, id: string, atMs: number): void {
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
      if (hadFailed) this.counts.mended++;
    } else if (kind === "cancelled") this.counts.cancelled++;
    else if (isSkippedKind(kind)) this.counts.skipped++;
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
    this.counts.completed++;
    this.completed.push(ended);
    if (this.completed.length > 2 * KEPT_MAX) this.completed.splice(0, KEPT_MAX);
  }

  /** A node that asks a person has ended its run, but is not done. */
  private addQuestion(id: string): void {
    const at = this.completed.findLastIndex((one) => one.id === id);
    if (at === -1) return;
    this.completed.splice(at, 1);
    this.counts.completed--;
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
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
