/** Handles a task that is dropped twice, which is no fault: the second file is deleted or replaces the first. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { decodeRecord } from "../../codec/records.ts";
import { decodeTask } from "../../codec/task-codec.ts";
import { ErrInvalidTask, systemCode } from "../../core/errors.ts";
import { RECORD_BYTES_MAX, TASK_BYTES_MAX } from "../../core/limits.ts";
import {
  inboxName,
  type ProcessingName,
  settledBatchName,
  submissionOf,
} from "../../core/names.ts";
import { openToRead, statOf } from "../../host/regular-file.ts";
import { linked, unlinkIfThere, unlinkMoved } from "../files/steps.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { findLive, type Place, recordPaths } from "../find/locate.ts";
import { readRecord } from "../find/settled-record.ts";
import { asidePath, takeAside } from "./aside.ts";

/**
 * What a file with a used id is. "dropped": the same task again; the file is deleted. "other": another task. "unsure": the task of
 * this id is just being settled or put back, or has just left, and this file may be its only copy. "free": no task has exactly this
 * id any more.
 */
export type Resend = "dropped" | "other" | "unsure" | "free";

/** Deletes `inbox/<id>.json` if the task of this id, or its record, has the same text. */
export function dropIdentical(trays: Trays, id: string): Resend {
  const likeness = compare(trays, join(trays.inbox, inboxName({ id })), id);
  return likeness === "same" ? dropAside(trays, takeAside(trays, { id })) : likeness;
}

/** Deletes the batch `inbox/<id>.ndjson` if the batch of this id, wherever it is now, has the same bytes. */
export function dropIdenticalBatch(trays: Trays, id: string): Resend {
  const batch = { id, isBatch: true } as const;
  if (!isBatchThere(trays, join(trays.inbox, inboxName(batch)), id)) return "other";
  return dropAside(trays, takeAside(trays, batch));
}

/** Compares the file again after taking it aside. So exactly the compared file is deleted, and no process relies on it any more. */
function dropAside(trays: Trays, marker: ProcessingName | undefined): "dropped" | "unsure" {
  if (marker === undefined) return "unsure";
  return finishAside(trays, marker) === "dropped" ? "dropped" : "unsure";
}

/**
 * Deletes the file that was taken aside if it is a resend; otherwise puts it back into the inbox.
 * @returns "other" when another task has taken its place in the inbox; "later" when this is not known yet: the file then stays
 *   aside
 */
export function finishAside(
  trays: Trays,
  marker: ProcessingName,
): "dropped" | "put back" | "other" | "later" {
  const { id, isBatch } = marker;
  const aside = asidePath(trays, marker);
  const waiting = join(trays.inbox, inboxName(marker));
  const isSame = (path: string): boolean =>
    isBatch === true ? isSameFile(aside, path) : taskText(trays, path, id) === text;
  const text = taskText(trays, aside, id);
  const isResend =
    isBatch === true ? isBatchThere(trays, aside, id) : compare(trays, aside, id) === "same";
  if (!isResend) {
    if (isBatch !== true && text === undefined) return "other";
    if (linked(trays, aside, waiting)) {
      unlinkMoved(trays, aside);
      return "put back";
    }
    const there = findSame(trays, waiting, isSame);
    if (there !== "stays") return there === "other" ? "other" : "later";
  }
  unlinkIfThere(trays, aside);
  return "dropped";
}

/** Whether a file in the inbox is the same task. If it has only one name, no process can take it back, and it stays until it is accepted. */
function findSame(
  trays: Trays,
  path: string,
  isSame: (path: string) => boolean,
): "stays" | "may go" | "other" | "gone" {
  const before = trays.storage.look(path);
  if (before === undefined) return "gone";
  if (!isSame(path)) return trays.storage.look(path) === undefined ? "gone" : "other";
  const isOne = before.nlink === 1 && trays.storage.look(path)?.ino === before.ino;
  return isOne ? "stays" : "may go";
}

/** Limits how often one publish is tried: two processes that send the same task at once could otherwise replace each other for ever. */
const PUBLISH_TRIES_MAX = 16;

/**
 * Publishes a staged task in the inbox, unless it is there already. If the same task is there under a second name too, its sender
 * may be about to take it back: our file then replaces it.
 * @param isSame says whether the file at a path holds the task that is published
 * @returns "taken" when another task waits there
 */
export function publishTask(
  trays: Trays,
  staged: string,
  id: string,
  isSame: (path: string) => boolean,
): "published" | "there" | "taken" {
  const target = pathIn(trays.inbox, inboxName({ id }));
  // The replaced files stay until ours is there, because their senders may already have reported them as safe.
  const replaced: ProcessingName[] = [];
  const end = (outcome: "published" | "there"): typeof outcome => {
    for (const marker of replaced) unlinkMoved(trays, asidePath(trays, marker));
    return replaced.length > 0 ? "there" : outcome;
  };
  for (let tries = 0; tries < PUBLISH_TRIES_MAX; tries++) {
    if (linked(trays, staged, target)) return end("published");
    const there = findSame(trays, target, isSame);
    if (there === "stays") return end("there");
    if (there === "other") break;
    if (there === "gone") continue;
    const marker = takeAside(trays, { id });
    if (marker === undefined) continue;
    if (isSame(asidePath(trays, marker))) replaced.push(marker);
    else finishAside(trays, marker);
  }
  for (const marker of replaced) finishAside(trays, marker);
  return "taken";
}

/**
 * Compares a task file with the task of its id. A task that is being settled does not count: its record may already have been
 * retried, as this very file. The claim that this file was linked from does not count either: the process that puts it back will
 * unlink it next.
 */
function compare(trays: Trays, path: string, id: string): "same" | "other" | "unsure" | "free" {
  const ino = trays.storage.look(path)?.ino;
  const own = taskText(trays, path, id);
  if (own === undefined) return "other";
  let isUnsure = false;
  const holder = findTask(trays, id, (live, file) => {
    const isMoving =
      live.stage === "ok" ||
      live.stage === "err" ||
      (live.stage === "w" && trays.storage.look(file)?.ino === ino);
    if (isMoving && taskText(trays, file, id) === own) isUnsure = true;
    return !isMoving;
  });
  if (isUnsure) return "unsure";
  if (holder === undefined) return "free";
  return holder.text === own ? "same" : "other";
}

/** Larger batches are not compared byte by byte (bytes): the comparison would delay everything else. */
const COMPARED_BYTES_MAX = 64 * 1024 * 1024;

/** Whether a batch of this id that waits, runs or has settled has the bytes of this file. */
function isBatchThere(trays: Trays, path: string, id: string): boolean {
  const isIn = (place: Place): boolean =>
    place.id === id &&
    place.name !== undefined &&
    !isLeaving(place) &&
    isSameFile(path, place.path);
  if (findLive(trays, id).some(isIn)) return true;
  return recordPaths(trays, id).some((record) => isSameFile(path, keptBatchOf(trays, id, record)));
}

/** The path of the batch file that is kept beside this record, as it was dropped. @param record path of the record */
export function keptBatchOf(trays: Trays, id: string, record: string): string {
  let lease = "";
  try {
    lease = readRecord(trays, record)?.record.lease ?? "";
  } catch {
    // Without a record no batch is kept: use a name that no file has.
  }
  return join(dirname(record), settledBatchName(id, submissionOf(lease)));
}

const COMPARED_PIECE_BYTES = 256 * 1024;

/** Whether two files hold the same bytes; false when one is missing or too large to be compared. */
export function isSameFile(a: string, b: string): boolean {
  const sizes = [a, b].map((path) => statOf(path)?.size);
  if (sizes[0] === undefined || sizes[0] !== sizes[1] || sizes[0] > COMPARED_BYTES_MAX)
    return false;
  const fds: number[] = [];
  try {
    for (const path of [a, b]) fds.push(openToRead(path));
    const pieces = fds.map((fd) => ({ fd, bytes: Buffer.allocUnsafe(COMPARED_PIECE_BYTES) }));
    for (let at = 0; at < sizes[0]; ) {
      const got = pieces.map(({ fd, bytes }) => fs.readSync(fd, bytes, 0, bytes.length, at));
      // A read may return less than was asked for: compare what both have returned.
      const length = Math.min(...got);
      const [one, two] = pieces.map(({ bytes }) => bytes.subarray(0, length));
      if (length === 0 || one === undefined || two?.equals(one) !== true) return false;
      at += length;
    }
    return true;
  } catch {
    return false;
  } finally {
    for (const fd of fds) fs.closeSync(fd);
  }
}

/** The text of the task with exactly this id, in `processing/` or inside its record; undefined when there is none to compare. */
export function findTaskText(trays: Trays, id: string, holds?: Holds): string | undefined {
  return findTask(trays, id, holds)?.text;
}

/** Says whether a file in `processing/` (its name, its path) counts. */
type Holds = (name: ProcessingName, path: string) => boolean;

/**
 * @returns undefined when there is no such task; without a text when there is nothing to compare
 * @throws a system error
 */
function findTask(
  trays: Trays,
  id: string,
  holds: Holds = () => true,
): { text: string | undefined } | undefined {
  for (const place of findLive(trays, id)) {
    const { name, path } = place;
    if (isLeaving(place)) continue;
    const isIt = place.id === id;
    if (isIt && name?.isBatch === true) return { text: undefined };
    if (isIt && name !== undefined && !holds(name, path)) continue;
    if (isIt) return { text: taskText(trays, path, id) };
    if (name !== undefined) return { text: undefined };
  }
  for (const path of recordPaths(trays, id)) {
    try {
      const { bytes } = trays.storage.read(path, RECORD_BYTES_MAX);
      return { text: bytes === undefined ? undefined : decodeRecord(bytes)?.taskText };
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
    }
  }
  return undefined;
}

/** Whether this file is leaving `processing/`: the file in the inbox may be its only successor. */
function isLeaving({ name }: Place): boolean {
  return name?.stage === "again" || name?.stage === "bad";
}

/** @throws a system error: a disk error does not prove that the file is different */
function taskText(trays: Trays, path: string, id: string): string | undefined {
  try {
    const { bytes } = trays.storage.read(path, TASK_BYTES_MAX);
    return bytes === undefined ? undefined : decodeTask(bytes, id).text;
  } catch (error) {
    if (error instanceof ErrInvalidTask || systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
