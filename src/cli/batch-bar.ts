/** What people see of a batch: a bar while it runs, a sentence when it has settled. Reads only. */
import fs from "node:fs";
import { join } from "node:path";
import type { BatchCounts, BatchProgress } from "../core/batch.ts";
import { resultName, resultsName } from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { countText } from "./render.ts";
import { readJsonObject } from "./scan.ts";

const BAR_CELLS = 20;

/** What the newest run of a batch says of itself; undefined when it has not begun. @param run path of its directory */
export function readBatchProgress(run: string): BatchProgress | undefined {
  const found = readJsonObject(join(run, "batch.json")) as Partial<BatchProgress> | undefined;
  return typeof found?.bytes === "number" && typeof found.lines === "number"
    ? (found as BatchProgress)
    : undefined;
}

/** `[########------------]  40 %  4,000 lines, 2 failed` */
export function batchBar(progress: BatchProgress): string {
  const part = progress.bytes > 0 ? Math.min(1, progress.bytes_read / progress.bytes) : 1;
  const filled = Math.round(part * BAR_CELLS);
  const bar = `[${"#".repeat(filled)}${"-".repeat(BAR_CELLS - filled)}]`;
  return `${bar} ${String(Math.floor(part * 100)).padStart(3)} %  ${countsText(progress)}`;
}

export function countsText(counts: BatchCounts): string {
  const lines = `${countText(counts.lines)} ${counts.lines === 1 ? "line" : "lines"}`;
  return counts.failures === 0
    ? `${lines} done`
    : `${lines} done, ${countText(counts.failures)} failed`;
}

/** The counts in the record of a batch; undefined for the record of a task. */
export function countsOf(record: Record<string, unknown> | undefined): BatchCounts | undefined {
  const batch = record?.["batch"] as Partial<BatchCounts> | undefined;
  return typeof batch?.lines === "number" && typeof batch.failures === "number"
    ? (batch as BatchCounts)
    : undefined;
}

/** Lines that failed in a completed batch; 0 for a task. */
export function failedLines(tree: StateTree, id: string): number {
  const outbox = join(tree.mailbox, "outbox");
  if (!fs.existsSync(join(outbox, resultsName(id)))) return 0;
  return countsOf(readJsonObject(join(outbox, resultName(id))))?.failures ?? 0;
}
