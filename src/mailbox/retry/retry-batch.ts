/**
 * Retries a settled batch: its failed lines run again, and their results join the results of the other lines. One rename takes its
 * record out of the tray; recovery can finish from there.
 */
import { dirname, join } from "node:path";
import { ErrInvalidTransition, ErrTaskExists, ErrTaskNotFound } from "../../core/errors.ts";
import {
  errorName,
  formatName,
  type ProcessingName,
  prefixOf,
  resultsName,
  settledBatchName,
  submissionOf,
} from "../../core/names.ts";
import { newMarker } from "../claim/claim.ts";
import { randomToken } from "../files/random.ts";
import { linked, moved, touchIfThere, unlinkIfThere } from "../files/steps.ts";
import type { Trays } from "../files/trays.ts";
import { findWaiting, hasLive, isBeingSettled } from "../find/locate.ts";
import { readRecord } from "../find/settled-record.ts";
import { BatchResults, copyResults, stagedResultsPath } from "../settle/batch-results.ts";
import { type PutBackOptions, putSkippedBack } from "./put-skipped-back.ts";

/**
 * @param record path of its record
 * @throws ErrTaskNotFound, ErrTaskExists, ErrInvalidTransition (none of its lines failed, or the batch file is gone)
 */
export async function retryBatch(
  trays: Trays,
  id: string,
  record: string,
  options: PutBackOptions = {},
): Promise<void> {
  const { storage } = trays;
  const found = readRecord(trays, record)?.record;
  const kept = settledBatchName(id, submissionOf(found?.lease ?? ""));
  if (storage.look(join(dirname(record), kept)) === undefined)
    throw new ErrInvalidTransition(`the batch ${JSON.stringify(id)} is not there any more`, {
      id,
      path: join(dirname(record), kept),
      phase: "retry",
      hint: "enqueue it again under a new id",
    });
  if (hasLive(trays, prefixOf({ id, submission: submissionOf(found?.lease ?? "") })))
    throw new ErrTaskExists(`the batch ${JSON.stringify(id)} is being settled`, {
      id,
      path: trays.processing,
      phase: "retry",
      hint: "try again in a moment",
    });
  if (found?.status === "completed" && (found.batch?.failures ?? 0) === 0)
    throw new ErrInvalidTransition(`every line of the batch ${JSON.stringify(id)} has completed`, {
      id,
      phase: "retry",
      hint: "enqueue it under a new id",
    });
  const waiting = findWaiting(trays, id);
  if (waiting !== undefined)
    throw new ErrTaskExists(`a task ${JSON.stringify(id)} waits in the inbox`, {
      id,
      path: waiting.path,
      phase: "retry",
    });
  const marker = newMarker(trays.clock, id, "again", true);
  if (!moved(trays, record, join(trays.processing, formatName(marker))))
    throw new ErrTaskNotFound(`the record of the batch ${JSON.stringify(id)} is gone`, {
      id,
      path: record,
      phase: "retry",
    });
  await finishRetryBatch(trays, marker, options);
}

/**
 * Finishes a retry, also after a crash in its middle.
 * @returns "later" while the settlement of this record is not finished: the settler or a recoverer publishes a record again if it
 *   finds it neither in the tray nor in `processing/`
 */
export async function finishRetryBatch(
  trays: Trays,
  marker: ProcessingName,
  options: PutBackOptions = {},
): Promise<"done" | "later"> {
  const { storage } = trays;
  const path = join(trays.processing, formatName(marker));
  if (storage.look(path) === undefined) return "done";
  const record = readRecord(trays, path)?.record;
  if (record === undefined) {
    // The record cannot be read: put it back unchanged.
    moved(trays, path, join(trays.failed, errorName(`${marker.id}~${marker.token}`)));
    return "done";
  }
  // This may be a later record, if another retry and its run came in between.
  const settled = prefixOf({ id: marker.id, submission: submissionOf(record.lease) });
  if (isBeingSettled(trays, settled)) return "later";
  if (record.status === "failed") await putSkippedBack(trays, marker, record, options);
  const dir = record.status === "completed" ? trays.outbox : trays.failed;
  const batch = join(dir, settledBatchName(marker.id, submissionOf(record.lease)));
  const results = join(dir, resultsName(marker.id));
  if (storage.look(batch) !== undefined) {
    // Completed lines stay completed: their results become the checkpoint of the next run. Only then are the old results deleted.
    if (storage.look(results) !== undefined) {
      await keepCompleted(trays, marker, path, results);
      dropResults(trays, marker, results, batch);
    }
    const ready: ProcessingName = {
      id: marker.id,
      submission: marker.submission,
      attempt: 1,
      stage: "ready",
      token: "",
      isBatch: true,
    };
    moved(trays, batch, join(trays.processing, formatName(ready)));
    if (trays.durability === "power") await storage.syncDirs([trays.processing]);
  }
  // The record is removed last: until then recovery finds it after a crash and repeats this.
  unlinkIfThere(trays, path);
  return "done";
}

/**
 * Moves the results aside before deleting them. While the batch is still under the name of this settlement, no later run can have
 * left results. Otherwise another process finished this retry while this one was stopped, and we put the results back. One loss
 * remains possible: a process that is stopped between the first look and the rename for a whole later run, and that dies before it
 * puts the results back.
 */
function dropResults(trays: Trays, { id }: ProcessingName, results: string, batch: string): void {
  if (trays.storage.look(batch) === undefined) return;
  const aside = join(trays.tmp, `${id}-${randomToken(10)}.results.tmp`);
  if (!moved(trays, results, aside)) return;
  if (trays.storage.look(batch) === undefined) trays.storage.link(aside, results);
  unlinkIfThere(trays, aside);
}

async function keepCompleted(
  trays: Trays,
  marker: ProcessingName,
  markerPath: string,
  results: string,
): Promise<void> {
  const fresh = new BatchResults(join(trays.tmp, `${marker.id}-${randomToken(10)}.results.tmp`));
  try {
    // Recovery looks for old markers: a fresh time shows that a process is at work.
    const isWanted = (isCompleted: boolean): boolean => isCompleted;
    await copyResults(trays, results, fresh, isWanted, () => touchIfThere(trays, markerPath));
    if (trays.durability === "power") await fresh.sync();
    // Never replace an existing file: when two processes finish one retry, the second may have found the old results gone.
    linked(trays, fresh.path, stagedResultsPath(trays, marker));
    unlinkIfThere(trays, fresh.path);
    if (trays.durability === "power") await trays.storage.syncDirs([trays.tmp]);
  } catch (error) {
    unlinkIfThere(trays, fresh.path);
    throw error;
  } finally {
    fresh.close();
  }
}
