/** Counts the tasks that ended in a period, in groups. Pure: it is given the lines of the journal of events in order. */
import { addDuration, type DurationBins, percentileOf } from "../core/percentiles.ts";
import { addUsage, type MeasuredUsage, type RunUsage } from "../core/run-usage.ts";
import { isSkippedKind } from "../core/skipped.ts";

type Line = Readonly<Record<string, unknown>>;

/** Times in ms, at most 2 % off; `max` is exact. Null without values. */
export interface Times {
  p50: number | null;
  p95: number | null;
  max: number | null;
}

export interface Row {
  /** What its tasks have in common; "" when they say nothing. */
  group: string;
  completed: number;
  failed: number;
  /** Did not run, because a task that they depend on had failed. Not in the times. */
  skipped: number;
  /** How many failed in each way, as the line says that comes before their end. Cancelled tasks count as failed. */
  kinds: Record<string, number>;
  /** Runs of these tasks, also those before the period. */
  runs: number;
  /** How long they were in the inbox. */
  waited_ms: Times;
  /** How long their last runs took. */
  ran_ms: Times;
  /** Processor time of the programs of all of their runs, as far as was seen; null when nothing was. */
  cpu_ms: number | null;
  /** The most memory that one of these programs was seen to have. */
  peak_memory_bytes: number | null;
}

/** Durations of which only the distribution is kept. */
export class Durations {
  readonly bins: DurationBins = {};
  private max: number | null = null;

  add(value: unknown): void {
    if (typeof value !== "number" || !Number.isFinite(value) || value < 0) return;
    addDuration(this.bins, value);
    this.max = Math.max(this.max ?? 0, value);
  }

  times(): Times {
    const of = (share: number): number | null =>
      percentileOf(this.bins, share, this.max ?? undefined);
    return { p50: of(0.5), p95: of(0.95), max: this.max };
  }
}

interface Counted extends Pick<Row, "completed" | "failed" | "skipped" | "kinds" | "runs"> {
  waited: Durations;
  ran: Durations;
  usage: RunUsage;
}

/** At most so many reasons of failed tasks are kept until the line of their end comes. */
const REASONS_MAX = 10_000;

export class Tally {
  /** Lines that were never written, because the disk was full. */
  lostLines = 0;
  private readonly groups = new Map<string, Counted>();
  /** How long tasks that have not ended were in the inbox, by submission. */
  private readonly waits = new Map<string, unknown>();
  /** Why they failed. */
  private readonly reasons = new Map<string, string>();
  /** What their runs so far have used. */
  private readonly used = new Map<string, MeasuredUsage>();

  /**
   * @param toMs excluded
   * @param groupOf the name of a task's group, from the line of the task's end
   */
  constructor(
    private readonly span: { fromMs: number; toMs: number },
    private readonly groupOf: (line: Line) => string,
  ) {}

  add(line: Line): void {
    const submission = String(line["submission"]);
    if (line["event"] === "selected") this.waits.set(submission, line["queue_ms"]);
    const waitedMs = this.waits.get(submission);
    const usage = this.usageWith(line, submission);
    const { event, kind } = line;
    if (event === "failed" || event === "cancelled")
      this.noteReason(submission, typeof kind === "string" ? kind : event);
    const reason = this.reasons.get(submission) ?? kind;
    if (event === "completed")
      for (const open of [this.waits, this.used, this.reasons]) open.delete(submission);
    const atMs = line["t"];
    if (typeof atMs !== "number" || atMs < this.span.fromMs || atMs >= this.span.toMs) return;
    if (event === "records_dropped") this.lostLines += Number(line["count"]) || 0;
    if (event !== "completed") return;
    const group = this.of(this.groupOf(line));
    if (line["status"] === "completed") group.completed++;
    else if (isSkippedKind(kind)) {
      group.skipped++;
      return;
    } else {
      group.failed++;
      const known = typeof reason === "string" ? reason : "unknown";
      group.kinds[known] = (group.kinds[known] ?? 0) + 1;
    }
    if (typeof line["attempt"] === "number") group.runs += line["attempt"];
    group.waited.add(waitedMs);
    group.ran.add(line["duration_ms"]);
    if (usage !== undefined) addUsage(group.usage, usage);
  }

  /** The groups with the most tasks first. */
  rows(): Row[] {
    const size = ({ completed, failed, skipped }: Row): number => completed + failed + skipped;
    return [...this.groups]
      .map(([group, { waited, ran, usage, ...counts }]): Row => {
        const { cpu_ms = null, peak_memory_bytes = null } = usage;
        const times = { waited_ms: waited.times(), ran_ms: ran.times() };
        return { group, ...counts, ...times, cpu_ms, peak_memory_bytes };
      })
      .sort((a, b) => size(b) - size(a) || (a.group < b.group ? -1 : 1));
  }

  /** Removes a group from the counts. */
  forget(group: string): void {
    this.groups.delete(group);
  }

  private noteReason(submission: string, kind: string): void {
    this.reasons.set(submission, kind);
    const [oldest] = this.reasons.keys();
    if (oldest !== undefined && this.reasons.size > REASONS_MAX) this.reasons.delete(oldest);
  }

  /** What the runs of a task have used, up to this line. */
  private usageWith(line: Line, submission: string): MeasuredUsage | undefined {
    const { cpu_ms: cpuMs, peak_memory_bytes: bytes } = line;
    const before = this.used.get(submission);
    if (typeof cpuMs !== "number" || typeof bytes !== "number") return before;
    const sum = before ?? { cpu_ms: 0, peak_memory_bytes: 0 };
    addUsage(sum, { cpu_ms: cpuMs, peak_memory_bytes: bytes });
    this.used.set(submission, sum);
    return sum;
  }

  private of(name: string): Counted {
    const known = this.groups.get(name);
    if (known !== undefined) return known;
    const none = { completed: 0, failed: 0, skipped: 0, kinds: {}, runs: 0, usage: {} };
    const fresh: Counted = { ...none, waited: new Durations(), ran: new Durations() };
    this.groups.set(name, fresh);
    return fresh;
  }
}
