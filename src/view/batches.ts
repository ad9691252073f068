/** Shows a batch to people: a bar while it runs, a sentence when it has settled. Reads only. */

import fs from "node:fs";
import { join } from "node:path";
import type { BatchCounts, BatchProgress } from "../core/batch.ts";
import { resultName, resultsName } from "../core/names.ts";
import { isNumber, type Shape, shape } from "../core/shape.ts";
import type { StateTree } from "../core/state-tree.ts";
import { readDocument } from "../host/documents.ts";
import { statOf } from "../host/regular-file.ts";
import { countText } from "../text/render.ts";
import { COUNT_MAX, eachName, readJsonObject } from "./scan.ts";
import { progressText } from "./task-progress.ts";

const RESULTS_ENDING = resultsName("");

const progress = shape({
  lines: isNumber,
  failures: isNumber,
  bytes: isNumber,
  bytes_read: isNumber,
}) as Shape<BatchProgress>;

/** The progress in the newest run's directory of a batch; undefined when it has not begun. @param run path of the directory */
export function readBatchProgress(run: string): BatchProgress | undefined {
  return readDocument(join(run, "batch.json"), progress);
}

/** `[########------------]  40 %  4,000 lines, 2 failed`. @param hasBar as in `progressText` */
export function batchBar(progress: BatchProgress, hasBar = true): string {
  const part = progress.bytes > 0 ? Math.min(1, progress.bytes_read / progress.bytes) : 1;
  return progressText({ pct: part * 100, text: countsText(progress) }, hasBar);
}

export function countsText(counts: BatchCounts): string {
  const lines = `${countText(counts.lines)} ${counts.lines === 1 ? "line" : "lines"}`;
  return counts.failures === 0
    ? `${lines} done`
    : `${lines} done, ${countText(counts.failures)} of them failed`;
}

/** The counts in the record of a batch; undefined for the record of a task. */
export function countsOf(record: Record<string, unknown> | undefined): BatchCounts | undefined {
  const batch = record?.["batch"] as Partial<BatchCounts> | undefined;
  return typeof batch?.lines === "number" && typeof batch.failures === "number"
    ? (batch as BatchCounts)
    : undefined;
}

/** The counts of a completed batch with failed lines; undefined for a task, and when no line failed. */
export function failedLines(tree: StateTree, id: string): BatchCounts | undefined {
  const counts = countsOf(recordOfBatch(tree, id));
  return (counts?.failures ?? 0) > 0 ? counts : undefined;
}

function recordOfBatch(tree: StateTree, id: string): Record<string, unknown> | undefined {
  const outbox = join(tree.mailbox, "outbox");
  if (!fs.existsSync(join(outbox, resultsName(id)))) return undefined;
  return readJsonObject(join(outbox, resultName(id)));
}

/** A completed batch with some failed lines. */
export interface BatchWithFailures {
  id: string;
  counts: BatchCounts;
  /** The runs that it took; null when its record does not say so. */
  attempts: number | null;
  /** Epoch ms. */
  settledMs: number;
}

/** How many results of batches are looked at. */
const BATCHES_MAX = 1000;

/** The batch whose results have this name; undefined for other names. */
export function batchOfResults(name: string): string | undefined {
  return name.endsWith(RESULTS_ENDING) ? name.slice(0, -RESULTS_ENDING.length) : undefined;
}

/**
 * Completed batches with some failed lines, the latest first. When there are very many batches, only some are found.
 * @param ids the batches to look at
 */
export function batchesWithFailures(
  tree: StateTree,
  ids: readonly string[] = settledBatches(tree),
): BatchWithFailures[] {
  const found = ids.flatMap((id): BatchWithFailures[] => {
    const record = recordOfBatch(tree, id);
    const counts = countsOf(record);
    const settledMs = statOf(join(tree.mailbox, "outbox", resultName(id)))?.mtimeMs;
    if (counts === undefined || counts.failures === 0 || settledMs === undefined) return [];
    const attempts = typeof record?.["attempts"] === "number" ? record["attempts"] : null;
    return [{ id, counts, attempts, settledMs }];
  });
  return found.sort((a, b) => b.settledMs - a.settledMs);
}

function settledBatches(tree: StateTree): string[] {
  const ids: string[] = [];
  let seen = 0;
  eachName(join(tree.mailbox, "outbox"), (name) => {
    const id = batchOfResults(name);
    if (id !== undefined) ids.push(id);
    return ++seen < COUNT_MAX && ids.length < BATCHES_MAX;
  });
  return ids;
}
