/** The steps that all retries share: whose record may run, its task staged and published, and the record put aside when its id is taken. */
import { join } from "node:path";
import type { DecodedRecord } from "../../codec/records.ts";
import {
  errorName,
  formatName,
  type ProcessingName,
  parseLease,
  resultName,
  splitLease,
  submissionOf,
} from "../../core/names.ts";
import { explainOwner } from "../files/dropped-file.ts";
import { randomToken } from "../files/random.ts";
import { moved, readIfThere, unlinkIfThere } from "../files/steps.ts";
import { type Trays, withTrays } from "../files/trays.ts";
import { duplicateIn, skipIn } from "../find/failures.ts";
import { findTaskText, publishTask } from "../submit/duplicates.ts";

/**
 * Why we do not run the task in a record of this owner; undefined when we may. The owner of `failed/` is allowed, too, because
 * that user decides which records are there.
 */
export function explainForeignRecord(trays: Trays, uid: number): string | undefined {
  const owner = trays.storage.look(trays.failed)?.uid;
  return explainOwner(uid, owner === undefined ? trays.uids : [...trays.uids, owner]);
}

/**
 * Writes the task of a retry. The name is unique, so that two processes that finish one retry do not publish each other's
 * half-written file.
 */
export function stageRetry(trays: Trays, marker: ProcessingName, taskText: string): string {
  const staged = join(trays.tmp, `${marker.id}-${randomToken(10)}.again.tmp`);
  trays.storage.create(staged, Buffer.from(`${taskText}\n`, "utf8"));
  return staged;
}

/** Publishes the staged task. False when another task has the id. */
export function publishRetry(
  trays: Trays,
  { id }: ProcessingName,
  staged: string,
  { record: { lease }, taskText: text = "" }: DecodedRecord,
): boolean {
  const isSame = (file: string): boolean =>
    readIfThere(trays, file)?.toString("utf8").trim() === text;
  const published = withTrays(trays, () => publishTask(trays, staged, id, isSame));
  // Unlink before the wait for the disk: a supervisor refuses a file in the inbox that has a second name.
  unlinkIfThere(trays, staged);
  return published !== "taken" || isKnown(trays, id, text, lease);
}

/**
 * Removes the marker that a skipped task may still have, because it was put back before its skipper or recovery ended the skip.
 * The skipper or recovery would find no record and publish it again. Call this when the task is in the inbox, before the marker
 * of the retry is removed.
 */
export function dropSkipMarker(trays: Trays, id: string, record: DecodedRecord["record"]): void {
  const { submission = "", attempt = 0 } = parseLease(record.lease) ?? {};
  const isSkipped = skipIn(record) !== undefined || duplicateIn(record) !== undefined;
  if (!isSkipped || submission === "") return;
  const name = {
    id,
    submission,
    attempt,
    stage: "err",
    token: splitLease(record.lease).owner,
  } as const;
  const file = formatName(name);
  unlinkIfThere(trays, join(trays.processing, file));
  unlinkIfThere(trays, join(trays.tmp, file));
}

/** Puts the record back into its tray, under a new name. */
export function keepAside<T>(trays: Trays, marker: ProcessingName, record: KeptRecord, why: T): T {
  moved(trays, join(trays.processing, formatName(marker)), asideOf(trays, marker, record));
  return why;
}

type KeptRecord = Pick<DecodedRecord["record"], "status"> | undefined;

/** The tray in which the record was. */
export function trayOf(trays: Trays, record: KeptRecord): string {
  return record?.status === "completed" ? trays.outbox : trays.failed;
}

export function asideOf(trays: Trays, { id, token }: ProcessingName, record: KeptRecord): string {
  const name = record?.status === "completed" ? resultName : errorName;
  return join(trayOf(trays, record), name(`${id}~${token}`));
}

/**
 * Whether the task was accepted from the inbox already, by an earlier try of this retry.
 * @param lease of the record that is retried: the marker of that settlement may still be there, and does not count
 */
function isKnown(trays: Trays, id: string, text: string, lease: string): boolean {
  return findTaskText(trays, id, (live) => live.submission !== submissionOf(lease)) === text;
}
