/**
 * Sums up what was spent, from the files of `costsOf`. It follows them as they grow, and counts each run of a session once. A document
 * keeps the sums of earlier days, so that a process reads only the last days. Without the document, it reads all files.
 */
import { basename } from "node:path";
import { compact } from "../../core/compact.ts";
import type { Settings } from "../../core/settings.ts";
import { having, isNumber, type Of, oneOf, recordOf, shape } from "../../core/shape.ts";
import { costsOf, stateTree } from "../../core/state-tree.ts";
import { Documents } from "../../host/document-store.ts";
import { statOf } from "../../host/regular-file.ts";
import { filesOfDays } from "../../journal/daily.ts";
import { JournalTail } from "../../journal/tail.ts";
import { type CostRecord, costKeyOf, priceOfRecord, readCostRecord } from "../cost-records.ts";
import { addSpent, keysOf, NOTHING_SPENT, type RunOwner, SPENT, type Spent } from "./limits.ts";

type Prices = Settings["prices"];

/** The sums of earlier days. */
const costSums = shape({
  v: oneOf(1),
  /** How much of each file is in the sums (bytes), by its name. */
  files: recordOf(isNumber),
  /** With the time of the last run in each (unix seconds). */
  sums: recordOf(having({ at: isNumber, ...SPENT })),
});
type CostSums = Of<typeof costSums>;
const COST_SUMS = "costs-sums";

/** It searches for a run in this many files: a run that was just booked is in one of the last two. */
const SEEN_FILES = 2;
const DAY_S = 24 * 60 * 60;

export class SpentSums {
  private readonly costs: string;
  private readonly kept: Documents<CostSums>;
  private hasBegun = false;
  private sums = new Map<string, CostSums["sums"][string]>();
  /** How much of each file was read (bytes). */
  private readonly offsets = new Map<string, number>();
  /** Runs that are booked, by file. */
  private readonly seen = new Map<string, Set<string>>();

  constructor(stateDir: string) {
    const tree = stateTree(stateDir);
    this.costs = costsOf(tree);
    this.kept = new Documents(stateDir, "analytics", costSums);
  }

  /** Reads the runs that were booked since the last call. @throws a system error */
  refresh(settings: Pick<Settings, "prices" | "retention">): void {
    const files = filesOfDays(this.costs);
    const isFirst = !this.hasBegun;
    if (isFirst) this.begin(files, settings);
    for (const file of files) this.readOn(file, settings.prices);
    // After the first call it searches all files: an earlier process may have been killed right after it had booked a run.
    if (isFirst) return;
    const last = files.slice(-SEEN_FILES);
    for (const file of this.seen.keys()) if (!last.includes(file)) this.seen.delete(file);
  }

  of(key: string): Spent {
    return this.sums.get(key) ?? NOTHING_SPENT;
  }

  /** Whether a run that has just ended is booked. */
  isBooked(record: CostRecord): boolean {
    const key = costKeyOf(record);
    return [...this.seen.values()].some((keys) => keys.has(key));
  }

  /** Reads the days before the last one, and keeps their sums. */
  private begin(
    files: readonly string[],
    { prices, retention }: Pick<Settings, "prices" | "retention">,
  ): void {
    const kept = this.kept.load(COST_SUMS);
    if (kept !== undefined && isUsable(kept, files)) {
      this.sums = new Map(Object.entries(kept.sums));
      for (const file of files) this.offsets.set(file, kept.files[basename(file)] ?? 0);
    }
    this.hasBegun = true;
    let hasRead = false;
    for (const file of files.slice(0, -1)) hasRead = this.readOn(file, prices) || hasRead;
    if (hasRead) this.keep(files.slice(0, -1), retention.journal_days);
  }

  /** Two processes may write it at once. Each writes a consistent document. */
  private keep(files: readonly string[], days: number): void {
    const sinceS = Date.now() / 1000 - days * DAY_S;
    const document: CostSums = {
      v: 1,
      files: Object.fromEntries(files.map((file) => [basename(file), this.offsets.get(file) ?? 0])),
      sums: Object.fromEntries([...this.sums].filter(([, { at }]) => at >= sinceS)),
    };
    try {
      this.kept.replace(COST_SUMS, document);
    } catch {
      // The disk is full. The next process reads these files again.
    }
  }

  /** @returns whether there was anything new */
  private readOn(file: string, prices: Prices): boolean {
    const from = this.offsets.get(file) ?? 0;
    const stats = statOf(file);
    if (stats === undefined || stats.size <= from) return false;
    const tail = new JournalTail(file, from, stats.ino);
    const seen = this.seen.get(file) ?? new Set();
    this.seen.set(file, seen);
    try {
      for (;;) {
        const records = tail.next();
        this.offsets.set(file, tail.offset);
        if (records.length === 0) return tail.offset > from;
        for (const one of records) {
          const record = readCostRecord(one);
          if (record !== undefined) this.add(record, seen, prices);
        }
      }
    } finally {
      tail.close();
    }
  }

  private add(record: CostRecord, seen: Set<string>, prices: Prices): void {
    if (this.isBooked(record)) return;
    seen.add(costKeyOf(record));
    const spent = spentBy(record, prices);
    for (const key of keysOf(ownerOf(record), record.at * 1000))
      this.sums.set(key, { ...addSpent(this.of(key), spent), at: record.at });
  }
}

/** False when its files were cut since. */
function isUsable({ files }: CostSums, paths: readonly string[]): boolean {
  return paths.every((path) => {
    const size = statOf(path)?.size ?? 0;
    return (files[basename(path)] ?? 0) <= size;
  });
}

export function spentBy(record: CostRecord, prices: Prices): Spent {
  return {
    usd: priceOfRecord(record, prices) ?? 0,
    tokens: record.input_tokens + record.output_tokens,
    turns: record.turns ?? 0,
    time: record.duration_ms ?? 0,
    runs: 1,
  };
}

export function ownerOf({ task_id: taskId, agent, run, plan }: CostRecord): RunOwner {
  // `<id>@<submission>.<attempt>.<counter>`
  const [submission = ""] = run.slice(run.lastIndexOf("@") + 1).split(".");
  return { taskId, agent, submission, ...compact({ plan }) };
}
