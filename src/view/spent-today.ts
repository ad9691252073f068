/** Sums what coding agents have used today (UTC), and what each current run has used so far. Follows the file of the day as it grows. */
import { RunningCosts } from "../agents/budget/running-costs.ts";
import { priceOfRecord, readCostRecord } from "../agents/cost-records.ts";
import { CostSums } from "../agents/cost-sums.ts";
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
  /** The same sum for each group that has spent, by its name. */
  groups: ReadonlyMap<string, number>;
}

export class SpentToday {
  private readonly costs: RunningCosts;
  private file = "";
  private tail: JournalTail | undefined;
  private sums: CostSums;
  private lookedAtMs = Number.NEGATIVE_INFINITY;
  private last: CostView = {
    today_usd_micro: null,
    is_complete: true,
    running: new Map(),
    groups: new Map(),
  };

  /** @param lookBytes how much of the day's file one look reads */
  constructor(
    private readonly tree: StateTree,
    private readonly prices: Settings["prices"],
    private readonly lookBytes = LOOK_BYTES,
  ) {
    this.costs = new RunningCosts(tree.dir);
    this.sums = new CostSums("group", prices);
  }

  /** The tokens of the runs that are booked today. */
  get tokens(): Record<"input" | "cached_input" | "output", number> {
    const {
      input_tokens: input,
      cached_input_tokens: cached,
      output_tokens: output,
    } = this.sums.total;
    return { input, cached_input: cached, output };
  }

  look(nowMs: number): CostView {
    if (performance.now() - this.lookedAtMs < AGAIN_MS) return this.last;
    this.lookedAtMs = performance.now();
    const on = this.costs.all();
    const isComplete = this.readOn(nowMs);
    const running = new Map<string, number>();
    const groups = new Map(this.sums.rows().map((row) => [row.key, row.cost_usd_micro]));
    let { cost_usd_micro: sum } = this.sums.total;
    for (const record of on) {
      const cost = priceOfRecord(record, this.prices);
      if (cost === undefined || this.sums.has(record)) continue;
      sum += cost;
      const { group = "none" } = record;
      groups.set(group, (groups.get(group) ?? 0) + cost);
      if (record.lease !== undefined) running.set(record.lease, cost);
    }
    const isUsed = this.sums.total.runs + on.length > 0;
    const today = isUsed ? sum : null;
    this.last = { today_usd_micro: today, is_complete: isComplete, running, groups };
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
      this.sums = new CostSums("group", this.prices);
    }
    const from = this.tail?.offset ?? 0;
    for (const one of this.tail?.next(this.lookBytes) ?? []) {
      const record = readCostRecord(one);
      if (record !== undefined) this.sums.add(record);
    }
    return (this.tail?.offset ?? 0) - from < this.lookBytes / 2;
  }
}
