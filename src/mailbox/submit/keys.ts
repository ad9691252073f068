/**
 * Keys: of the tasks with one `dedup_key`, one at a time is the holder. A note in `.keys/` says which one.
 *
 *   note   link `<hash of the key>`          decides: of two, one fails. It holds the id and the time
 *   free   link the note to `<hash>~`        only one process frees a key at a time, and only the note that was judged: what has got
 *                                            the second name is read again
 *          unlink the note, then `<hash>~`   the next note is linked
 */
import { createHash } from "node:crypto";
import { parseObject } from "../../core/json-object.ts";
import { DEDUP_WINDOW_MS_MAX } from "../../core/limits.ts";
import { randomToken } from "../files/random.ts";
import { isGone, linked, readIfThere, unlinkIfThere } from "../files/steps.ts";
import { makeStateDir, pathIn, type Trays, withTrays } from "../files/trays.ts";
import { hasErrorRecord } from "../find/failures.ts";
import { isInFlight } from "../find/locate.ts";

/** A task with a key. */
export interface KeyedTask {
  id: string;
  key: string;
  /** So long after the last holder was seen first, no other task becomes it (ms). */
  windowMs: number;
}

/** What a note says. */
interface Holder {
  id: string;
  sinceMs: number;
}

const HASH_CHARS = 32;
const TOKEN_CHARS = 10;
/** How often a note is judged again that another process has just changed. */
const TRIES_MAX = 8;
/** The end of the second name of a note. */
const FREEING = "~";

export function keysDir({ dir }: Pick<Trays, "dir">): string {
  return pathIn(dir, ".keys");
}

export function keyNotePath(trays: Pick<Trays, "dir">, key: string): string {
  const hash = createHash("sha256").update(key, "utf8").digest("hex").slice(0, HASH_CHARS);
  return pathIn(keysDir(trays), hash);
}

/**
 * Makes the task the holder of its key, unless another one is.
 * @returns the id of that other one; undefined when the task is the holder, also when it was before
 * @throws a system error: then it is not known
 */
export function holdKey(trays: Trays, task: KeyedTask): string | undefined {
  const path = keyNotePath(trays, task.key);
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const note = readIfThere(trays, path);
    const holder = note === undefined ? undefined : readHolder(note);
    if (holder?.id === task.id) return undefined;
    if (holder !== undefined && counts(trays, holder, task.windowMs)) return holder.id;
    if (note !== undefined) free(trays, path, note);
    else if (linkNote(trays, path, task.id)) return undefined;
  }
  throw new Error("another process is giving its dedup_key to another task");
}

/** Removes the second names of notes whose process died while it freed a key. Call it while no other process frees one. */
export function finishKeys(trays: Trays): void {
  const dir = keysDir(trays);
  if (trays.storage.look(dir) === undefined) return;
  for (const name of trays.storage.list(dir))
    if (name.endsWith(FREEING)) unlinkIfThere(trays, pathIn(dir, name));
}

/** Removes the note if no window can reach back to it and its task has ended. Call it for old notes. @returns whether it did */
export function dropOldKey(trays: Trays, file: string): boolean {
  // Another process may be freeing the key: without the second name a third one could free it, too. A start removes what is left.
  if (file.endsWith(FREEING)) return false;
  const path = pathIn(keysDir(trays), file);
  const note = readIfThere(trays, path);
  const holder = note === undefined ? undefined : readHolder(note);
  if (note === undefined) return false;
  if (holder !== undefined && counts(trays, holder, DEDUP_WINDOW_MS_MAX)) return false;
  free(trays, path, note);
  return true;
}

/** Whether this holder keeps the key from others: its task waits or runs, or came within the window and has not failed. */
function counts(trays: Trays, { id, sinceMs }: Holder, windowMs: number): boolean {
  const ageMs = trays.clock.wallMs() - sinceMs;
  // A note from the future is one from before the clock was set back: it counts no longer than its task.
  if (ageMs >= 0 && ageMs < windowMs && !hasErrorRecord(trays, id)) return true;
  // One that goes back into the inbox may be missed by one look, but not by two.
  return isInFlight(trays, id, ["bad"]) || isInFlight(trays, id, ["bad"]);
}

/** Undefined for a note that a power cut has left without its text: the task of it was not accepted yet. */
function readHolder(note: Buffer): Holder | undefined {
  const { id, since_ms: sinceMs } = parseObject(note.toString("utf8")) ?? {};
  return typeof id === "string" && typeof sinceMs === "number" ? { id, sinceMs } : undefined;
}

function linkNote(trays: Trays, path: string, id: string): boolean {
  const { storage, tmp, clock } = trays;
  if (storage.look(keysDir(trays)) === undefined) makeStateDir(keysDir(trays), storage, 1);
  const staged = pathIn(tmp, `${id}-${randomToken(TOKEN_CHARS)}.key.tmp`);
  const text = JSON.stringify({ id, since_ms: Math.floor(clock.wallMs()) });
  withTrays(trays, () => storage.create(staged, Buffer.from(`${text}\n`)));
  try {
    return linked(trays, staged, path);
  } finally {
    unlinkIfThere(trays, staged);
  }
}

/** Frees the key of this very note. A crash in between leaves its second name, with or without the first one: see `finishKeys`. */
function free(trays: Trays, path: string, judged: Buffer): void {
  const second = path + FREEING;
  if (!secondNamed(trays, path, second)) return;
  if (readIfThere(trays, second)?.equals(judged) === true) unlinkIfThere(trays, path);
  unlinkIfThere(trays, second);
}

/** False when another process frees the key, or has freed it. */
function secondNamed(trays: Trays, path: string, second: string): boolean {
  try {
    return linked(trays, path, second);
  } catch (error) {
    if (isGone(trays, error, path)) return false;
    throw error;
  }
}
