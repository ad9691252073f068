/** Which fields of a task have no effect, from its file or its record. Reads only. */
import type { StateTree } from "../core/state-tree.ts";
import { fieldJudge, fieldsOfBatch } from "../core/task-fields.ts";
import { BATCH_HEAD_BYTES, readHead } from "../host/regular-file.ts";
import { keptBatchOf } from "../mailbox/submit/duplicates.ts";
import { type TaskPlace, traysOf } from "./find-task.ts";

/** A sentence for each. @param task undefined for a batch, whose first lines are looked at */
export function fieldWarnings(
  tree: StateTree,
  place: TaskPlace | undefined,
  task: Record<string, unknown> | undefined,
): string[] {
  if (task !== undefined)
    return fieldJudge()
      .judge(task, "task")
      .map(({ why }) => why);
  if (place === undefined) return [];
  const isRecord = place.state === "done" || place.state === "failed";
  const path = isRecord ? keptBatchOf(traysOf(tree), place.id, place.path) : place.path;
  return fieldsOfBatch(readHead(path, BATCH_HEAD_BYTES)).map(({ why }) => why);
}
