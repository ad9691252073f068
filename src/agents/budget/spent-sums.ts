/** What was spent so far, by `analytics/costs.jsonl`: followed as it grows, each run of a session counted once. */
import { join } from "node:path";
import type { Price } from "../../core/settings.ts";
import { JournalTail } from "../../journal/read.ts";
import { type CostRecord, costKeyOf, priceOfRecord, readCostRecord } from "../cost-records.ts";
import { addSpent, keysOf, NOTHING_SPENT, type Spent } from "./limits.ts";

export class SpentSums {
  private readonly tail: JournalTail;
  private readonly sums = new Map<string, Spent>();
  private readonly seen = new Set<string>();

  constructor(stateDir: string) {
    this.tail = new JournalTail(join(stateDir, "analytics", "costs.jsonl"));
  }

  /** Reads what was booked since. @throws a system error */
  refresh(prices: Readonly<Record<string, Price>>): void {
    for (;;) {
      const records = this.tail.next();
      if (records.length === 0) return;
      for (const one of records) {
        const record = readCostRecord(one);
        if (record !== undefined) this.add(record, prices);
      }
    }
  }

  of(key: string): Spent {
    return this.sums.get(key) ?? NOTHING_SPENT;
  }

  isBooked(record: CostRecord): boolean {
    return this.seen.has(costKeyOf(record));
  }

  private add(record: CostRecord, prices: Readonly<Record<string, Price>>): void {
    if (this.isBooked(record)) return;
    this.seen.add(costKeyOf(record));
    for (const key of keysOf(ownerOf(record), record.at * 1000))
      this.sums.set(key, addSpent(this.of(key), spentBy(record, prices)));
  }
}

export function spentBy(record: CostRecord, prices: Readonly<Record<string, Price>>): Spent {
  return {
    usd: priceOfRecord(record, prices) ?? 0,
    tokens: record.input_tokens + record.output_tokens,
    turns: record.turns ?? 0,
    time: record.duration_ms ?? 0,
    runs: 1,
  };
}

export function ownerOf({ task_id: taskId, agent, run }: CostRecord): {
  taskId: string;
  agent: string;
  submission: string;
} {
  // `<id>@<submission>.<attempt>.<counter>`
  const [submission = ""] = run.slice(run.lastIndexOf("@") + 1).split(".");
  return { taskId, agent, submission };
}
