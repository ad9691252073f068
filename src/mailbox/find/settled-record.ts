/** Reads settled records: the files in `outbox/` or `failed/` of tasks that have ended. Changes nothing. */

import { type DecodedRecord, decodeRecord } from "../../codec/records.ts";
import { besideId, type ProcessingName, parseBesideName, submissionOf } from "../../core/names.ts";
import { readIfThere } from "../files/steps.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { recordPaths } from "./locate.ts";

export interface SettledRecord {
  record: DecodedRecord["record"];
  path: string;
}

/** Undefined when there is no record, or the file is no record of ours. @throws a system error: then it is not known */
export function readRecord(trays: Trays, path: string): DecodedRecord | undefined {
  const bytes = readIfThere(trays, path);
  return bytes === undefined ? undefined : decodeRecord(bytes);
}

/** The record that settled this id; undefined when there is none that can be read. @throws a system error */
export function readSettled(trays: Trays, id: string): SettledRecord | undefined {
  for (const path of recordPaths(trays, id)) {
    // Most ids have no record, and a look costs less than a failed read.
    if (trays.storage.look(path) === undefined) continue;
    const decoded = readRecord(trays, path);
    if (decoded !== undefined) return { record: decoded.record, path };
  }
  return undefined;
}

/**
 * The record of the submission that has this name in `processing/`. If there is one, the name is a leftover, and the submission
 * must not run again. A name can also come back after a power cut that undid a change in one directory and not in the other.
 * @throws a system error: then it is not known
 */
export function recordOfSubmission(
  trays: Trays,
  name: Pick<ProcessingName, "id" | "submission">,
): SettledRecord | undefined {
  for (const id of [name.id, besideId(name)])
    for (const path of recordPaths(trays, id)) {
      if (trays.storage.look(path) === undefined) continue;
      const record = readRecord(trays, path)?.record;
      if (record !== undefined && submissionOf(record.lease) === name.submission)
        return { record, path };
    }
  return undefined;
}

/**
 * The error records of this id with a longer name (`<id>~<s>_error.json`), the latest first. It lists the tray, so use it only
 * when the id has no other record.
 */
export function errorsBeside(trays: Trays, id: string): SettledRecord[] {
  const found = trays.storage
    .list(trays.failed)
    .filter((file) => parseBesideName(file) === id)
    .map((file) => pathIn(trays.failed, file))
    .map((path) => ({ path, mtimeMs: trays.storage.look(path)?.mtimeMs ?? 0 }))
    .sort((a, b) => b.mtimeMs - a.mtimeMs);
  return found.flatMap(({ path }) => {
    const record = readRecord(trays, path)?.record;
    return record === undefined ? [] : [{ record, path }];
  });
}

/** Whether a task of this id has settled. */
export function hasSettled(trays: Trays, id: string): boolean {
  const [completed, failed] = recordPaths(trays, id);
  if (trays.storage.look(completed) !== undefined) return true;
  return trays.storage.look(failed) !== undefined && !isRefusal(trays, failed);
}

/** True for the record of a file that was refused before it ran: it settles nothing, so its id is free. */
export function isRefusal(trays: Trays, path: string): boolean {
  try {
    const record = readRecord(trays, path)?.record;
    return record !== undefined && isRefused(record);
  } catch {
    return false;
  }
}

/** Whether this is the record of a refused file. */
export function isRefused(record: DecodedRecord["record"]): boolean {
  return record.status === "failed" && record.kind === "invalid" && record.attempts === 0;
}
