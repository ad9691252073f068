/** Writes the journal lines of a settled attempt. Workers, recovery and the library all use it. */
import { type BatchCounts, failedLinesText } from "../core/batch.ts";
import type { Skip } from "../core/dependencies.ts";
import type { EventSubject, LifecycleEventName } from "../core/events.ts";
import type { RunUsage } from "../core/run-usage.ts";
import { hasRecord } from "./lookup.ts";
import type { Telemetry } from "./telemetry.ts";

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
  const linesFailed = isCompleted ? failedLinesText(batch) : undefined;
  if (linesFailed !== undefined) tell("lines_failed", { error: linesFailed, batch });
  const status = isCompleted ? "completed" : "failed";
  const end: Record<string, unknown> = { status, duration_ms: durationMs };
  if (usage !== undefined) Object.assign(end, usage);
  if (!isCompleted) end["kind"] = kind;
  if (batch !== undefined) end["batch"] = batch;
  if (traceparent !== undefined) end["traceparent"] = traceparent;
  telemetry.event("completed", subject, end);
}
