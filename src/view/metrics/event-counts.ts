/**
 * Counts the events and durations of a state tree from the lines of its journal. The supervisor keeps the counts in
 * `metrics.json`. A program that shows them continues from there with the lines that came since. Pure.
 */

import { isObject } from "../../core/json-object.ts";
import {
  addDuration,
  type DurationBins,
  durationBinsOf,
  percentileOf,
} from "../../core/percentiles.ts";
import { isSkippedKind } from "../../core/skipped.ts";
import type { EventLine } from "../../journal/event-line.ts";
import type { JournalPlace } from "../../journal/read-on.ts";
import { Histogram, type HistogramDocument } from "./histogram.ts";

export interface MetricsDocument {
  updated_at: string;
  /** How many events of each name there were. */
  events: Record<string, number>;
  tasks: {
    completed: number;
    failed: number;
    /** Tasks that did not run, because a task that they depend on had failed. */
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
  /** By kind of failure: how many tasks failed, and how many runs were followed by another run. Missing in earlier versions' documents. */
  failures?: Record<string, number>;
  retries?: Record<string, number>;
  /** The last duplicate file; `t` in epoch ms. */
  last_duplicate: { task_id: string; t: number } | null;
  /** The share of settled tasks, without cancelled and skipped ones, that completed without a failed line; null when there is none. */
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
  /** Durations of the last run of each settled task, and of the waits in the inbox. Missing in earlier versions' documents. */
  run_ms?: HistogramDocument;
  queue_ms?: HistogramDocument;
  journal: { ino: number; offset: number; bad_lines: number };
}

/** More ways to fail than these count as "other", so that a program that makes up words cannot make the document large. */
const KINDS_MAX = 30;
const KIND = /^[a-z][a-z_]{0,39}$/;
/** No text of a journal line can hold this, because a quote in it would be escaped. */
const KIND_IN = /,"kind":"([^"\\]*)"/;
const ZERO = 0x30;
const QUEUE_MEMBER = ',"queue_ms":';

/** How many ends the success rate is about: what a person has cancelled, and what did not run, says nothing about success. */
export function endsOfRate({
  tasks,
  failures = {},
}: Pick<MetricsDocument, "tasks" | "failures">): number {
  return tasks.completed + tasks.failed - (failures["cancelled"] ?? 0);
}

export class EventCounts {
  readonly events: Record<string, number>;
  completed: number;
  failed: number;
  skipped: number;
  withFailedLines: number;
  readonly failures: Record<string, number>;
  readonly retries: Record<string, number>;
  readonly runs: Histogram;
  readonly waits: Histogram;
  /** The place in the journal up to which `old` counts. */
  readonly place: JournalPlace;
  readonly badBefore: number;
  private readonly bins: DurationBins;
  private count: number;
  private sum: number;
  private max: number;
  private lastDuplicate: MetricsDocument["last_duplicate"];

  /** Continues from the counts of a document. */
  constructor(old: Partial<MetricsDocument> | undefined) {
    this.place = { ino: numberOf(old?.journal?.ino), offset: numberOf(old?.journal?.offset) };
    this.events = countsOf(old?.events);
    this.completed = numberOf(old?.tasks?.completed);
    this.failed = numberOf(old?.tasks?.failed);
    this.skipped = numberOf(old?.tasks?.skipped);
    this.withFailedLines = numberOf(old?.tasks?.with_failed_lines);
    // Earlier versions did not count by kind: their counts get the kind `unknown`.
    this.failures = countsOf(old?.failures ?? unknown(this.failed));
    this.retries = countsOf(old?.retries ?? unknown(numberOf(this.events["retry_scheduled"])));
    this.runs = new Histogram(old?.run_ms);
    this.waits = new Histogram(old?.queue_ms);
    // Earlier versions kept bins by powers of two (`duration_histogram`), which are too coarse. They are not read: percentiles
    // start again in such a tree, and all other counts continue.
    this.bins = durationBinsOf(old?.duration_bins);
    this.count = numberOf(old?.duration_ms?.count);
    this.sum = numberOf(old?.duration_ms?.sum);
    this.max = numberOf(old?.duration_ms?.max);
    this.badBefore = numberOf(old?.journal?.bad_lines);
    this.lastDuplicate = old?.last_duplicate ?? null;
  }

  /** @param event and record as `readEventLine` reads them */
  add(line: string, event: EventLine["event"], record: EventLine["record"]): void {
    if (event === undefined) return;
    this.events[event] = (this.events[event] ?? 0) + 1;
    if (event === "selected") this.waits.add(queueMsIn(line));
    else if (event === "retry_scheduled") addKind(this.retries, KIND_IN.exec(line)?.[1]);
    if (record === undefined) return;
    if (event === "completed") this.addCompleted(record);
    const { task_id: id, t } = record;
    if (event === "duplicate" && typeof id === "string")
      this.lastDuplicate = { task_id: id, t: numberOf(t) };
  }

  /** @param badCount lines after the old document that are not records */
  document(nowWallMs: number, place: JournalPlace, badCount: number): MetricsDocument {
    const of = (name: string): number => this.events[name] ?? 0;
    const tasks = {
      completed: this.completed,
      failed: this.failed,
      skipped: this.skipped,
      with_failed_lines: this.withFailedLines,
      retried: of("retry_scheduled"),
      reclaimed: of("reclaimed"),
      quarantined: of("quarantined"),
      fenced: of("fenced"),
      duplicates: of("duplicate"),
    };
    const ends = endsOfRate({ tasks, failures: this.failures });
    return {
      updated_at: new Date(nowWallMs).toISOString(),
      events: this.events,
      tasks,
      failures: this.failures,
      retries: this.retries,
      last_duplicate: this.lastDuplicate,
      success_rate: ends <= 0 ? null : (this.completed - this.withFailedLines) / ends,
      duration_ms: {
        count: this.count,
        sum: this.sum,
        mean: this.count === 0 ? null : this.sum / this.count,
        max: this.max,
        p50: percentileOf(this.bins, 0.5, this.max),
        p95: percentileOf(this.bins, 0.95, this.max),
      },
      duration_bins: this.bins,
      run_ms: this.runs.toDocument(),
      queue_ms: this.waits.toDocument(),
      journal: { ...place, bad_lines: this.badBefore + badCount },
    };
  }

  private addCompleted(record: NonNullable<EventLine["record"]>): void {
    const { kind, status, batch, duration_ms: ms } = record;
    if (isSkippedKind(kind)) this.skipped++;
    else if (status === "failed") {
      this.failed++;
      addKind(this.failures, kind);
    } else {
      this.completed++;
      if (failuresIn(batch) > 0) this.withFailedLines++;
    }
    if (typeof ms !== "number" || !(ms >= 0)) return;
    this.count++;
    this.sum += ms;
    this.max = Math.max(this.max, ms);
    addDuration(this.bins, ms);
    this.runs.add(ms);
  }
}

/** The member `queue_ms`, which is the last one of its line. It is read from the end of the line, because a search takes longer. */
function queueMsIn(line: string): number | undefined {
  const last = line.length - 2;
  let at = last;
  let ms = 0;
  for (let unit = 1; unit <= 1e15; unit *= 10, at--) {
    const digit = line.charCodeAt(at) - ZERO;
    if (!(digit >= 0 && digit <= 9)) break;
    ms += digit * unit;
  }
  return at < last && line.endsWith(QUEUE_MEMBER, at + 1) ? ms : undefined;
}

function addKind(counts: Record<string, number>, kind: unknown): void {
  const named = typeof kind === "string" && KIND.test(kind) ? kind : "unknown";
  const isNew = !Object.hasOwn(counts, named);
  const key = isNew && Object.keys(counts).length >= KINDS_MAX ? "other" : named;
  counts[key] = (counts[key] ?? 0) + 1;
}

function unknown(count: number): Record<string, number> {
  return count === 0 ? {} : { unknown: count };
}

function countsOf(value: unknown): Record<string, number> {
  if (!isObject(value)) return {};
  const counts = Object.entries(value).filter(([, count]) => Number.isSafeInteger(count));
  return Object.fromEntries(counts) as Record<string, number>;
}

function failuresIn(batch: unknown): number {
  return isObject(batch) ? numberOf(batch["failures"]) : 0;
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
