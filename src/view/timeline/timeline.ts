/**
 * Collects from the journal of events who ran when: the runs of tasks and how each ended, the waits at gates, and what happened to the
 * pool itself. Pure: it is given the lines in their order.
 */
import { parseObject } from "../../core/json-object.ts";
import { LANDING_GROUP } from "../../core/landing.ts";
import { isSkippedKind } from "../../core/skipped.ts";

type Line = Readonly<Record<string, unknown>>;

/**
 * How a run ended. `again`: another run follows, and an attempt is used up; `back`: the task waits, and none is used up; `killed`: it
 * was taken back from a worker that had died.
 */
export type RunEnd = "done" | "failed" | "cancelled" | "again" | "back" | "killed";

export interface TimelineRun {
  id: string;
  title: string;
  /** The lane that it stands in: an agent, a group of programs, or landings. */
  lane: string;
  attempt: number;
  /** Epoch ms; `to_ms` is null while it runs. */
  from_ms: number;
  to_ms: number | null;
  end: RunEnd | null;
  /** Why it ended so; "" when the journal does not say. */
  why: string;
}

/** A time in which a task waited at a gate, or the pool was paused. */
export interface TimelineWait {
  /** The task; "" for the pool. */
  id: string;
  /** The name of the gate; `paused` for the pool. */
  gate: string;
  why: string;
  from_ms: number;
  to_ms: number | null;
}

/** Something that happened to the pool. */
export interface TimelineMark {
  at_ms: number;
  what: string;
}

/** The lane of the tasks that land the work of others. */
export const LANDINGS = "landing";
const PAUSED = "paused";
const LATEST_MAX = 100;
/** More runs, waits or marks than this are not kept: the oldest ones are forgotten, a fifth at a time. */
const KEPT_MAX = 50_000;
/** A line counts if it begins with one of these. */
const COUNTED =
  /^\{"event":"(?:selected|assigned|completed|failed|cancelled|retry_scheduled|released|held|reclaimed|supervisor_st|worker_stopped|paused|resumed)/;
const PUT_BACK: Readonly<Record<string, RunEnd>> = {
  retry_scheduled: "again",
  released: "back",
  held: "back",
  reclaimed: "killed",
};

const RECLAIMED: Readonly<Record<string, string>> = {
  dead: "its worker had died",
  memory: "its worker got no memory",
  silent: "its worker was silent",
};

export class Timeline {
  readonly runs: TimelineRun[] = [];
  readonly waits: TimelineWait[] = [];
  /** The tasks that ended last, the latest one at the end: their last run, or one of no length for a task that none was known of. */
  readonly latest: TimelineRun[] = [];
  readonly marks: TimelineMark[] = [];
  /** Nothing is known about the time before (epoch ms); null before the first line. */
  knownFromMs: number | null = null;
  /** The time of the latest line (epoch ms); 0 before the first. */
  lastMs = 0;
  /** What runs and waits, by submission. */
  private readonly open = new Map<string, TimelineRun>();
  private readonly held = new Map<string, TimelineWait>();
  private readonly titles = new Map<string, string>();
  /** Why tasks end as failed: the journal has this line just before the line of their end. */
  private readonly reasons = new Map<string, string>();
  private lastOfSupervisor = "";

  /** @param text a line of the journal. Lines that cannot count are not parsed. */
  addText(text: string): void {
    const line = COUNTED.test(text) ? parseObject(text) : undefined;
    if (line !== undefined) this.add(line);
  }

  add(line: Line): void {
    const atMs = line["t"];
    if (typeof atMs !== "number" || !Number.isFinite(atMs)) return;
    this.knownFromMs ??= atMs;
    this.lastMs = Math.max(this.lastMs, atMs);
    const event = textOf(line["event"]);
    // A line of another program may not name it.
    const submission = textOf(line["submission"]) || textOf(line["task_id"]);
    if (submission === "") this.addPool(event, line, atMs);
    else this.addTask(event, line, submission, atMs);
  }

  private addPool(event: string, line: Line, atMs: number): void {
    if (event === "paused") {
      this.beginWait(PAUSED, { id: "", gate: PAUSED, why: textOf(line["error"]), from_ms: atMs });
    } else if (event === "resumed") this.endWait(PAUSED, atMs);
    else if (event === "worker_stopped")
      this.mark(`worker ${textOf(line["id"])} ended (${textOf(line["error"])})`, atMs);
    else if (event === "supervisor_started" || event === "supervisor_stopped") {
      if (event === "supervisor_started" && this.lastOfSupervisor === event)
        this.mark("the supervisor had died, and a new one went on", atMs);
      this.lastOfSupervisor = event;
    }
  }

  private addTask(event: string, line: Line, submission: string, atMs: number): void {
    switch (event) {
      case "selected":
        if (typeof line["title"] === "string") this.titles.set(submission, line["title"]);
        break;
      case "assigned":
        this.endWait(submission, atMs);
        this.endRun(submission, "killed", "", atMs);
        this.beginRun(line, submission, atMs);
        break;
      case "failed":
      case "cancelled":
        this.reasons.set(submission, textOf(line["error"]));
        break;
      case "completed":
        this.endWait(submission, atMs);
        this.endTask(line, submission, atMs);
        this.reasons.delete(submission);
        this.titles.delete(submission);
        break;
      default:
        this.putBack(event, line, submission, atMs);
    }
  }

  private putBack(event: string, line: Line, submission: string, atMs: number): void {
    const end = PUT_BACK[event];
    if (end === undefined) return;
    const why = textOf(line["error"]) || (RECLAIMED[textOf(line["reason"])] ?? "");
    const lane = this.open.get(submission)?.lane;
    this.endRun(submission, end, why, atMs);
    // A landing that waits for its review holds up nothing else.
    if (event === "held" && lane !== LANDINGS)
      this.beginWait(submission, {
        id: textOf(line["task_id"]),
        gate: textOf(line["gate"]),
        why,
        from_ms: atMs,
      });
  }

  private endTask(line: Line, submission: string, atMs: number): void {
    const end = endOf(line);
    const why = this.reasons.get(submission) ?? "";
    const run = this.open.get(submission);
    this.endRun(submission, end, why, atMs);
    // Tasks that are cancelled before they run may be very many.
    if (run === undefined && end === "cancelled") return;
    this.latest.push(run ?? { ...this.runOf(line, submission, atMs), to_ms: atMs, end, why });
    this.latest.splice(0, this.latest.length - LATEST_MAX);
  }

  private beginRun(line: Line, submission: string, atMs: number): void {
    const run = this.runOf(line, submission, atMs);
    this.open.set(submission, run);
    if (keep(this.runs, run)) this.knownFromMs = this.runs[0]?.from_ms ?? atMs;
  }

  private runOf(line: Line, submission: string, atMs: number): TimelineRun {
    const id = textOf(line["task_id"]);
    return {
      id,
      title: this.titles.get(submission) ?? "",
      lane: laneOf(id, textOf(line["agent_id"]), textOf(line["group"])),
      attempt: typeof line["attempt"] === "number" ? line["attempt"] : 0,
      from_ms: atMs,
      to_ms: null,
      end: null,
      why: "",
    };
  }

  private endRun(submission: string, end: RunEnd, why: string, atMs: number): void {
    const run = this.open.get(submission);
    if (run === undefined) return;
    this.open.delete(submission);
    Object.assign(run, { to_ms: atMs, end, why });
  }

  private beginWait(key: string, begun: Omit<TimelineWait, "to_ms">): void {
    // It may have waited at another gate, or at this one for another reason.
    this.endWait(key, begun.from_ms);
    const wait = { ...begun, to_ms: null };
    this.held.set(key, wait);
    keep(this.waits, wait);
  }

  private endWait(key: string, atMs: number): void {
    const wait = this.held.get(key);
    if (wait !== undefined) wait.to_ms = atMs;
    this.held.delete(key);
  }

  private mark(what: string, atMs: number): void {
    keep(this.marks, { at_ms: atMs, what });
  }
}

/** @returns true when the oldest ones were forgotten */
function keep<T>(list: T[], one: T): boolean {
  list.push(one);
  if (list.length <= KEPT_MAX) return false;
  list.splice(0, KEPT_MAX / 5);
  return true;
}

function laneOf(id: string, agent: string, group: string): string {
  if (id.endsWith(".land") && LANDING_GROUP.test(group)) return LANDINGS;
  return agent === "exec" && group !== "" ? group : agent;
}

function endOf({ status, kind }: Line): RunEnd {
  if (status === "completed") return "done";
  return kind === "cancelled" || isSkippedKind(kind) ? "cancelled" : "failed";
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
