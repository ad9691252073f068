/** Counts and durations of a state tree: a fold over the lifecycle journal, so that restarts and helpers are all in it. */
import { isObject, parseObject } from "../core/json-object.ts";
import {
  addDuration,
  type DurationBins,
  durationBinsOf,
  percentileOf,
} from "../core/percentiles.ts";
import { readDocument, replaceDocument } from "../host/documents.ts";
import { JournalTail } from "../journal/read.ts";

export interface MetricsDocument {
  updated_at: string;
  /** Events by name. */
  events: Record<string, number>;
  tasks: {
    completed: number;
    failed: number;
    /** Completed batches some of whose lines failed; missing in documents of earlier versions. */
    with_failed_lines?: number;
    retried: number;
    reclaimed: number;
    quarantined: number;
    fenced: number;
    /** Files that were dropped again just as they were: nothing more ran. */
    duplicates: number;
  };
  /** The last of them; `t` in epoch ms. */
  last_duplicate: { task_id: string; t: number } | null;
  /** Of completed and failed the part that completed with all their lines; null before the first. */
  success_rate: number | null;
  duration_ms: {
    count: number;
    sum: number;
    mean: number | null;
    max: number;
    p50: number | null;
    p95: number | null;
  };
  /** What the percentiles are read from. */
  duration_bins: DurationBins;
  journal: { ino: number; offset: number; bad_lines: number };
}

export class Metrics {
  private readonly path: string;
  private readonly tail: JournalTail;
  private readonly events: Record<string, number>;
  private completed: number;
  private failed: number;
  private withFailedLines: number;
  private readonly bins: DurationBins;
  private count: number;
  private sum: number;
  private max: number;
  private badBefore: number;
  private lastDuplicate: MetricsDocument["last_duplicate"];
  private isChanged = true;
  private readonly onLine: (line: string) => void;

  /** Goes on from what `metrics.json` says was counted already. @param onLine called with each line that is read */
  constructor(path: string, eventsPath: string, onLine: (line: string) => void) {
    this.path = path;
    this.onLine = onLine;
    const old = readDocument<MetricsDocument>(path);
    this.tail = new JournalTail(
      eventsPath,
      numberOf(old?.journal?.offset),
      numberOf(old?.journal?.ino),
    );
    this.events = { ...old?.events };
    this.completed = numberOf(old?.tasks?.completed);
    this.failed = numberOf(old?.tasks?.failed);
    this.withFailedLines = numberOf(old?.tasks?.with_failed_lines);
    // Versions before these bins kept powers of two (`duration_histogram`), which tell a duration to within a factor of two
    // only. They are left behind: percentiles begin anew in such a tree, all other counts go on.
    this.bins = durationBinsOf(old?.duration_bins);
    this.count = numberOf(old?.duration_ms?.count);
    this.sum = numberOf(old?.duration_ms?.sum);
    this.max = numberOf(old?.duration_ms?.max);
    this.badBefore = numberOf(old?.journal?.bad_lines);
    this.lastDuplicate = old?.last_duplicate ?? null;
  }

  /** Reads what came since the last time; a bounded piece. @returns ids of tasks that completed, and whether there is more */
  read(): { completedIds: string[]; hasMore: boolean } {
    const completedIds: string[] = [];
    const lines = this.tail.nextLines();
    for (const line of lines) {
      this.add(line, completedIds);
      this.onLine(line);
    }
    if (lines.length > 0) this.isChanged = true;
    return { completedIds, hasMore: lines.length > 0 };
  }

  private add(line: string, completedIds: string[]): void {
    // Our records begin with their event; most need not be parsed to be counted.
    const name = line.endsWith("}") ? EVENT_FIRST.exec(line)?.[1] : undefined;
    if (name !== undefined && name !== "completed" && name !== "duplicate") {
      this.events[name] = (this.events[name] ?? 0) + 1;
      return;
    }
    const record = parseObject(line);
    if (typeof record?.["event"] !== "string") {
      this.tail.counts.bad++;
      return;
    }
    this.events[record["event"]] = (this.events[record["event"]] ?? 0) + 1;
    if (record["event"] === "completed") this.addCompleted(record, completedIds);
    const { task_id: id, t } = record;
    if (record["event"] === "duplicate" && typeof id === "string")
      this.lastDuplicate = { task_id: id, t: numberOf(t) };
  }

  write(nowWallMs: number): void {
    if (!this.isChanged) return;
    replaceDocument(this.path, this.document(nowWallMs), { missingMax: 2 });
    this.isChanged = false;
  }

  /** Lets go of the journal; `write` still works. */
  close(): void {
    this.tail.close();
  }

  private addCompleted(record: Record<string, unknown>, completedIds: string[]): void {
    if (record["status"] === "failed") this.failed++;
    else {
      this.completed++;
      if (failuresIn(record["batch"]) > 0) this.withFailedLines++;
      if (typeof record["task_id"] === "string") completedIds.push(record["task_id"]);
    }
    const ms = record["duration_ms"];
    if (typeof ms !== "number" || !(ms >= 0)) return;
    this.count++;
    this.sum += ms;
    this.max = Math.max(this.max, ms);
    addDuration(this.bins, ms);
  }

  private document(nowWallMs: number): MetricsDocument {
    const settled = this.completed + this.failed;
    const of = (name: string): number => this.events[name] ?? 0;
    return {
      updated_at: new Date(nowWallMs).toISOString(),
      events: this.events,
      tasks: {
        completed: this.completed,
        failed: this.failed,
        with_failed_lines: this.withFailedLines,
        retried: of("retry_scheduled"),
        reclaimed: of("reclaimed"),
        quarantined: of("quarantined"),
        fenced: of("fenced"),
        duplicates: of("duplicate"),
      },
      last_duplicate: this.lastDuplicate,
      success_rate: settled === 0 ? null : (this.completed - this.withFailedLines) / settled,
      duration_ms: {
        count: this.count,
        sum: this.sum,
        mean: this.count === 0 ? null : this.sum / this.count,
        max: this.max,
        p50: percentileOf(this.bins, 0.5, this.max),
        p95: percentileOf(this.bins, 0.95, this.max),
      },
      duration_bins: this.bins,
      journal: {
        ino: this.tail.ino,
        offset: this.tail.offset,
        bad_lines: this.badBefore + this.tail.counts.bad,
      },
    };
  }
}

const EVENT_FIRST = /^\{"event":"([a-z_]+)",/;

function failuresIn(batch: unknown): number {
  return isObject(batch) ? numberOf(batch["failures"]) : 0;
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
