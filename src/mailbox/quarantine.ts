/** Quarantine: what cannot be run moves to `failed/`, whole, with a record that says why. Nothing is opened or deleted. */
import { join } from "node:path";
import { encodeRecord } from "../codec/records.ts";
import { wallSeconds } from "../core/clock.ts";
import {
  errorName,
  foldId,
  formatName,
  inboxName,
  isId,
  type ProcessingName,
} from "../core/names.ts";
import type { ErrorRecord } from "../core/task.ts";
import { type Claim, newMarker } from "./claim.ts";
import { findWaiting, liveIds } from "./locate.ts";
import { randomToken } from "./random.ts";
import { hasSettled, isRefusal, readRecord } from "./settled-record.ts";
import { linked, moved, unlinkIfThere } from "./steps.ts";
import { type Trays, withTrays } from "./trays.ts";

export interface Refusal {
  /** Name in `inbox/` as listed. */
  name: string;
  /** The id the name stands for, or undefined when no id can be read from it. */
  id: string | undefined;
  code: string;
  reason: string;
  offset?: number | undefined;
  /** True when another task holds this id: its records must not be touched. */
  isIdTaken: boolean;
}

/**
 * Refuses a file in the inbox: when this returns it is out of the inbox, and `finishQuarantine` files it.
 * @returns undefined when another process moved the file
 * @throws a system error: then it is in the inbox still
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

/** Where a listed name stands in the inbox: in bytes when it is not UTF-8. */
export function inboxPath(trays: Trays, name: string): string | Buffer {
  const raw = rawName(trays, name);
  return raw === undefined
    ? join(trays.inbox, name)
    : Buffer.concat([Buffer.from(`${trays.inbox}/`, "utf8"), raw]);
}

/** The bytes of a listed name that is not UTF-8; undefined for any other, and when it is gone. */
function rawName({ inbox, storage }: Trays, name: string): Buffer | undefined {
  return name.includes("\ufffd") ? storage.rawName(inbox, name) : undefined;
}

/**
 * Refuses a claimed file, for who holds it and has nothing but the mailbox: its own lease ends with it.
 * @throws a system error: then it is claimed still
 */
export function refuseClaim(trays: Trays, claim: Claim, code: string, reason: string): void {
  const { id, isBatch } = claim.name;
  const marker = newMarker(trays.clock, id, "bad", isBatch);
  const facts = { dropped_as: inboxName(claim.name) };
  const record = refusalRecord(trays, marker, code, reason, facts);
  if (!begin(trays, claim.path, marker, record)) return;
  // What the disk refuses from here on is for recovery, as after a crash.
  finishQuarantine(trays, marker, false).catch(() => {});
}

/** Once this is done recovery finishes: the marker is the refused file itself. False when another process moved it. */
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
 * The rest of a quarantine, also after a crash in its middle. A record is published only when it is durable: half of one
 * would hold its id for ever.
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
    // Another process has finished: the reason is the last to go.
    if (trays.storage.look(join(trays.processing, file)) === undefined) return unique;
    const reason = "the file was refused; the reason was lost in a crash";
    const record = refusalRecord(trays, marker, "ErrInvalidTask", reason, {});
    // Whole before it has the name that is published: a crash in between leaves a file that is swept by age.
    const fresh = join(trays.tmp, `${marker.id}-${randomToken(10)}.refusal.tmp`);
    unlinkIfThere(trays, staged);
    trays.storage.create(fresh, record);
    linked(trays, fresh, staged);
    unlinkIfThere(trays, fresh);
  }
  // Neither may the file be back in the inbox, to be refused once more, while this reason stands.
  if (trays.durability === "power")
    await Promise.all([
      trays.storage.syncFiles([staged]),
      trays.storage.syncDirs([trays.processing]),
    ]);
  const ours = trays.storage.look(staged)?.ino;
  let filedAs = unique;
  let isUniqueOurs = false;
  // Gone with its marker: another process has finished. Gone without it: the link below fails, and recovery begins anew.
  const isFiled =
    ours === undefined
      ? trays.storage.look(join(trays.processing, file)) === undefined
      : [uniqueRecord, plainRecord].some((path) => trays.storage.look(path)?.ino === ours);
  if (!isFiled) {
    // A refused file has no claim on its plain name when another task lives, or lived, under it.
    if (!isIdTaken && linked(trays, staged, plainRecord)) filedAs = marker.id;
    else isUniqueOurs = linked(trays, staged, uniqueRecord);
  } else if (ours !== undefined && trays.storage.look(plainRecord)?.ino === ours) {
    filedAs = marker.id;
  }
  const kept = join(trays.failed, inboxName({ ...marker, id: unique }));
  const isKept = moved(trays, join(trays.processing, file), kept);
  // While this process was stopped, another one filed it, and it was retried: a reason without its file is removed.
  if (isUniqueOurs && !isKept && trays.storage.look(kept) === undefined)
    unlinkIfThere(trays, uniqueRecord);
  unlinkIfThere(trays, staged);
  return filedAs;
}

/**
 * Whether another task holds the id of a refused file, for the process that finishes a refusal that another has begun: the record gets the
 * name that it would have got from them.
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

/** Whether a refusal was begun with this marker: then its reason is staged until the marker goes. */
export function hasReason(trays: Trays, marker: ProcessingName): boolean {
  return trays.storage.look(join(trays.tmp, formatName(marker))) !== undefined;
}

/** Moves the record of an earlier refusal aside, so that a mended file of the same id can be accepted. */
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

/** A file name's readable rest, made into a legal id. */
function safeStem(name: string): string {
  const stem = name
    .replace(/\.(?:nd)?json$/, "")
    .replace(/[^A-Za-z0-9._-]+/g, "_")
    .replace(/\.{2,}/g, "_")
    .replace(/^[^A-Za-z0-9]+/, "");
  const id = stem.slice(0, 64);
  return isId(id) ? id : `unnamed-${randomToken(4)}`;
}

/** A name as text that can be turned back into its very bytes: what is not printable ASCII, and the backslash, as `\xNN`. */
function escapeName(name: Buffer): string {
  return name
    .toString("latin1")
    .replace(
      /[^\x20-\x5b\x5d-\x7e]/g,
      (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`,
    );
}
