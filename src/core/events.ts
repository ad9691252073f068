/** The shapes of the records in the two journals: lifecycle events and lease changes. */

export const LIFECYCLE_EVENTS = [
  "selected",
  "assigned",
  "started",
  "completed",
  "failed",
  "lines_failed",
  "retry_scheduled",
  "released",
  "held",
  "reclaimed",
  "fenced",
  "conflict",
  "cancelled",
  "skipped",
  "quarantined",
  "duplicate",
  "blocked",
  "progress",
  "phase_started",
  "phase_finished",
  "escalated",
  "roadmap_loaded",
  "roadmap_refused",
  "intake_stopped",
  "intake_resumed",
  "paused",
  "resumed",
  "workers_changed",
  "limits_changed",
  "replan_started",
  "replan_finished",
  "worker_started",
  "worker_stopped",
  "records_dropped",
  "schedule_skipped",
  "supervisor_started",
  "supervisor_stopped",
] as const;
export type LifecycleEventName = (typeof LIFECYCLE_EVENTS)[number];

/** What an event is about. The strings are empty when it is about no task. */
export interface EventSubject {
  task_id: string;
  agent_id: string;
  /** From 1; 0 when there was no attempt. */
  attempt: number;
  /** The whole lease, `<s>.<n>.<owner>`. The event `selected` has no owner yet: `<s>.<n>`. */
  lease: string;
  /** The group of the task, if it has one and the process that writes has read the task. */
  group?: string | undefined;
}

/** The fields of a journal line that identify a lease. */
interface LeaseMembers {
  /** `<s>.<n>`: the same in all lines of one run, from `selected` on; "" when the line is about no task. */
  lease: string;
  /** The owner of the lease; "" when it has no owner. The whole lease is `<lease>.<owner>`. */
  owner: string;
  /** `<s>`: the same for all runs of one submission; "" when the line is about no task. */
  submission: string;
}

export interface LifecycleEvent extends Omit<EventSubject, "lease">, LeaseMembers {
  event: LifecycleEventName;
  /** ISO 8601. */
  timestamp: string;
  /** Epoch milliseconds. */
  t: number;
  /** Number of the record among those that this process wrote. */
  seq: number;
  worker: string;
  [detail: string]: unknown;
}

export type LeaseStatus = "active" | "released" | "expired";

export interface LeaseRecord extends LeaseMembers {
  task_id: string;
  agent_id: string;
  status: LeaseStatus;
  /** ISO 8601. */
  acquired_at: string;
  /** ISO 8601; each heartbeat makes it later. */
  expires_at: string;
  worker: string;
  pid: number;
  attempt: number;
  /** ISO 8601. */
  ts: string;
  /** Epoch milliseconds. */
  t: number;
}
