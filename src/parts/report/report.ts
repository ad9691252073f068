/** The report of a period as data, as `--json` prints it. Pure. */
import type { CostSum } from "../../agents/cost-sums.ts";
import { type DurationBins, percentileOf } from "../../core/percentiles.ts";
import { type Cause, type Failure, groupByCause } from "../../view/causes.ts";
import type { Work } from "../../view/landing.ts";
import { questionsOf } from "../../view/make-overview.ts";
import type { Obstacle, Snapshot } from "../../view/snapshot.ts";
import type { TimelineMark } from "../../view/timeline/timeline.ts";
import { type NextStep, nextSteps } from "./next-steps.ts";
import type { Ended, EndedFailure, GateWait, Period, PeriodCounts } from "./period.ts";

interface Percentiles {
  p50: number | null;
  p95: number | null;
}

export interface Report {
  /** ISO 8601; `to` is excluded. */
  from: string;
  to: string;
  counts: PeriodCounts & {
    /** Tasks whose last run in the period failed for good. */
    failed: number;
    landed: number;
    /** Work that waits for a person because it could not land. */
    not_landed: number;
    crashes: number;
  };
  /** Time of tasks in the inbox and of their last runs (ms): p50 and p95, at most 2 % off. Null without tasks. */
  waited_ms: Percentiles;
  ran_ms: Percentiles;
  /** Titles of tasks that the report names, by id. Tasks without a record, and those whose title is their id, are left out. */
  titles: Record<string, string>;
  /** How many tasks wait and run now. */
  now: { waiting: number; running: number; held: number };
  /** Those that are open now; `asked_at_ms` is null when it is not known. */
  questions: { id: string; question: string; asked_at_ms: number | null }[];
  failures: Cause[];
  refused: Cause[];
  /** Work on branches: what landed in the period, and what has not landed. */
  work: Work[];
  completed: { id: string; agent: string; at_ms: number; attempts: number }[];
  /** The tools that agents were not allowed to use in the last run of a task. */
  denials: { id: string; tools: string[] }[];
  gates: GateWait[];
  crashes: TimelineMark[];
  costs: { rows: CostSum[]; total: CostSum };
  slowest: { id: string; agent: string; duration_ms: number }[];
  alerts: Cause[];
  obstacles: Obstacle[];
  next: NextStep[];
  /** Lines of journals that could not be read. */
  bad_lines: number;
}

interface Sources {
  fromMs: number;
  toMs: number;
  period: Period;
  alerts: readonly Failure[];
  costs: Report["costs"];
  work: readonly Work[];
  now: Snapshot;
  badLines: number;
  /** The error in the record of the failed task, which begins with the program's own words; undefined when it has no such record any more. */
  wordsOf: (failure: EndedFailure) => string | undefined;
  /** The title of a settled task; "" when it has none. */
  titleOf: (id: string) => string;
  isFailedNode: (id: string) => boolean;
}

/** At most this many titles are read, because each is in the record of its task. */
const TITLES_MAX = 500;
/** Of so many of the last failures the records are read. */
const RECORDS_MAX = 1000;

export function makeReport(sources: Sources): Report {
  const { period, now } = sources;
  const { counts } = now;
  const landedIds = new Set(period.landed.map(({ id }) => id));
  const crashes = period.crashes();
  const failures = groupByCause(withWords(period, sources.wordsOf));
  const ofWork = new Map(sources.work.map(({ task_id: id, title }) => [id, title]));
  const named = [
    ...ofWork.keys(),
    ...failures.flatMap(({ tasks }) => tasks),
    ...period.completed.map(({ id }) => id),
  ];
  const report: Omit<Report, "next"> = {
    from: new Date(sources.fromMs).toISOString(),
    to: new Date(sources.toMs).toISOString(),
    counts: {
      ...period.counts,
      failed: period.failures.size,
      landed: period.landed.length,
      not_landed: sources.work.filter(({ state }) => state === "failed").length,
      crashes: crashes.length,
    },
    waited_ms: percentilesOf(period.waited.bins),
    ran_ms: percentilesOf(period.ran.bins),
    titles: {
      // The record of a task may be gone.
      ...titlesOf(ofWork.keys(), (id) => ofWork.get(id) ?? ""),
      ...titlesOf(named.slice(-TITLES_MAX), sources.titleOf),
    },
    now: {
      waiting: counts.waiting.count + counts.ready + counts.delayed,
      running: counts.running + counts.elsewhere,
      held: counts.held,
    },
    questions: questionsOf(now).map(({ id, question, asked_at_ms: atMs }) => ({
      id,
      question,
      asked_at_ms: atMs > 0 ? atMs : null,
    })),
    failures,
    refused: groupByCause(period.refused),
    work: sources.work.filter((one) => one.state !== "landed" || landedIds.has(one.landing_id)),
    completed: period.completed.map(({ id, agent, atMs, attempts }) => ({
      id,
      agent,
      at_ms: atMs,
      attempts,
    })),
    denials: [...period.denials].map(([id, tools]) => ({ id, tools })),
    gates: period.gateWaits(),
    crashes,
    costs: sources.costs,
    slowest: period.slowest.map(slowOf),
    alerts: groupByCause(sources.alerts),
    obstacles: now.obstacles,
    bad_lines: sources.badLines,
  };
  return { ...report, next: nextSteps({ ...report, isFailedNode: sources.isFailedNode }) };
}

/** The journal holds no words of programs. Without them all failures of one exit code would have one cause. */
function withWords({ failures }: Period, wordsOf: Sources["wordsOf"]): Failure[] {
  const withoutCount = Math.max(0, failures.size - RECORDS_MAX);
  return [...failures.values()].map((one, i) => {
    const error = i < withoutCount ? undefined : wordsOf(one);
    return error === undefined ? one : { ...one, error };
  });
}

function percentilesOf(bins: DurationBins): Percentiles {
  return { p50: percentileOf(bins, 0.5), p95: percentileOf(bins, 0.95) };
}

function titlesOf(ids: Iterable<string>, titleOf: (id: string) => string): Report["titles"] {
  const found = [...ids].map((id) => [id, titleOf(id)] as const);
  return Object.fromEntries(found.filter(([id, title]) => title !== "" && title !== id));
}

function slowOf({ id, agent, durationMs }: Ended): Report["slowest"][number] {
  return { id, agent, duration_ms: durationMs ?? 0 };
}
