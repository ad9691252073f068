/** The journal lines of a settled attempt, written alike by workers and by recovery. */
import { type BatchCounts, failedLinesText } from "../core/batch.ts";
import type { EventSubject } from "../core/events.ts";
import { hasRecord } from "./lookup.ts";
import type { Telemetry } from "./telemetry.ts";

export interface SettledDetails {
  isCompleted: boolean;
  acquiredAtMs: number;
  pid: number;
  durationMs: number | null;
  error: string | null;
  kind: string | null;
  /** Of a batch. */
  batch?: BatchCounts;
}

/**
 * `failed` (when it did) and `completed`: every finished task has a `completed`, whose `status` says how it went.
 * @param mayBeRecorded another process may have written them: each line is looked for, and written once
 */
export function recordSettled(
  telemetry: Telemetry,
  subject: EventSubject,
  details: SettledDetails,
  mayBeRecorded = false,
): void {
  const isRecorded = (journal: "events" | "leases", what: string): boolean =>
    mayBeRecorded && hasRecord(telemetry[journal].path, subject.lease, what);
  if (!isRecorded("events", "completed")) recordEnd(telemetry, subject, details);
  if (!isRecorded("leases", "released"))
    telemetry.lease("released", subject, details.acquiredAtMs, details.pid);
}

/** Something else stood at the final name of a record. @param recordAs where the record is, relative to the mailbox */
export function recordConflict(
  telemetry: Telemetry,
  subject: EventSubject,
  recordAs: string,
): void {
  telemetry.event("conflict", subject, {
    error: `something else stands at the final name of the record, and stays; the record is kept as ${recordAs}`,
    kept_as: recordAs,
  });
}

function recordEnd(telemetry: Telemetry, subject: EventSubject, details: SettledDetails): void {
  const { isCompleted, error, kind, durationMs } = details;
  if (!isCompleted)
    telemetry.event(kind === "cancelled" ? "cancelled" : "failed", subject, { error, kind });
  const linesFailed = isCompleted ? failedLinesText(details.batch) : undefined;
  if (linesFailed !== undefined)
    telemetry.event("lines_failed", subject, { error: linesFailed, batch: details.batch });
  telemetry.event("completed", subject, {
    status: isCompleted ? "completed" : "failed",
    duration_ms: durationMs,
    ...(details.batch === undefined ? {} : { batch: details.batch }),
  });
}
