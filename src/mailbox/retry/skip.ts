/**
 * Skip: settles a task in the inbox whose dependency has failed, or whose key another task holds. In the second case the last
 * step is left out.
 *
 *   claim    inbox/<id>.json → ~w-<skipper>   only one process has it now        → recovery puts it back into the inbox
 *   settle   as in settle.ts                  the record names the failure       → recovery rolls forward
 *   check    has the dependency failed still? if not: retry, before the marker goes → recovery checks, too
 *
 * A retry first takes away the record of the dependency, and then looks for skipped tasks. So when a skip and a retry run at the
 * same time, one of them sees the other.
 */
import { type DecodedTask, decodeTask } from "../../codec/task-codec.ts";
import { readDependencies, type Skip, skipText } from "../../core/dependencies.ts";
import {
  ErrInvalidTask,
  ErrInvalidTransition,
  ErrTaskExists,
  ErrTaskNotFound,
} from "../../core/errors.ts";
import { foldId } from "../../core/names.ts";
import { duplicateText } from "../../core/skipped.ts";
import { type Claim, claimFromInbox, newSubmission, readBytes } from "../claim/claim.ts";
import type { Trays } from "../files/trays.ts";
import { hasErrorRecord } from "../find/failures.ts";
import { newDeadLetter } from "../settle/dead-letter.ts";
import type { Settlement } from "../settle/settle.ts";
import { retry } from "./retry.ts";

/** Why a task is not run: another task holds its key. */
export interface Duplicate {
  key: string;
  of: string;
}

/** The agent in the records of skipped tasks. */
export const NO_AGENT = "none";

/**
 * Claims a task in the inbox whose file had one name when it was judged. If it has a second name by now, its ticket is closed
 * when the claim is read.
 * @param skipper see `skippingSequence`
 * @returns undefined when another process moved it
 */
export function claimToSkip(trays: Trays, id: string, skipper: string): Claim | undefined {
  return claimFromInbox(trays, id, 1, skipper, newSubmission(trays.clock, id, 1));
}

/**
 * The settlement of a claimed task, for `settleAll`. Undefined when the task does not depend on the failed one: its file may have
 * been replaced since the look. The caller then puts it back with `requeue`.
 * @throws a system error
 */
export function skipClaimed(trays: Trays, claim: Claim, why: Skip): Settlement | undefined {
  const decoded = readTask(trays, claim);
  return decoded !== undefined && isAfter(decoded, why.cause)
    ? newSkip(trays, claim, why, decoded)
    : undefined;
}

/**
 * The settlement of a claimed task whose key another task holds. Undefined when its file has another key by now: the caller then
 * puts it back.
 * @throws a system error
 */
export function skipDuplicate(
  trays: Trays,
  claim: Claim,
  { key, of }: Duplicate,
): Settlement | undefined {
  const decoded = readTask(trays, claim);
  if (decoded?.task.dedup_key !== key) return undefined;
  const facts = {
    error: duplicateText(of),
    code: "ErrDuplicateKey",
    kind: "duplicate_key" as const,
    agentId: NO_AGENT,
    attempts: 0,
    lastAttemptAt: 0,
    of,
  };
  return newDeadLetter(trays, claim, facts, decoded);
}

function readTask(trays: Trays, claim: Claim): DecodedTask | undefined {
  try {
    return decodeTask(readBytes(trays, claim), claim.name.id);
  } catch (error) {
    if (error instanceof ErrInvalidTask) return undefined;
    throw error;
  }
}

function isAfter({ task }: DecodedTask, cause: string): boolean {
  return readDependencies(task.metadata?.dependencies).some(
    ({ id, required }) => required === "done" && foldId(id) === foldId(cause),
  );
}

function newSkip(trays: Trays, claim: Claim, why: Skip, decoded: DecodedTask): Settlement {
  const facts = {
    error: skipText(why),
    code: "ErrDependencyFailed",
    kind: "dependency_failed" as const,
    agentId: NO_AGENT,
    attempts: 0,
    lastAttemptAt: 0,
    skip: why,
  };
  return newDeadLetter(trays, claim, facts, decoded);
}

/**
 * Puts a task that was just skipped back into the inbox if its dependency no longer counts as failed. Call it when the record is
 * visible. The marker must stay until this resolves: a power cut may bring the record back.
 * @param isFailed whether the dependency still has its error record; look this up only when the task's record is visible
 * @returns undefined when the task stays skipped
 */
export function recheckSkip(
  trays: Trays,
  id: string,
  cause: string,
  isFailed = hasErrorRecord(trays, cause),
): Promise<void> | undefined {
  return isFailed ? undefined : putBack(trays, id);
}

async function putBack(trays: Trays, id: string): Promise<void> {
  try {
    await retry(trays, id);
  } catch (error) {
    // The dependency has just failed again, or the task was put back with it.
    const isSettled = [ErrInvalidTransition, ErrTaskExists, ErrTaskNotFound].some(
      (kind) => error instanceof kind,
    );
    if (!isSettled) throw error;
  }
}
