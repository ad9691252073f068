/**
 * Retry of a settled batch: its failed lines run again, and what they come to joins the results of the others. One rename
 * takes its record out of the tray; from then on recovery finishes.
 */
import { dirname, join } from "node:path";
import { ErrInvalidTransition, ErrTaskExists, ErrTaskNotFound } from "../core/errors.ts";
import {
  errorName,
  formatName,
  inboxName,
  type ProcessingName,
  resultsName,
  settledBatchName,
  submissionOf,
} from "../core/names.ts";
import { BatchResults, copyResults, stagedResultsPath } from "./batch-results.ts";
import { newMarker } from "./claim.ts";
import { randomToken } from "./random.ts";
import { readRecord } from "./settled-record.ts";
import { moved, touchIfThere, unlinkIfThere } from "./steps.ts";
import type { Trays } from "./trays.ts";

/**
 * @param record path of its record
 * @throws ErrTaskNotFound, ErrTaskExists, ErrInvalidTransition (no line of it failed, or its batch is gone)
 */
export async function retryBatch(trays: Trays, id: string, record: string): Promise<void> {
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
  if (found?.status === "completed" && (found.batch?.failures ?? 0) === 0)
    throw new ErrInvalidTransition(`every line of the batch ${JSON.stringify(id)} has completed`, {
      id,
      phase: "retry",
      hint: "enqueue it under a new id",
    });
  for (const isBatch of [false, true]) {
    const waiting = join(trays.inbox, inboxName(isBatch ? { id, isBatch } : { id }));
    if (storage.look(waiting) !== undefined)
      throw new ErrTaskExists(`a task ${JSON.stringify(id)} waits in the inbox`, {
        id,
        path: waiting,
        phase: "retry",
      });
  }
  const marker = newMarker(id, "again", true);
  if (!moved(trays, record, join(trays.processing, formatName(marker))))
    throw new ErrTaskNotFound(`the record of the batch ${JSON.stringify(id)} is gone`, {
      id,
      path: record,
      phase: "retry",
    });
  await finishRetryBatch(trays, marker);
}

/** The rest of a retry, also after a crash in its middle. */
export async function finishRetryBatch(trays: Trays, marker: ProcessingName): Promise<void> {
  const { storage } = trays;
  const path = join(trays.processing, formatName(marker));
  if (storage.look(path) === undefined) return;
  const record = readRecord(trays, path)?.record;
  if (record === undefined) {
    // Not a record we can read: give it back as it was.
    moved(trays, path, join(trays.failed, errorName(`${marker.id}~${marker.token}`)));
    return;
  }
  const dir = record.status === "completed" ? trays.outbox : trays.failed;
  const batch = join(dir, settledBatchName(marker.id, submissionOf(record.lease)));
  const results = join(dir, resultsName(marker.id));
  if (storage.look(batch) !== undefined) {
    // What completed stays done: it becomes the checkpoint of the run to come. Only then the old results go.
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
  // The record goes last: until here a crash finds it and comes again.
  unlinkIfThere(trays, path);
}

/**
 * Taken aside first. While the batch still lies under the name of this settlement, no later run can have left results;
 * if it does not, somebody else has finished this retry while we stood still, and what we took is put back.
 */
function dropResults(trays: Trays, { id }: ProcessingName, results: string, batch: string): void {
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
    // Whoever looks for what was left behind must see that somebody is at it.
    const isWanted = (isCompleted: boolean): boolean => isCompleted;
    await copyResults(results, fresh, isWanted, () => touchIfThere(trays, markerPath));
    if (trays.durability === "power") await fresh.sync();
    trays.storage.rename(fresh.path, stagedResultsPath(trays, marker));
    if (trays.durability === "power") await trays.storage.syncDirs([trays.tmp]);
  } catch (error) {
    unlinkIfThere(trays, fresh.path);
    throw error;
  } finally {
    fresh.close();
  }
}
