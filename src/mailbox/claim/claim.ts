/** Accepts a task; claims, renews and gives up a lease. Each step is one rename. A process that loses a race gets ENOENT. */
import { type DecodedTask, decodeTask } from "../../codec/task-codec.ts";
import type { Clock } from "../../core/clock.ts";
import { ErrInvalidTask, systemCode } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import {
  formatName,
  inboxName,
  NONCE_RANDOM_CHARS,
  nextAttempt,
  nonceOf,
  type ProcessingName,
  withStage,
} from "../../core/names.ts";
import { explainBadClaim } from "../files/dropped-file.ts";
import { randomToken } from "../files/random.ts";
import { isGone, moved } from "../files/steps.ts";
import { closeTickets } from "../files/tickets.ts";
import { pathIn, type Trays } from "../files/trays.ts";

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
 * The name under which a task will be accepted. It is made before the move, so that the event can be written first.
 * @param attempt number of the first run (from 1)
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

/**
 * A new name in `processing/` for a file that leaves a tray: stage "bad" if it is refused or taken out to be compared, "again"
 * for a retry.
 */
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
 * Accepts `inbox/<id>.json`: the task then waits for a worker. After a crash it is in one tray or the other.
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

/** Accepts and claims in one move, for users of the library who run without a supervisor. */
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

/** Claims an accepted task, or takes over a lease in order to end it. Undefined when another process was faster. */
export function claimReady(trays: Trays, from: ProcessingName, owner: string): Claim | undefined {
  const claim = claimAt(trays, withStage(from, "w", owner));
  return moved(trays, pathIn(trays.processing, formatName(from)), claim.path) ? claim : undefined;
}

/**
 * Reads the claimed file once. The caller uses only these bytes, because the file may have been replaced before the claim.
 * @throws ErrInvalidTask, or a system error when the file cannot be read
 */
export function readClaim(trays: Trays, claim: Claim): DecodedTask {
  return decodeTask(readBytes(trays, claim), claim.name.id, claim.path);
}

/** The task, or undefined when the file holds none. A disk error proves nothing, so it is thrown. */
export function readClaimIfThere(trays: Trays, claim: Claim): DecodedTask | undefined {
  if (claim.name.isBatch === true) return undefined;
  try {
    return readClaim(trays, claim);
  } catch (error) {
    if (error instanceof ErrInvalidTask || systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * The bytes of a claimed file. @throws ErrInvalidTask when it is not a regular file, is too large, or belongs to a user whose
 * files are not run
 */
export function readBytes(trays: Trays, { name, path }: Claim): Buffer {
  const { facts, bytes } = trays.storage.read(path, TASK_BYTES_MAX);
  // The file had one name when it was judged, but may have been replaced since.
  if (facts.nlink > 1) closeTickets(trays, name.id, facts.ino);
  const fault = explainBadClaim(trays, name, path, facts);
  if (fault === undefined && bytes !== undefined) return bytes;
  throw new ErrInvalidTask(fault ?? "the file cannot be read", {
    id: name.id,
    path,
    phase: "claim",
  });
}

/**
 * True while we still hold the lease. A missing directory proves nothing, so the answer is then true. The directory may come back
 * between two looks, so the last look is at the file.
 */
export function isHeld({ processing, storage }: Trays, claim: Claim): boolean {
  const isThere = (): boolean => storage.look(claim.path) !== undefined;
  return isThere() || storage.look(processing) === undefined || isThere();
}

/** Shows observers that the lease is alive. False when another process took it. */
export function renewClaim(trays: Trays, claim: Claim): boolean {
  try {
    trays.storage.touch(claim.path, trays.clock.wallMs());
    return true;
  } catch (error) {
    // Only the owner of a file may set its times. For a file of another user we cannot renew the lease; others respect it until it
    // expires.
    const code = systemCode(error);
    if (code !== "EPERM" && code !== "ENOENT") throw error;
    return isHeld(trays, claim);
  }
}

/**
 * Puts a claimed task back for another run, which starts after `delayMs` at the earliest.
 * @param usesAttempt false for a release: the attempt does not count
 * @returns the name under which the task waits, or undefined when the lease was lost
 * @throws a system error: EPERM when there is a delay and the file belongs to another user
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
 * @returns the name under which the task waits, or undefined when the lease was lost
 */
export function hold(trays: Trays, claim: Claim, gate: string): ProcessingName | undefined {
  return moveBack(trays, claim, withStage(claim.name, "hold", gate), 0);
}

/**
 * Releases a task that waited for a gate: a worker may claim it now.
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
  // The file's mtime says until when the task waits. The time is set before the move, and the move keeps it. A crash in between
  // leaves a claimed file with an unusual mtime. That is harmless, because it is not compared with a clock.
  try {
    trays.storage.touch(claim.path, trays.clock.wallMs() + delayMs);
  } catch (error) {
    if (isGone(trays, error, claim.path)) return undefined;
    const code = systemCode(error);
    // We cannot set the time of another user's file. Such a file can only be put back once its delay is over.
    if (code !== "EPERM" || delayMs > 0) throw error;
  }
  return moved(trays, claim.path, pathIn(trays.processing, formatName(next))) ? next : undefined;
}
