/** Writes the journal lines of an attempt, from its claim to its end. Workers and the library both use it. */
import type { EventSubject } from "../core/events.ts";
import type { RunUsage } from "../core/run-usage.ts";
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
