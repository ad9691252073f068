/** Counts a journal of events anew, each line parsed and by itself, to compare with what was counted on the way. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import type { Series } from "./exposition.ts";

const NAME = "supervisor_lifecycle";

/** @param state the state tree. @returns the counters that its journals lead to, as `readExposition` names them */
export function recount(state: string): Series {
  const dir = join(state, "analytics");
  const files = fs.readdirSync(dir).filter((name) => name.startsWith(NAME));
  const lines = files.flatMap((name) => fs.readFileSync(join(dir, name), "utf8").split("\n"));
  const series: Series = new Map();
  const add = (key: string, by = 1): void => {
    series.set(key, (series.get(key) ?? 0) + by);
  };
  for (const line of lines.filter((one) => one !== "")) {
    let event: Record<string, unknown>;
    try {
      event = JSON.parse(line) as Record<string, unknown>;
    } catch {
      add("mailchute_journal_bad_lines_total");
      continue;
    }
    add(`mailchute_events_total{event="${String(event["event"])}"}`);
    const kind = String(event["kind"]);
    if (event["event"] === "retry_scheduled") add(`mailchute_task_retries_total{kind="${kind}"}`);
    if (typeof event["queue_ms"] === "number") time("task_wait_seconds", event["queue_ms"], add);
    if (event["event"] !== "completed") continue;
    const isSkipped = kind === "dependency_failed";
    const result = isSkipped ? "skipped" : String(event["status"]);
    add(`mailchute_tasks_settled_total{result="${result}"}`);
    if (result === "failed") add(`mailchute_task_failures_total{kind="${kind}"}`);
    if (typeof event["duration_ms"] === "number")
      time("task_run_seconds", event["duration_ms"], add);
  }
  return series;
}

const BOUNDS = [
  0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400,
];

function time(name: string, ms: number, add: (key: string, by?: number) => void): void {
  for (const bound of BOUNDS)
    if (ms / 1000 <= bound) add(`mailchute_${name}_bucket{le="${bound}"}`);
  add(`mailchute_${name}_bucket{le="+Inf"}`);
  add(`mailchute_${name}_count`);
  add(`mailchute_${name}_sum`, ms / 1000);
}

/** The series that a recount can have, without those that are 0; sums are rounded, because they are added in another order. */
export function counted(series: Series): Record<string, number> {
  const is = /^mailchute_(?:events_total|task_|tasks_settled_total|journal_bad_lines_total)/;
  const found = [...series].filter(([key, value]) => is.test(key) && value !== 0);
  const rounded = found.map(([key, value]) => [key, Math.round(value * 1000) / 1000] as const);
  return Object.fromEntries(rounded.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Puts what the journal holds so far under the name of a rotated one. */
export function rotateNow(events: string, stamp: string): void {
  fs.renameSync(events, join(dirname(events), `${NAME}.${stamp}.jsonl`));
}
