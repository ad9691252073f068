/** Sums what coding agents have used today (UTC), and what each current run has used so far. Follows the file of the day as it grows. */
import { RunningCosts } from "../agents/budget/running-costs.ts";
import {
  type CostRecord,
  costKeyOf,
  priceOfRecord,
  readCostRecord,
} from "../agents/cost-records.ts";
import type { Settings } from "../core/settings.ts";
import { costsOf, type StateTree } from "../core/state-tree.ts";
import { fileOfDay } from "../journal/daily.ts";
import { JournalTail } from "../journal/tail.ts";

/** How much of the day's file one look reads (bytes). */
const LOOK_BYTES = 256 * 1024;
/** The least time between two looks (ms). */
const AGAIN_MS = 1000;

export interface CostView {
  /** Millionths of a US dollar, with the current runs; null when no run of a coding agent is booked today. */
  today_usd_micro: number | null;
  /** False while the file of the day is still being read. */
  is_complete: boolean;
  /** The cost of each current run so far, by its lease; a run without a price is left out. */
  running: ReadonlyMap<string, number>;
}

export class SpentToday {
  /** The tokens of the runs that are booked today. */
  tokens = { input: 0, cached_input: 0, output: 0 };
  private readonly costs: RunningCosts;
  private file = "";
  private tail: JournalTail | undefined;
  private seen = new Set<string>();
  private sum = 0;
  private lookedAtMs = Number.NEGATIVE_INFINITY;
  private last: CostView = { today_usd_micro: null, is_complete: true, running: new Map() };

  /** @param lookBytes how much of the day's file one look reads */
  constructor(
    private readonly tree: StateTree,
    private readonly prices: Settings["prices"],
    private readonly lookBytes = LOOK_BYTES,
  ) {
    this.costs = new RunningCosts(tree.dir);
  }

  look(nowMs: number): CostView {
    if (performance.now() - this.lookedAtMs < AGAIN_MS) return this.last;
    this.lookedAtMs = performance.now();
    const on = this.costs.all();
    const isComplete = this.readOn(nowMs);
    const running = new Map<string, number>();
    let sum = this.sum;
    for (const record of on) {
      const cost = priceOfRecord(record, this.prices);
      if (cost === undefined || this.seen.has(costKeyOf(record))) continue;
      sum += cost;
      if (record.lease !== undefined) running.set(record.lease, cost);
    }
    const isUsed = this.seen.size + on.length > 0;
    this.last = { today_usd_micro: isUsed ? sum : null, is_complete: isComplete, running };
    return this.last;
  }

  close(): void {
    this.tail?.close();
  }

  /** @returns whether all of the day's file was read */
  private readOn(nowMs: number): boolean {
    const file = fileOfDay(costsOf(this.tree), nowMs);
    if (file !== this.file) {
      this.close();
      this.file = file;
      this.tail = new JournalTail(file);
      this.seen = new Set();
      this.sum = 0;
      this.tokens = { input: 0, cached_input: 0, output: 0 };
    }
    const from = this.tail?.offset ?? 0;
    for (const one of this.tail?.next(this.lookBytes) ?? []) this.add(readCostRecord(one));
    return (this.tail?.offset ?? 0) - from < this.lookBytes / 2;
  }

  /** A line may be there twice after a crash. */
  private add(record: CostRecord | undefined): void {
    if (record === undefined || this.seen.has(costKeyOf(record))) return;
    this.seen.add(costKeyOf(record));
    this.sum += priceOfRecord(record, this.prices) ?? 0;
    this.tokens.input += record.input_tokens;
    this.tokens.cached_input += record.cached_input_tokens;
    this.tokens.output += record.output_tokens;
  }
}
