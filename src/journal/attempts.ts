/** Writes the journal lines of an attempt, from its claim to its end. Workers, recovery and the library all use it. */
import { type BatchCounts, failedLinesText } from "../core/batch.ts";
import type { Skip } from "../core/dependencies.ts";
import type { EventSubject, LifecycleEventName } from "../core/events.ts";
import type { RunUsage } from "../core/run-usage.ts";
import { hasRecord } from "./lookup.ts";
import type { Telemetry } from "./telemetry.ts";

const BEGUN = { hasBegun: true, details: {} };

/** @param acquiredAtMs epoch ms @param start `hasBegun` is false for a task that waits again at once */
export function recordClaimed(
  telemetry: Telemetry,
  subject: EventSubject,
  acquiredAtMs: number,
  start: { hasBegun: boolean; details: Record<string, unknown> } = BEGUN,
): void {
  telemetry.lease("active", subject, acquiredAtMs, process.pid);
  telemetry.event("assigned", subject);
  if (start.hasBegun) telemetry.event("started", subject, start.details);
}

/** Called when the task waits again, in `inbox/` or `processing/`. */
export function recordReleased(
  telemetry: Telemetry,
  subject: EventSubject,
  acquiredAtMs: number,
): void {
  telemetry.lease("released", subject, acquiredAtMs, process.pid);
}

/** The effort of a run that is not the last run of its task. */
export type Effort = RunUsage & { duration_ms: number };

export interface PutBackDetails {
  event: "retry_scheduled" | "released";
  error: string | null | undefined;
  delayMs: number;
  /** Epoch ms. */
  notBeforeMs: number;
  nextAttempt: number;
  /** How the run failed; undefined when it did not fail, or the library does not know. */
  kind?: string | undefined;
  effort?: Effort | undefined;
}

/** Called when the task waits again in `processing/`. */
export function recordPutBack(
  telemetry: Telemetry,
  subject: EventSubject,
  acquiredAtMs: number,
  details: PutBackDetails,
): void {
  const { event, error, delayMs, notBeforeMs, nextAttempt, kind, effort } = details;
  telemetry.event(event, subject, {
    error,
    kind,
    delay_ms: delayMs,
    not_before: new Date(notBeforeMs).toISOString(),
    next_attempt: nextAttempt,
    ...effort,
  });
  recordReleased(telemetry, subject, acquiredAtMs);
}

/** Called when the task waits in `processing/` for a gate. */
export function recordHeld(
  telemetry: Telemetry,
  subject: EventSubject,
  acquiredAtMs: number,
  { effort, ...details }: { gate: string; error: string | null; effort?: Effort | undefined },
): void {
  telemetry.event("held", subject, { ...details, ...effort });
  recordReleased(telemetry, subject, acquiredAtMs);
}

/** Called when recovery has taken the task back from its owner. */
export function recordReclaimed(
  telemetry: Telemetry,
  subject: EventSubject,
  details: { reason: "dead" | "memory" | "silent"; nextAttempt: number; hasBegun: boolean },
): void {
  const { reason, nextAttempt, hasBegun } = details;
  telemetry.event("reclaimed", subject, {
    reason,
    next_attempt: nextAttempt,
    has_begun: hasBegun,
  });
  telemetry.lease("expired", subject);
}

/** Called when another process has taken the lease, because it judged the owner dead. This attempt changed nothing. */
export function recordFenced(telemetry: Telemetry, subject: EventSubject): void {
  telemetry.event("fenced", subject, {
    error: "the lease was taken over; this attempt's work is dropped",
  });
}

export interface SettledDetails {
  isCompleted: boolean;
  acquiredAtMs: number;
  pid: number;
  durationMs: number | null;
  /** What the run has used. */
  usage?: RunUsage;
  error: string | null;
  kind: string | null;
  /** The counts of a batch. */
  batch?: BatchCounts;
  /** Why it was skipped. */
  skip?: Skip | undefined;
  /** The task that holds its key, if this task was skipped for that reason. */
  of?: string | undefined;
  /** The trace of the task. */
  traceparent?: string;
}

/**
 * Writes the event `completed`, whose `status` says how the task ended; before it `failed`, `cancelled` or `skipped`, if
 * the task failed.
 * @param mayBeRecorded true when another process may have written these lines; then only missing lines are written
 */
export function recordSettled(
  telemetry: Telemetry,
  subject: EventSubject,
  details: SettledDetails,
  mayBeRecorded = false,
): void {
  const isRecorded = (journal: "events" | "leases", what: string): boolean =>
    mayBeRecorded && hasRecord(telemetry[journal].path, subject.lease, what);
  if (!isRecorded("events", "completed")) {
    const isTold = (event: LifecycleEventName): boolean => isRecorded("events", event);
    recordEnd(telemetry, subject, details, isTold);
  }
  if (!isRecorded("leases", "released"))
    telemetry.lease("released", subject, details.acquiredAtMs, details.pid);
}

/** Called when another file has the final name of a record. @param recordAs the record's path, relative to the mailbox */
export function recordConflict(
  telemetry: Telemetry,
  subject: EventSubject,
  recordAs: string,
): void {
  telemetry.event("conflict", subject, {
    error: `another file has the final name of the record, and stays; the record is kept as ${recordAs}`,
    kept_as: recordAs,
  });
}

/** @param isTold whether the journal has an event already: its writer may have died before the next line */
function recordEnd(
  telemetry: Telemetry,
  subject: EventSubject,
  details: SettledDetails,
  isTold: (event: LifecycleEventName) => boolean,
): void {
  const { isCompleted, error, kind, durationMs, skip, of, usage, batch, traceparent } = details;
  const tell = (event: LifecycleEventName, data: Record<string, unknown>): void => {
    if (!isTold(event)) telemetry.event(event, subject, data);
  };
  // No members after a spread: V8 makes a new hidden class for each object that gets members after its spread (4 µs each).
  if (skip !== undefined) {
    const { cause, root, depth } = skip;
    tell("skipped", { error, kind, cause, root, depth });
  } else if (of !== undefined) tell("skipped", { error, kind, of });
  else if (!isCompleted) tell(kind === "cancelled" ? "cancelled" : "failed", { error, kind });
  const linesFailed = isCompleted && batch !== undefined ? failedLinesText(batch) : undefined;
  if (linesFailed !== undefined) tell("lines_failed", { error: linesFailed, batch });
  const status = isCompleted ? "completed" : "failed";
  const end: Record<string, unknown> = { status, duration_ms: durationMs };
  if (usage !== undefined) Object.assign(end, usage);
  if (!isCompleted) end["kind"] = kind;
  if (batch !== undefined) end["batch"] = batch;
  if (traceparent !== undefined) end["traceparent"] = traceparent;
  telemetry.event("completed", subject, end);
}
