/** Counts the events and durations of a state tree from its journal, which also holds those of earlier runs and other workers. */
import { isObject } from "../../core/json-object.ts";
import {
  addDuration,
  type DurationBins,
  durationBinsOf,
  percentileOf,
} from "../../core/percentiles.ts";
import { readDocument, replaceDocument } from "../../host/documents.ts";
import type { JournalRecord } from "../../supervisor/environment/facts.ts";
import type { JournalPlace } from "../../supervisor/environment/journal-reader.ts";

export interface MetricsDocument {
  updated_at: string;
  /** How many events of each name there were. */
  events: Record<string, number>;
  tasks: {
    completed: number;
    failed: number;
    /** Tasks that did not run, because one that they depend on had failed. */
    skipped?: number;
    /** How many completed batches have failed lines. Documents of earlier versions lack this field. */
    with_failed_lines?: number;
    retried: number;
    reclaimed: number;
    quarantined: number;
    fenced: number;
    /** Files that were dropped again unchanged: their tasks did not run again. */
    duplicates: number;
  };
  /** The last duplicate file; `t` in epoch ms. */
  last_duplicate: { task_id: string; t: number } | null;
  /** The share of settled tasks that completed without a failed line; null before the first task has settled. */
  success_rate: number | null;
  duration_ms: {
    count: number;
    sum: number;
    mean: number | null;
    max: number;
    p50: number | null;
    p95: number | null;
  };
  /** The counts that the percentiles are computed from. */
  duration_bins: DurationBins;
  journal: { ino: number; offset: number; bad_lines: number };
}

export class Metrics {
  private readonly path: string;
  private readonly events: Record<string, number>;
  private completed: number;
  private failed: number;
  private skipped: number;
  private withFailedLines: number;
  private readonly bins: DurationBins;
  private count: number;
  private sum: number;
  private max: number;
  private readonly badBefore: number;
  private lastDuplicate: MetricsDocument["last_duplicate"];
  private isChanged = true;
  /** The place in the journal up to which an earlier run has counted. */
  readonly place: JournalPlace;

  /** Goes on from the counts in `metrics.json`. */
  constructor(path: string) {
    this.path = path;
    const old = readDocument<MetricsDocument>(path);
    this.place = { ino: numberOf(old?.journal?.ino), offset: numberOf(old?.journal?.offset) };
    this.events = { ...old?.events };
    this.completed = numberOf(old?.tasks?.completed);
    this.failed = numberOf(old?.tasks?.failed);
    this.skipped = numberOf(old?.tasks?.skipped);
    this.withFailedLines = numberOf(old?.tasks?.with_failed_lines);
    // Earlier versions kept bins by powers of two (`duration_histogram`), which are too coarse. They are not read: percentiles
    // start again in such a tree, and all other counts go on.
    this.bins = durationBinsOf(old?.duration_bins);
    this.count = numberOf(old?.duration_ms?.count);
    this.sum = numberOf(old?.duration_ms?.sum);
    this.max = numberOf(old?.duration_ms?.max);
    this.badBefore = numberOf(old?.journal?.bad_lines);
    this.lastDuplicate = old?.last_duplicate ?? null;
  }

  /** @param event undefined: the line is no record. @param record given for events that need more than their name */
  add(event: string | undefined, record: JournalRecord | undefined): void {
    this.isChanged = true;
    if (event === undefined) return;
    this.events[event] = (this.events[event] ?? 0) + 1;
    if (record === undefined) return;
    if (event === "completed") this.addCompleted(record);
    const { task_id: id, t } = record;
    if (event === "duplicate" && typeof id === "string")
      this.lastDuplicate = { task_id: id, t: numberOf(t) };
  }

  /** @param badCount lines since the start that are not records. @throws a system error */
  write(nowWallMs: number, place: JournalPlace, badCount: number): void {
    if (!this.isChanged) return;
    replaceDocument(this.path, this.document(nowWallMs, place, badCount), { missingMax: 2 });
    this.isChanged = false;
  }

  private addCompleted(record: JournalRecord): void {
    if (record["kind"] === "dependency_failed") this.skipped++;
    else if (record["status"] === "failed") this.failed++;
    else {
      this.completed++;
      if (failuresIn(record["batch"]) > 0) this.withFailedLines++;
    }
    const ms = record["duration_ms"];
    if (typeof ms !== "number" || !(ms >= 0)) return;
    this.count++;
    this.sum += ms;
    this.max = Math.max(this.max, ms);
    addDuration(this.bins, ms);
  }

  private document(nowWallMs: number, place: JournalPlace, badCount: number): MetricsDocument {
    const settled = this.completed + this.failed;
    const of = (name: string): number => this.events[name] ?? 0;
    return {
      updated_at: new Date(nowWallMs).toISOString(),
      events: this.events,
      tasks: {
        completed: this.completed,
        failed: this.failed,
        skipped: this.skipped,
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
      journal: { ...place, bad_lines: this.badBefore + badCount },
    };
  }
}

function failuresIn(batch: unknown): number {
  return isObject(batch) ? numberOf(batch["failures"]) : 0;
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
