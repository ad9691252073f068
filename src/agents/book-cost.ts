/** Appends lines to `analytics/costs.<day>.jsonl`: what runs of coding agents used. */
import { costsOf, stateTree } from "../core/state-tree.ts";
import { fileOfDay } from "../journal/daily.ts";
import { Journal } from "../journal/journal.ts";
import type { CostRecord } from "./cost-records.ts";

/** @returns false when they could not be written */
function append(stateDir: string, records: readonly CostRecord[]): boolean {
  let isBooked = true;
  for (const record of records) {
    const journal = new Journal(fileOfDay(costsOf(stateTree(stateDir)), record.at * 1000), true);
    journal.append(JSON.stringify(record));
    isBooked &&= journal.flush();
    journal.close();
  }
  return isBooked;
}

export function bookCost(stateDir: string, record: CostRecord): boolean {
  return append(stateDir, [record]);
}

/**
 * Notes that runs which are booked as completed have failed after all, by their checks: a second line of each, which adds no tokens. It
 * goes into the same file, so that a reader of one day sees both.
 */
export function bookFailed(stateDir: string, booked: readonly CostRecord[]): void {
  const nothing = { input_tokens: 0, cached_input_tokens: 0, output_tokens: 0, cost_usd_micro: 0 };
  append(
    stateDir,
    booked.map((record) => ({
      ...record,
      ...nothing,
      turns: 0,
      duration_ms: 0,
      outcome: "failed",
    })),
  );
}
