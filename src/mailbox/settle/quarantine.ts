/** Quarantine: a file that cannot run is moved to `failed/`, unchanged, with a record that says why. Nothing is opened or deleted. */
import { join } from "node:path";
import { encodeRecord } from "../../codec/records.ts";
import { wallSeconds } from "../../core/clock.ts";
import {
  errorName,
  foldId,
  formatName,
  inboxName,
  isId,
  type ProcessingName,
} from "../../core/names.ts";
import type { ErrorRecord } from "../../core/task.ts";
import { type Claim, newMarker } from "../claim/claim.ts";
import { randomToken } from "../files/random.ts";
import { linked, moved, unlinkIfThere } from "../files/steps.ts";
import { type Trays, withTrays } from "../files/trays.ts";
import { findLive, findWaiting, liveIds } from "../find/locate.ts";
import { hasSettled, isRefusal, readRecord } from "../find/settled-record.ts";

export interface Refusal {
  /** The name as listed in `inbox/`. */
  name: string;
  /** The id in the name; undefined when the name holds no valid id. */
  id: string | undefined;
  code: string;
  reason: string;
  offset?: number | undefined;
  /** True when another task has this id: its records must not be touched. */
  isIdTaken: boolean;
}

/**
 * Takes a refused file out of the inbox; `finishQuarantine` then moves it to `failed/`.
 * @returns undefined when another process moved the file
 * @throws a system error: the file is then still in the inbox
 */
export function beginQuarantine(trays: Trays, refusal: Refusal): ProcessingName | undefined {
  const raw = rawName(trays, refusal.name);
  const shown = raw?.toString("latin1") ?? refusal.name;
  const id = refusal.id !== undefined && isId(refusal.id) ? refusal.id : safeStem(shown);
  const marker = newMarker(trays.clock, id, "bad", shown.endsWith(".ndjson"));
  const record = refusalRecord(trays, marker, refusal.code, refusal.reason, {
    dropped_as: escapeName(raw ?? Buffer.from(refusal.name)),
    ...(refusal.offset === undefined ? {} : { offset: refusal.offset }),
  });
  return begin(trays, inboxPath(trays, refusal.name), marker, record) ? marker : undefined;
}

/** The path of a listed name in the inbox: as bytes when the name is not UTF-8. */
export function inboxPath(trays: Trays, name: string): string | Buffer {
  const raw = rawName(trays, name);
  return raw === undefined
    ? join(trays.inbox, name)
    : Buffer.concat([Buffer.from(`${trays.inbox}/`, "utf8"), raw]);
}

/** The bytes of a listed name that is not UTF-8; undefined for any other name, and when the file is gone. */
function rawName({ inbox, storage }: Trays, name: string): Buffer | undefined {
  return name.includes("\ufffd") ? storage.rawName(inbox, name) : undefined;
}

/**
 * Refuses a claimed file, for a caller that holds its lease and has only the mailbox. The lease ends.
 * @throws a system error: the file is then still claimed
 */
export function refuseClaim(trays: Trays, claim: Claim, code: string, reason: string): void {
  const { id, isBatch } = claim.name;
  const marker = newMarker(trays.clock, id, "bad", isBatch);
  const facts = { dropped_as: inboxName(claim.name) };
  const record = refusalRecord(trays, marker, code, reason, facts);
  if (!begin(trays, claim.path, marker, record)) return;
  // If the disk refuses a later step, recovery finishes as after a crash.
  finishQuarantine(trays, marker, false).catch(() => {});
}

/**
 * Writes the reason and takes the file. From then on recovery can finish, because the marker is the refused file itself. False when
 * another process moved the file.
 */
function begin(
  trays: Trays,
  from: string | Buffer,
  marker: ProcessingName,
  record: Buffer,
): boolean {
  const file = formatName(marker);
  const staged = join(trays.tmp, file);
  withTrays(trays, () => trays.storage.create(staged, record));
  if (moved(trays, from, join(trays.processing, file))) return true;
  unlinkIfThere(trays, staged);
  return false;
}

/**
 * Finishes a quarantine, also after a crash in its middle. A record is published only when it is durable: an incomplete one would
 * block its id for ever.
 * @returns the id of the error record
 */
export async function finishQuarantine(
  trays: Trays,
  marker: ProcessingName,
  isIdTaken = isIdHeld(trays, marker),
): Promise<string> {
  const file = formatName(marker);
  const staged = join(trays.tmp, file);
  const unique = `${marker.id}~${marker.token}`;
  const uniqueRecord = join(trays.failed, errorName(unique));
  const plainRecord = join(trays.failed, errorName(marker.id));
  if (readRecord(trays, staged) === undefined) {
    // The reason is removed last, so another process has finished.
    if (trays.storage.look(join(trays.processing, file)) === undefined) return unique;
    const reason = "the file was refused; the reason was lost in a crash";
    const record = refusalRecord(trays, marker, "ErrInvalidTask", reason, {});
    // Write the whole record under another name first: a crash in between leaves a file that is later removed by age.
    const fresh = join(trays.tmp, `${marker.id}-${randomToken(10)}.refusal.tmp`);
    unlinkIfThere(trays, staged);
    trays.storage.create(fresh, record);
    linked(trays, fresh, staged);
    unlinkIfThere(trays, fresh);
  }
  // A power cut must not bring the file back to the inbox while this reason exists: the file would be refused a second time.
  if (trays.durability === "power")
    await Promise.all([
      trays.storage.syncFiles([staged]),
      trays.storage.syncDirs([trays.processing]),
    ]);
  const ours = trays.storage.look(staged)?.ino;
  let filedAs = unique;
  // The record that this call has published.
  let published: string | undefined;
  // If the staged reason and the marker are both gone, another process has finished. If only the reason is gone, the link below
  // fails and recovery starts again.
  const isFiled =
    ours === undefined
      ? trays.storage.look(join(trays.processing, file)) === undefined
      : [uniqueRecord, plainRecord].some((path) => trays.storage.look(path)?.ino === ours);
  if (!isFiled) {
    // A refused file does not get the plain record name when another task has, or had, this id.
    if (!isIdTaken && linked(trays, staged, plainRecord)) published = plainRecord;
    else if (linked(trays, staged, uniqueRecord)) published = uniqueRecord;
    if (published === plainRecord) filedAs = marker.id;
  } else if (ours !== undefined && trays.storage.look(plainRecord)?.ino === ours) {
    filedAs = marker.id;
  }
  const keptName = inboxName({ ...marker, id: unique });
  const kept = join(trays.failed, keptName);
  const isKept = moved(trays, join(trays.processing, file), kept);
  // While this process was stopped, another one finished. Our record must go if the file was retried since then, or just is (a retry takes the record first),
  // or if the other process also had to write the reason anew: then its record has the plain name.
  if (published !== undefined && !isKept) {
    const isTwice = published === uniqueRecord && isAbout(trays, plainRecord, keptName);
    const isRetried =
      trays.storage.look(kept) === undefined || isBeingRetried(trays, marker.id, keptName);
    if (isTwice || isRetried) unlinkIfThere(trays, published);
    if (isTwice) filedAs = marker.id;
  }
  unlinkIfThere(trays, staged);
  return filedAs;
}

/** Whether a retry has taken the record of this file in `failed/`, and the file not yet. Its marker is the record. */
function isBeingRetried(trays: Trays, id: string, file: string): boolean {
  return findLive(trays, id).some(
    ({ name, path }) => name?.stage === "again" && isAbout(trays, path, file),
  );
}

/** Whether this record is about this file in `failed/`. */
function isAbout(trays: Trays, record: string, file: string): boolean {
  const found = readRecord(trays, record)?.record;
  return found?.status === "failed" && found.file === `failed/${file}`;
}

/**
 * Whether another task has the id of a refused file. A process that finishes a refusal of another process asks this, so that the
 * record gets the same name.
 */
export function isIdHeld(trays: Trays, marker: ProcessingName): boolean {
  const reason = readRecord(trays, join(trays.tmp, formatName(marker)))?.record;
  if (reason?.status === "failed" && reason.code === "ErrTaskExists") return true;
  return (
    liveIds(trays, ["again", "bad"]).has(foldId(marker.id)) ||
    findWaiting(trays, marker.id) !== undefined ||
    hasSettled(trays, marker.id)
  );
}

/** Whether the refusal of this marker was begun: its reason is then staged until the marker is removed. */
export function hasReason(trays: Trays, marker: ProcessingName): boolean {
  return trays.storage.look(join(trays.tmp, formatName(marker))) !== undefined;
}

/** Moves the record of an earlier refusal aside, so that a corrected file with the same id can be accepted. */
export function freeRefusedId(trays: Trays, id: string): boolean {
  const path = join(trays.failed, errorName(id));
  if (!isRefusal(trays, path)) return false;
  return moved(trays, path, join(trays.failed, errorName(`${id}~${randomToken(8)}`)));
}

function refusalRecord(
  trays: Trays,
  marker: ProcessingName,
  code: string,
  reason: string,
  extra: Partial<ErrorRecord>,
): Buffer {
  const now = wallSeconds(trays.clock);
  const record: ErrorRecord = {
    task_id: marker.id,
    status: "failed",
    error: reason,
    attempts: 0,
    last_attempt_at: 0,
    failed_at: now,
    code,
    kind: "invalid",
    agent_id: "",
    lease: `${marker.submission}.0.${marker.token}`,
    exit_code: null,
    signal: null,
    run: null,
    file: `failed/${inboxName({ ...marker, id: `${marker.id}~${marker.token}` })}`,
    ...extra,
  };
  return encodeRecord(record, undefined);
}

/** Makes a legal id from the readable part of a file name. */
function safeStem(name: string): string {
  const stem = name
    .replace(/\.(?:nd)?json$/, "")
    .replace(/[^A-Za-z0-9._-]+/g, "_")
    .replace(/\.{2,}/g, "_")
    .replace(/^[^A-Za-z0-9]+/, "");
  const id = stem.slice(0, 64);
  return isId(id) ? id : `unnamed-${randomToken(4)}`;
}

/** A name as text from which its exact bytes can be restored: a backslash and all bytes that are not printable ASCII become `\xNN`. */
function escapeName(name: Buffer): string {
  return name
    .toString("latin1")
    .replace(
      /[^\x20-\x5b\x5d-\x7e]/g,
      (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`,
    );
}
