/** Sums of what runs of coding agents used. Pure. */

import type { Price } from "../core/settings.ts";
import { dayOf } from "../journal/daily.ts";
import { type CostRecord, costKeyOf, hasUsed, priceOfRecord } from "./cost-records.ts";

export const COST_KEYS = ["task", "plan", "group", "agent", "account", "model", "day"] as const;
export type CostKey = (typeof COST_KEYS)[number];

export interface CostSum {
  key: string;
  runs: number;
  /** How many of these runs did not complete. */
  runs_not_completed: number;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  cost_usd_micro: number;
  /** Runs whose program reported no usage. */
  runs_without_usage: number;
  /** Runs with a usage, whose price neither the program nor the settings know. */
  runs_without_price: number;
}

/** Adds up records, each run of a session once. A line may be there twice after a crash, or say that a run has failed after all. */
/** The price in USD, with four digits; "-" when nothing is known of it. */
export function usdText({
  cost_usd_micro: micro,
  runs_without_price,
  runs_without_usage,
}: CostSum): string {
  const isUnknown = micro === 0 && runs_without_price + runs_without_usage > 0;
  return isUnknown ? "-" : (micro / 1e6).toFixed(4);
}

export class CostSums {
  /** The sum of each run that counts as completed so far; undefined for the others. */
  private readonly seen = new Map<string, CostSum | undefined>();
  private readonly sums = new Map<string, CostSum>();
  readonly total: CostSum = newSum("total");

  constructor(
    private readonly key: CostKey,
    private readonly prices: Readonly<Record<string, Price>>,
  ) {}

  /** Whether this run of a session is counted. */
  has(record: CostRecord): boolean {
    return this.seen.has(costKeyOf(record));
  }

  add(record: CostRecord): void {
    const once = costKeyOf(record);
    const isCompleted = record.outcome === "completed";
    if (this.seen.has(once)) {
      const before = isCompleted ? undefined : this.seen.get(once);
      if (before === undefined) return;
      // Its checks have failed after it was booked.
      this.seen.set(once, undefined);
      before.runs_not_completed++;
      this.total.runs_not_completed++;
      return;
    }
    const key = keyOf(record, this.key);
    const sum = this.sums.get(key) ?? newSum(key);
    this.sums.set(key, sum);
    this.seen.set(once, isCompleted ? sum : undefined);
    const cost = priceOfRecord(record, this.prices);
    addTo(sum, record, cost);
    addTo(this.total, record, cost);
  }

  /** The most expensive first; days in their order. */
  rows(): CostSum[] {
    const rows = [...this.sums.values()];
    return this.key === "day"
      ? rows.sort((a, b) => (a.key < b.key ? -1 : 1))
      : rows.sort((a, b) => b.cost_usd_micro - a.cost_usd_micro || (a.key < b.key ? -1 : 1));
  }
}

function newSum(key: string): CostSum {
  return {
    key,
    runs: 0,
    runs_not_completed: 0,
    input_tokens: 0,
    cached_input_tokens: 0,
    output_tokens: 0,
    cost_usd_micro: 0,
    runs_without_usage: 0,
    runs_without_price: 0,
  };
}

function addTo(sum: CostSum, record: CostRecord, cost: number | undefined): void {
  sum.runs++;
  if (record.outcome !== "completed") sum.runs_not_completed++;
  sum.input_tokens += record.input_tokens;
  sum.cached_input_tokens += record.cached_input_tokens;
  sum.output_tokens += record.output_tokens;
  if (!hasUsed(record)) sum.runs_without_usage++;
  else if (cost === undefined) sum.runs_without_price++;
  if (cost !== undefined) sum.cost_usd_micro += cost;
}

function keyOf(record: CostRecord, key: CostKey): string {
  switch (key) {
    case "task":
      return record.task_id;
    case "plan":
      return record.plan ?? "none";
    case "group":
      return record.group ?? "none";
    case "agent":
      return record.agent;
    case "account":
      return record.account;
    case "model":
      return record.model ?? "unknown";
    case "day":
      return dayOf(record.at * 1000);
  }
}
