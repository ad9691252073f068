/** Accept, claim, look after and give up a lease. Each is one rename: the process that loses the race sees ENOENT, and nothing else. */
import { type DecodedTask, decodeTask } from "../codec/task-codec.ts";
import type { Clock } from "../core/clock.ts";
import { ErrInvalidTask, systemCode } from "../core/errors.ts";
import { TASK_BYTES_MAX } from "../core/limits.ts";
import {
  formatName,
  inboxName,
  NONCE_RANDOM_CHARS,
  nextAttempt,
  nonceOf,
  type ProcessingName,
  withStage,
} from "../core/names.ts";
import { explainBadClaim } from "./dropped-file.ts";
import { randomToken } from "./random.ts";
import { moved } from "./steps.ts";
import { pathIn, type Trays } from "./trays.ts";

/** A task held by a lease. The file's name is the lease; a process that can rename that name may settle. */
export interface Claim {
  name: ProcessingName;
  file: string;
  path: string;
}

const TOKEN_CHARS = 8;

export function claimAt(trays: Trays, name: ProcessingName): Claim {
  const file = formatName(name);
  return { name, file, path: pathIn(trays.processing, file) };
}

/**
 * The name a task will be accepted under. Made before the move, so that the event can be written first.
 * @param attempt the number the first run gets (from 1)
 */
export function newSubmission(
  clock: Clock,
  id: string,
  attempt: number,
  isBatch = false,
): ProcessingName {
  const submission = nonceOf(randomToken(NONCE_RANDOM_CHARS), clock.wallMs());
  const name: ProcessingName = { id, submission, attempt, stage: "ready", token: "" };
  return isBatch ? { ...name, isBatch } : name;
}

/** A name for a file on its way out of a tray: refused or only taken aside ("bad"), or to be run once more ("again"). */
export function newMarker(
  clock: Clock,
  id: string,
  stage: "bad" | "again",
  isBatch = false,
): ProcessingName {
  const name = { ...newSubmission(clock, id, 0, isBatch), stage };
  return { ...name, token: randomToken(TOKEN_CHARS) };
}

/**
 * Accepts `inbox/<id>.json`: from here on it waits for a worker. A crash leaves it in one tray or the other.
 * @returns false when another process moved the file
 */
export function accept(trays: Trays, ready: ProcessingName): boolean {
  return moved(
    trays,
    pathIn(trays.inbox, inboxName(ready)),
    pathIn(trays.processing, formatName(ready)),
  );
}

/** Accepts a foreign worker's plain claim whose lease time is over. */
export function acceptPlainClaim(trays: Trays, ready: ProcessingName): boolean {
  return moved(
    trays,
    pathIn(trays.processing, `${ready.id}.json`),
    pathIn(trays.processing, formatName(ready)),
  );
}

/** Accepts and claims in one move, for users of the library that run without a supervisor. */
export function claimFromInbox(
  trays: Trays,
  id: string,
  attempt: number,
  owner: string,
  submission: ProcessingName = newSubmission(trays.clock, id, attempt),
): Claim | undefined {
  const claim = claimAt(trays, withStage(submission, "w", owner));
  return moved(trays, pathIn(trays.inbox, inboxName(claim.name)), claim.path) ? claim : undefined;
}

/**
 * Claims an accepted task, or takes over a lease that is to be ended. Undefined when another process was faster.
 */
export function claimReady(trays: Trays, from: ProcessingName, owner: string): Claim | undefined {
  const claim = claimAt(trays, withStage(from, "w", owner));
  return moved(trays, pathIn(trays.processing, formatName(from)), claim.path) ? claim : undefined;
}

/**
 * Reads what was claimed, once, and uses only those bytes from then on: the file may have been replaced before.
 * @throws ErrInvalidTask, or a system error when the file cannot be read
 */
export function readClaim(trays: Trays, claim: Claim): DecodedTask {
  return decodeTask(readBytes(trays, claim), claim.name.id, claim.path);
}

/** The bytes of a claimed file. @throws ErrInvalidTask when it is no regular file, too large, or not of an owner who may have it run */
export function readBytes(trays: Trays, { name, path }: Claim): Buffer {
  const { facts, bytes } = trays.storage.read(path, TASK_BYTES_MAX);
  const fault = explainBadClaim(trays, name, path, facts);
  if (fault === undefined && bytes !== undefined) return bytes;
  throw new ErrInvalidTask(fault ?? "the file cannot be read", {
    id: name.id,
    path,
    phase: "claim",
  });
}

/** Whether the lease is still ours. A missing directory is no evidence: then the answer is true. */
export function isHeld(trays: Trays, claim: Claim): boolean {
  if (trays.storage.look(claim.path) !== undefined) return true;
  return trays.storage.look(trays.processing) === undefined;
}

/** Shows observers that the lease is alive. False when it was taken. */
export function renewClaim(trays: Trays, claim: Claim): boolean {
  try {
    trays.storage.touch(claim.path, trays.clock.wallMs());
    return true;
  } catch (error) {
    // Only its owner sets the times of a file: one of another uid stays silent, and its lease is respected until its time.
    if (systemCode(error) === "EPERM") return isHeld(trays, claim);
    if (systemCode(error) !== "ENOENT") throw error;
    return trays.storage.look(trays.processing) === undefined;
  }
}

/**
 * Puts a claimed task back for another run, not before `delayMs` from now.
 * @param usesAttempt false for a release: the attempt does not count
 * @returns the name it waits under, or undefined when the lease was lost
 * @throws a system error: EPERM when there is a delay, and the file belongs to another uid than we do
 */
export function putBack(
  trays: Trays,
  claim: Claim,
  delayMs: number,
  usesAttempt: boolean,
): ProcessingName | undefined {
  const next = usesAttempt ? nextAttempt(claim.name) : withStage(claim.name, "ready");
  return moveBack(trays, claim, next, delayMs);
}

/**
 * Puts a claimed task back to wait for a gate. The attempt does not count.
 * @param gate a token such as `quota-default`
 * @returns the name it waits under, or undefined when the lease was lost
 */
export function hold(trays: Trays, claim: Claim, gate: string): ProcessingName | undefined {
  return moveBack(trays, claim, withStage(claim.name, "hold", gate), 0);
}

/**
 * The gate is open: a worker may claim the task.
 * @returns its new name, or undefined when another process moved it
 */
export function letGo(trays: Trays, held: ProcessingName): ProcessingName | undefined {
  const next = withStage(held, "ready");
  return moved(trays, claimAt(trays, held).path, claimAt(trays, next).path) ? next : undefined;
}

function moveBack(
  trays: Trays,
  claim: Claim,
  next: ProcessingName,
  delayMs: number,
): ProcessingName | undefined {
  // The waiting time is the file's own mtime: set before the move, because the move keeps it. Dying in between leaves a
  // claimed file with an odd mtime, which is not compared with a clock.
  try {
    trays.storage.touch(claim.path, trays.clock.wallMs() + delayMs);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT") return undefined;
    // A file of another uid cannot be told to wait, only be put back when its time has come.
    if (code !== "EPERM" || delayMs > 0) throw error;
  }
  return moved(trays, claim.path, pathIn(trays.processing, formatName(next))) ? next : undefined;
}
