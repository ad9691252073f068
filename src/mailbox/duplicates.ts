/** A file dropped a second time with the very same content is no fault: it goes, and nothing else happens. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { decodeRecord } from "../codec/records.ts";
import { decodeTask } from "../codec/task-codec.ts";
import { TASK_BYTES_MAX } from "../core/limits.ts";
import {
  errorName,
  foldId,
  formatName,
  type ProcessingName,
  parseName,
  resultName,
  settledBatchName,
  submissionOf,
} from "../core/names.ts";
import { moved, unlinkIfThere } from "./claim.ts";
import { randomToken } from "./random.ts";
import type { Trays } from "./trays.ts";

/**
 * Drops `inbox/<name>` if the task of this id, wherever it is now, has the same text.
 * @returns false when it differs, or cannot be compared: then the file is still there
 */
export function dropIdentical(trays: Trays, name: string, id: string): boolean {
  const first = findTaskText(trays, id);
  const path = join(trays.inbox, name);
  if (first === undefined || taskText(trays, path, id) !== first) return false;
  // Taken aside, and compared again: what is compared is what goes, even if somebody writes a new file under the name. Aside
  // is a refused file's marker, which recovery never loses: if we die here, or it differs after all, it is carried on from there.
  const marker: ProcessingName = {
    id,
    submission: randomToken(8),
    attempt: 0,
    stage: "bad",
    token: randomToken(8),
  };
  if (moved(trays, path, join(trays.processing, formatName(marker))))
    dropMarked(trays, marker, first);
  return true;
}

/** Drops a refused file, on its way into `failed/`, if it is a task that is there already. */
export function dropMarked(
  trays: Trays,
  marker: ProcessingName,
  first = findTaskText(trays, marker.id),
): boolean {
  const path = join(trays.processing, formatName(marker));
  if (first === undefined || taskText(trays, path, marker.id) !== first) return false;
  unlinkIfThere(trays, path);
  unlinkIfThere(trays, join(trays.tmp, formatName(marker)));
  return true;
}

/** Batches larger than this are not compared byte by byte (bytes): it would hold up everything else. */
const COMPARED_BYTES_MAX = 64 * 1024 * 1024;

/** Drops the batch `inbox/<name>` if the batch of this id, wherever it is now, has the same bytes. */
export function dropIdenticalBatch(trays: Trays, name: string, id: string): boolean {
  const path = join(trays.inbox, name);
  const firsts = trays.storage
    .list(trays.processing)
    .filter((file) => {
      const live = parseName(file);
      return live?.id === id && live.stage !== "again" && live.stage !== "bad";
    })
    .map((file) => join(trays.processing, file));
  for (const record of [join(trays.outbox, resultName(id)), join(trays.failed, errorName(id))])
    firsts.push(keptBatchOf(trays, id, record));
  if (!firsts.some((first) => isSameFile(path, first))) return false;
  // Aside is a refused file's marker, as above: what differs after all is filed by recovery.
  const marker: ProcessingName = {
    id,
    submission: randomToken(8),
    attempt: 0,
    stage: "bad",
    token: randomToken(8),
    isBatch: true,
  };
  const aside = join(trays.processing, formatName(marker));
  if (moved(trays, path, aside) && firsts.some((first) => isSameFile(aside, first)))
    unlinkIfThere(trays, aside);
  return true;
}

/** Where the batch that this record is of is kept, as it was dropped. @param record path of the record */
export function keptBatchOf(trays: Trays, id: string, record: string): string {
  let lease = "";
  try {
    const { bytes } = trays.storage.read(record, Number.MAX_SAFE_INTEGER);
    lease = (bytes === undefined ? undefined : decodeRecord(bytes)?.record.lease) ?? "";
  } catch {
    // No record, no batch: a name that no file has.
  }
  return join(dirname(record), settledBatchName(id, submissionOf(lease)));
}

/** Whether two files hold the same bytes; false when one is missing or too large to be compared. */
export function isSameFile(a: string, b: string): boolean {
  const sizes = [a, b].map((path) => fs.statSync(path, { throwIfNoEntry: false })?.size);
  if (sizes[0] === undefined || sizes[0] !== sizes[1] || sizes[0] > COMPARED_BYTES_MAX)
    return false;
  try {
    return fs.readFileSync(a).equals(fs.readFileSync(b));
  } catch {
    return false;
  }
}

/** The text of the task of this very id, in `processing/` or inside its record; undefined when there is none to compare. */
export function findTaskText(trays: Trays, id: string): string | undefined {
  for (const file of trays.storage.list(trays.processing)) {
    const name = parseName(file);
    // On their way out of `processing/`: what waits in the inbox may be their only successor.
    if (name?.stage === "again" || name?.stage === "bad") continue;
    const isIt = file === `${id}.json` || name?.id === id;
    if (isIt && name?.isBatch === true) return undefined;
    if (isIt) return taskText(trays, join(trays.processing, file), id);
    if (foldId(name?.id ?? "") === foldId(id)) return undefined;
  }
  for (const path of [join(trays.outbox, resultName(id)), join(trays.failed, errorName(id))]) {
    try {
      const { bytes } = trays.storage.read(path, Number.MAX_SAFE_INTEGER);
      if (bytes !== undefined) return decodeRecord(bytes)?.taskText;
    } catch {
      // Not this one.
    }
  }
  return undefined;
}

function taskText(trays: Trays, path: string, id: string): string | undefined {
  try {
    const { bytes } = trays.storage.read(path, TASK_BYTES_MAX);
    return bytes === undefined ? undefined : decodeTask(bytes, id).text;
  } catch {
    return undefined;
  }
}
