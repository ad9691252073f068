/** Gives up a task that keeps failing in the same way, even if it has attempts left. Pure. */
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { SessionDocument } from "./session-file.ts";

/** A task is given up after this many runs in a row. */
const SAME_MAX = 3;

/**
 * Counts how a run of a task ended, in the document of its session.
 * @param isLast true when the task has no attempt left in any case
 * @returns the outcome. It allows no retry when the same failure came too often
 */
export function countFailure(
  session: SessionDocument,
  outcome: AttemptOutcome,
  isLast: boolean,
): AttemptOutcome {
  if (outcome.kind !== "failed") {
    if (outcome.kind === "completed") delete session.failing;
    return outcome;
  }
  const how = `${outcome.failure} ${outcome.code}`;
  const count = session.failing?.how === how ? session.failing.count + 1 : 1;
  session.failing = { how, count };
  if (count < SAME_MAX || isLast || !outcome.canRetry) return outcome;
  const message = `${outcome.message} (${count} runs in a row failed in this way: it is not tried again)`;
  return { ...outcome, message, canRetry: false };
}
