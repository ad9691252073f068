/**
 * Step "settle" of an attempt: ends it for good, or gives its task back, and notes the journal lines of that. If the disk refuses, the
 * attempt is kept in memory, with its lease, and tried again.
 */
import { systemCode } from "../core/errors.ts";
import { formatName, type ProcessingName } from "../core/names.ts";
import {
  type Effort,
  type PutBackDetails,
  recordConflict,
  recordFenced,
  recordHeld,
  recordPutBack,
  recordReleased,
  recordSettled,
} from "../journal/attempts.ts";
import type { Telemetry } from "../journal/telemetry.ts";
import { hold, putBack } from "../mailbox/claim/claim.ts";
import { requeue } from "../mailbox/claim/requeue.ts";
import type { Trays } from "../mailbox/files/trays.ts";
import { type Settlement, settleAll } from "../mailbox/settle/settle.ts";
import { traceOf } from "./attempt.ts";
import type { ReturnedNotice, SettledNotice } from "./protocol.ts";
import type { Attempt } from "./runner.ts";

/** What the settling of an attempt has come to. */
export type AttemptEnd =
  | { isOver: true; settled?: SettledNotice; returned?: ReturnedNotice }
  /** The disk has refused it. */
  | { isOver: false; error: unknown };

/** Another process believed us dead and took the lease, or the task waits in the inbox again: there is nothing to tell. */
const OVER: AttemptEnd = { isOver: true };

/**
 * Settles attempts whose tasks end. For durability `process` all of it happens before this returns, unless callbacks follow from one
 * of them. Then `endOf` says what has become of each.
 * @param claim called between publishing and cleaning up, so that one write of journal lines serves both. It is not called when
 *   nothing is published, and is called again for a settlement that began anew
 */
export function settleGroup(
  trays: Trays,
  telemetry: Telemetry,
  group: ReadonlyMap<Settlement, Attempt>,
  claim = (): void => {},
): Promise<void> {
  return settleAll(trays, [...group.keys()], (published) => {
    for (const settlement of published) {
      const attempt = group.get(settlement);
      if (attempt !== undefined) noteSettled(telemetry, attempt, settlement.mayBeRecorded);
    }
    claim();
    telemetry.flush();
  });
}

/** What has become of an attempt after `settleGroup`. */
export function endOf(telemetry: Telemetry, attempt: Attempt, settlement: Settlement): AttemptEnd {
  const { error, recordAs, status } = settlement;
  if (error !== undefined) return { isOver: false, error };
  if (settlement.outcome === "fenced") return dropFenced(telemetry, attempt);
  const { subject, startedWallMs, counts } = attempt;
  if (recordAs !== undefined) {
    recordConflict(telemetry, subject, recordAs);
    recordReleased(telemetry, subject, startedWallMs);
  }
  const settled = {
    id: subject.task_id,
    isCompleted: status === "completed",
    ...(counts === undefined ? {} : { batch: counts }),
    ...(recordAs === undefined ? {} : { recordAs }),
  };
  return { isOver: true, settled };
}

/** Drops an attempt that lost its lease. Nothing is changed: the process that has the lease is responsible for the task. */
export function dropFenced(telemetry: Telemetry, { subject }: Attempt): AttemptEnd {
  recordFenced(telemetry, subject);
  return OVER;
}

/** Gives a task back after a retry, release or hold: one rename, then the journal lines. */
export function giveBack(trays: Trays, telemetry: Telemetry, attempt: Attempt): AttemptEnd {
  const { claim, outcome, decision } = attempt;
  if (decision === undefined || decision.action === "complete" || decision.action === "fail")
    throw new Error("nothing to give back");
  let next: ProcessingName | undefined;
  let isInInbox = false;
  try {
    if (decision.action === "hold") next = hold(trays, claim, decision.gate);
    else if (outcome?.kind === "released" && outcome.message === "requeue")
      isInInbox = requeue(trays, claim);
    else {
      const waited = performance.now() - (attempt.heldSinceMs ?? Number.POSITIVE_INFINITY);
      const delayMs = waited >= decision.delayMs ? 0 : decision.delayMs;
      next = putBack(trays, claim, delayMs, decision.action === "retry");
    }
  } catch (error) {
    // We cannot set the time of another user's file: the task then waits in this process.
    if (systemCode(error) === "EPERM") attempt.heldSinceMs ??= performance.now();
    return { isOver: false, error };
  }
  if (isInInbox) return noteRequeued(telemetry, attempt);
  if (next === undefined) return dropFenced(telemetry, attempt);
  return decision.action === "hold"
    ? noteHeld(telemetry, attempt, formatName(next), decision.gate)
    : notePutBack(telemetry, attempt, next, {
        event: decision.action === "retry" ? "retry_scheduled" : "released",
        delayMs: decision.delayMs,
        notBeforeMs: trays.clock.wallMs() + decision.delayMs,
      });
}

/** The task waits again in the inbox, after `cancel` without `final`, as if it had just been dropped. */
function noteRequeued(telemetry: Telemetry, attempt: Attempt): AttemptEnd {
  const { subject, startedWallMs } = attempt;
  const error = "cancelled; it waits again";
  telemetry.event("cancelled", subject, { error, ...effortOf(attempt) });
  recordReleased(telemetry, subject, startedWallMs);
  return OVER;
}

/** The task waits for a gate. */
function noteHeld(telemetry: Telemetry, attempt: Attempt, file: string, gate: string): AttemptEnd {
  const { outcome, subject, startedWallMs } = attempt;
  const error = outcome?.kind === "deferred" ? outcome.message : null;
  recordHeld(telemetry, subject, startedWallMs, { gate, error, effort: effortOf(attempt) });
  return { isOver: true, returned: { file, delayMs: 0 } };
}

/** The task waits again in `processing/`. */
function notePutBack(
  telemetry: Telemetry,
  attempt: Attempt,
  next: ProcessingName,
  when: Pick<PutBackDetails, "event" | "delayMs" | "notBeforeMs">,
): AttemptEnd {
  const { outcome, subject, startedWallMs } = attempt;
  recordPutBack(telemetry, subject, startedWallMs, {
    ...when,
    error: outcome?.kind === "completed" ? null : outcome?.message,
    nextAttempt: next.attempt,
    kind: outcome?.kind === "failed" ? outcome.failure : undefined,
    effort: effortOf(attempt),
  });
  const isTrouble = outcome?.kind === "deferred" && outcome.isHindered === true;
  const trouble = isTrouble ? { trouble: outcome.message } : {};
  return { isOver: true, returned: { file: formatName(next), delayMs: when.delayMs, ...trouble } };
}

/** @param mayBeRecorded another process may have written these lines */
function noteSettled(
  telemetry: Telemetry,
  attempt: Attempt,
  mayBeRecorded: boolean | undefined,
): void {
  const { outcome } = attempt;
  const isFailure = outcome?.kind === "failed";
  const details = {
    isCompleted: !isFailure,
    acquiredAtMs: attempt.startedWallMs,
    pid: process.pid,
    durationMs: attempt.durationMs,
    usage: attempt.usage,
    error: isFailure ? outcome.message : null,
    kind: isFailure ? outcome.failure : null,
    ...(attempt.counts === undefined ? {} : { batch: attempt.counts }),
    ...traceOf(attempt),
  };
  recordSettled(telemetry, attempt.subject, details, mayBeRecorded);
}

/** Undefined for a run that has not begun. */
function effortOf({ isUnbegun, durationMs, usage }: Attempt): Effort | undefined {
  return isUnbegun === true ? undefined : { duration_ms: durationMs, ...usage };
}
