/** Reads the past of a task: its events, its runs, and their costs. Reads a bounded part of the journals, and not too often. */

import { RunningCosts } from "../agents/budget/running-costs.ts";
import { type CostRecord, readCostRecord } from "../agents/cost-records.ts";
import { type CostSum, CostSums } from "../agents/cost-sums.ts";
import { parseObject } from "../core/json-object.ts";
import type { Settings } from "../core/settings.ts";
import { costsOf, type StateTree } from "../core/state-tree.ts";
import { filesOfDays } from "../journal/daily.ts";
import { PIECE_BYTES, searchBack } from "../journal/read-back.ts";
import { timelineOf } from "../journal/timeline.ts";
import { runsOf, type TaskRun } from "./task-runs.ts";

const EVENTS_MAX = 200;
/** How much of the journals of costs is searched (bytes): about 50 ms. */
const COST_PIECES_MAX = (64 * 1024 * 1024) / PIECE_BYTES;
/** Reading again may take this share of a core. */
const SHARE = 0.05;
const AGAIN_MS = 1000;
const TASKS_MAX = 20;

export interface Past {
  /** The latest first; at most 200. */
  events: Record<string, unknown>[];
  /** False when the task has more events than these. */
  is_all: boolean;
  runs: TaskRun[];
  /** The costs of its runs; null when no costs are booked. */
  cost: CostSum | null;
  /** The same for each run, by its lease. */
  costs: ReadonlyMap<string, RunCost>;
}

export interface RunCost {
  account: string;
  cost: CostSum;
}

export class TaskPast {
  private readonly known = new Map<string, { past: Past; untilMs: number }>();

  constructor(
    private readonly tree: StateTree,
    private readonly prices: Settings["prices"],
  ) {}

  /** @throws a system error when a journal is there and cannot be read */
  look(id: string): Past {
    const nowMs = performance.now();
    const before = this.known.get(id);
    if (before !== undefined && nowMs < before.untilMs) return before.past;
    const { events, next } = timelineOf(this.tree.events, id, EVENTS_MAX);
    const past = {
      events,
      is_all: next === undefined,
      runs: runsOf(events),
      ...this.costsOf(id),
    };
    const doneMs = performance.now();
    const untilMs = doneMs + Math.max(AGAIN_MS, (doneMs - nowMs) / SHARE);
    this.known.delete(id);
    this.known.set(id, { past, untilMs });
    const [oldest] = this.known.keys();
    if (oldest !== undefined && this.known.size > TASKS_MAX) this.known.delete(oldest);
    return past;
  }

  private costsOf(id: string): Pick<Past, "cost" | "costs"> {
    const newSums = (): CostSums => new CostSums("task", this.prices);
    const all = newSums();
    const runs = new Map<string, { account: string; sums: CostSums }>();
    const add = (record: CostRecord | undefined): void => {
      if (record?.task_id !== id) return;
      const { lease = "", account } = record;
      const run = runs.get(lease) ?? { account, sums: newSums() };
      runs.set(lease, run);
      for (const sums of [all, run.sums]) sums.add(record);
    };
    // List the running costs first: a run that ends now is counted by its line, which is written before its file is removed.
    const running = new RunningCosts(this.tree.dir).all();
    let pieces = 0;
    for (const file of filesOfDays(costsOf(this.tree)).reverse()) {
      if (pieces >= COST_PIECES_MAX) break;
      for (const { line } of searchBack(file, [JSON.stringify(id)])) {
        if (line === undefined && ++pieces >= COST_PIECES_MAX) break;
        if (line !== undefined) add(readCostRecord(parseObject(line) ?? {}));
      }
    }
    for (const record of running) add(readCostRecord({ ...record }));
    const costs = new Map<string, RunCost>();
    for (const [lease, { account, sums }] of runs) costs.set(lease, { account, cost: sums.total });
    return { cost: all.total.runs === 0 ? null : all.total, costs };
  }
}
