/** The records of the two journals: lifecycle events and lease changes. Shapes only. */

export type LifecycleEventName =
  | "selected"
  | "assigned"
  | "started"
  | "completed"
  | "failed"
  | "lines_failed"
  | "retry_scheduled"
  | "released"
  | "held"
  | "reclaimed"
  | "fenced"
  | "conflict"
  | "cancelled"
  | "quarantined"
  | "duplicate"
  | "blocked"
  | "progress"
  | "phase_started"
  | "phase_finished"
  | "escalated"
  | "roadmap_loaded"
  | "roadmap_refused"
  | "intake_stopped"
  | "intake_resumed"
  | "paused"
  | "resumed"
  | "workers_changed"
  | "replan_started"
  | "replan_finished"
  | "worker_started"
  | "worker_stopped"
  | "records_dropped"
  | "supervisor_started"
  | "supervisor_stopped";

/** What an event is about. Empty strings where it is about no task. */
export interface EventSubject {
  task_id: string;
  agent_id: string;
  /** From 1; 0 when there was none. */
  attempt: number;
  /** In full: `<s>.<n>.<owner>`; of `selected` what is known by then, `<s>.<n>`. */
  lease: string;
}

/** What a line of a journal says about a lease. */
interface LeaseMembers {
  /** `<s>.<n>`: the same in all lines of a run, from `selected` on; "" where it is about no task. */
  lease: string;
  /** Who held it; "" where it has no owner. With `lease`, and a dot between them, it is the lease in full. */
  owner: string;
  /** `<s>`: the acceptance, the same for all runs of it; "" where it is about no task. */
  submission: string;
}

export interface LifecycleEvent extends Omit<EventSubject, "lease">, LeaseMembers {
  event: LifecycleEventName;
  /** ISO 8601. */
  timestamp: string;
  /** Epoch milliseconds. */
  t: number;
  /** Counts the records of one process. */
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
  /** ISO 8601; a heartbeat moves it on. */
  expires_at: string;
  worker: string;
  pid: number;
  attempt: number;
  /** ISO 8601. */
  ts: string;
  /** Epoch milliseconds. */
  t: number;
}
