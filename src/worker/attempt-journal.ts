/** Writes the journal lines of a worker's attempts: the events of each, and the changes of its lease. */
import {
  type Effort,
  recordClaimed,
  recordFenced,
  recordHeld,
  recordPutBack,
  recordReleased,
} from "../journal/attempts.ts";
import { recordConflict, recordSettled } from "../journal/settled.ts";
import type { Telemetry } from "../journal/telemetry.ts";
import type { Attempt } from "./runner.ts";

export class AttemptJournal {
  constructor(private readonly telemetry: Telemetry) {}

  /** Writes the noted lines, with one write for each journal. False when the disk refused: a later flush writes them. */
  flush(): boolean {
    return this.telemetry.flush();
  }

  close(): void {
    this.telemetry.close();
  }

  noteClaimed(attempt: Attempt): void {
    const { subject, startedWallMs, rates, isUnbegun } = attempt;
    recordClaimed(this.telemetry, subject, startedWallMs, {
      hasBegun: isUnbegun !== true,
      details: { ...(rates === undefined ? {} : { rates }), ...traceOf(attempt) },
    });
  }

  noteProgress(attempt: Attempt, details: Record<string, unknown>): void {
    this.telemetry.event("progress", attempt.subject, { details });
  }

  notePhase(
    attempt: Attempt,
    event: "phase_started" | "phase_finished",
    details: Record<string, unknown>,
  ): void {
    this.telemetry.event(event, attempt.subject, details);
  }

  /** @param mayBeRecorded another process may have written these lines */
  noteSettled(attempt: Attempt, mayBeRecorded: boolean | undefined): void {
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
    recordSettled(this.telemetry, attempt.subject, details, mayBeRecorded);
  }

  /** @param recordAs path of its record, relative to the mailbox */
  noteConflict(attempt: Attempt, recordAs: string): void {
    recordConflict(this.telemetry, attempt.subject, recordAs);
    this.noteReleased(attempt);
  }

  /** Notes that the task waits again in `processing/`. @param nextAttempt number of its next run; @param notBeforeMs wall ms */
  notePutBack(
    attempt: Attempt,
    event: "retry_scheduled" | "released",
    delayMs: number,
    notBeforeMs: number,
    nextAttempt: number,
  ): void {
    const { outcome, subject, startedWallMs } = attempt;
    const error = outcome?.kind === "completed" ? null : outcome?.message;
    const kind = outcome?.kind === "failed" ? outcome.failure : undefined;
    const effort = effortOf(attempt);
    const details = { event, error, delayMs, notBeforeMs, nextAttempt, kind, effort };
    recordPutBack(this.telemetry, subject, startedWallMs, details);
  }

  /** Notes that the task waits for a gate. */
  noteHeld(attempt: Attempt, gate: string): void {
    const { outcome, subject, startedWallMs } = attempt;
    const error = outcome?.kind === "deferred" ? outcome.message : null;
    recordHeld(this.telemetry, subject, startedWallMs, { gate, error, effort: effortOf(attempt) });
  }

  /** Notes that the task waits again in the inbox. */
  noteRequeued(attempt: Attempt): void {
    this.telemetry.event("cancelled", attempt.subject, {
      error: "cancelled; it waits again",
      ...effortOf(attempt),
    });
    this.noteReleased(attempt);
  }

  /** Notes that another process believed us dead and took the lease. Nothing is changed. */
  noteFenced(attempt: Attempt): void {
    recordFenced(this.telemetry, attempt.subject);
  }

  private noteReleased(attempt: Attempt): void {
    recordReleased(this.telemetry, attempt.subject, attempt.startedWallMs);
  }
}

/** Undefined for a run that has not begun. */
function effortOf({ isUnbegun, durationMs, usage }: Attempt): Effort | undefined {
  return isUnbegun === true ? undefined : { duration_ms: durationMs, ...usage };
}

function traceOf({ decoded }: Attempt): { traceparent?: string } {
  const traceparent = decoded?.task.traceparent;
  return traceparent === undefined ? NO_TRACE : { traceparent };
}

const NO_TRACE = {};
