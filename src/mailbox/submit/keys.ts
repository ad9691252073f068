/**
 * Keys: of all tasks with the same `dedup_key`, one at a time holds the key. A note in `.keys/` names the holder.
 *
 *   note   link `<hash of the key>`          decides: of two processes, one fails. The note holds the id and the time
 *   free   link the note to `<hash>~`        only one process frees a key at a time. It reads the second name again, and frees only the
 *                                            note that was judged
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
  /** For so long (ms) after a task became the holder, no other task gets the key, unless the holder has failed. */
  windowMs: number;
}

/** What a note says. */
interface Holder {
  id: string;
  sinceMs: number;
}

const HASH_CHARS = 32;
const TOKEN_CHARS = 10;
/** How often a note is judged again after another process has just changed it. */
const TRIES_MAX = 8;
/** The ending of a note's second name. */
const FREEING = "~";

export function keysDir({ dir }: Pick<Trays, "dir">): string {
  return pathIn(dir, ".keys");
}

export function keyNotePath(trays: Pick<Trays, "dir">, key: string): string {
  const hash = createHash("sha256").update(key, "utf8").digest("hex").slice(0, HASH_CHARS);
  return pathIn(keysDir(trays), hash);
}

/**
 * Makes the task the holder of its key, unless another task is.
 * @returns the id of that other task; undefined when this task is the holder now
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
  const why = "EAGAIN: other processes keep giving its dedup_key to other tasks";
  throw Object.assign(new Error(why), { code: "EAGAIN" });
}

/** Removes the second names of notes whose process died while it freed a key. Call it while no other process frees a key. */
export function finishKeys(trays: Trays): void {
  const dir = keysDir(trays);
  if (trays.storage.look(dir) === undefined) return;
  for (const name of trays.storage.list(dir))
    if (name.endsWith(FREEING)) unlinkIfThere(trays, pathIn(dir, name));
}

/** Removes the note if no window can reach back to it and its task has ended. Call it only for old notes. @returns whether it did */
export function dropOldKey(trays: Trays, file: string): boolean {
  // Another process may be freeing the key: without the second name a third process could free it, too. The next start removes
  // leftovers.
  if (file.endsWith(FREEING)) return false;
  const path = pathIn(keysDir(trays), file);
  const note = readIfThere(trays, path);
  const holder = note === undefined ? undefined : readHolder(note);
  if (note === undefined) return false;
  if (holder !== undefined && counts(trays, holder, DEDUP_WINDOW_MS_MAX)) return false;
  free(trays, path, note);
  return true;
}

/** True if this holder keeps the key from others: its task waits or runs, or became the holder within the window and has not failed. */
function counts(trays: Trays, { id, sinceMs }: Holder, windowMs: number): boolean {
  const ageMs = trays.clock.wallMs() - sinceMs;
  // A time in the future means that the clock was set back: the note then counts only while its task waits or runs.
  if (ageMs >= 0 && ageMs < windowMs && !hasErrorRecord(trays, id)) return true;
  // One look may miss a task that goes back into the inbox; two looks do not.
  return isInFlight(trays, id, ["bad"]) || isInFlight(trays, id, ["bad"]);
}

/** Undefined for a note whose text a power cut has lost: its task was not accepted yet. */
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

/**
 * Frees the key if its note is still the judged one. A crash in between leaves the second name, with or without the first: see
 * `finishKeys`.
 */
function free(trays: Trays, path: string, judged: Buffer): void {
  const second = path + FREEING;
  if (!secondNamed(trays, path, second)) return;
  if (readIfThere(trays, second)?.equals(judged) === true) unlinkIfThere(trays, path);
  unlinkIfThere(trays, second);
}

/** False when another process is freeing the key, or has freed it. */
function secondNamed(trays: Trays, path: string, second: string): boolean {
  try {
    return linked(trays, path, second);
  } catch (error) {
    if (isGone(trays, error, path)) return false;
    throw error;
  }
}
