/** The shapes of tasks and of the records they end as. Names and units are those of the files: integer unix seconds. */
import type { BatchCounts } from "./batch.ts";

export interface TaskMetadata {
  worktree?: string;
  /** Ids of tasks or roadmap items that must have completed first. */
  dependencies?: string[];
  [key: string]: unknown;
}

/** A task as dropped into `inbox/`. Everything is optional but a body; unknown fields are kept. */
export interface Task {
  id: string;
  title?: string;
  description?: string;
  epic_id?: string;
  parent_id?: string;
  sequence_number?: number;
  type?: string;
  /** Higher first. Default 0. */
  priority?: number;
  status?: string;
  attempts?: number;
  /** N means N runs. */
  max_attempts?: number;
  last_error?: string;
  claimed_by?: string;
  claimed_at?: number;
  operator?: string;
  verdict?: string;
  verdict_reason?: string;
  test_mode?: string;
  test_scope?: string;
  test_command?: string;
  created_at?: number;
  updated_at?: number;
  metadata?: TaskMetadata;
  /** argv; no shell. */
  exec?: string[];
  /** Name of a configured agent. */
  agent?: string;
  capabilities?: string[];
  prompt?: string;
  payload?: unknown;
  cwd?: string;
  env?: Record<string, string>;
  timeout_ms?: number;
  /** Programs that must all exit with 0 for the task to be done; argv each. */
  verify?: string[][];
  /** Unix seconds; the task waits in the inbox until then. */
  not_before?: number;
  group?: string;
  dedup_key?: string;
  [key: string]: unknown;
}

/** Why an attempt or a task did not end well. */
export type FailureKind =
  | "exit"
  | "signal"
  | "timeout"
  | "spawn"
  | "invalid"
  | "cancelled"
  | "lease_expired"
  | "handler"
  | "output"
  | "verify"
  | "reported"
  | "no_result"
  | "invalid_result"
  | "auth"
  | "quota";

/** `outbox/<id>_result.json` without the task that travels inside. */
export interface ResultRecord {
  task_id: string;
  status: "completed";
  verdict: string;
  verdict_reason: string;
  output: unknown;
  duration_ms: number;
  completed_at: number;
  attempts: number;
  agent_id: string;
  lease: string;
  exit_code: number | null;
  run: string | null;
  /** Of a batch: what its lines came to. */
  batch?: BatchCounts;
}

/** `failed/<id>_error.json` without the task that travels inside. */
export interface ErrorRecord {
  task_id: string;
  status: "failed";
  error: string;
  attempts: number;
  last_attempt_at: number;
  failed_at: number;
  code: string;
  kind: FailureKind;
  agent_id: string;
  lease: string;
  exit_code: number | null;
  signal: string | null;
  run: string | null;
  /** What a node's run said, when it said something. */
  output?: unknown;
  /** Of a batch: what its lines came to, as far as it came. */
  batch?: BatchCounts;
  /** Set when a file was refused: where its bytes lie now, relative to the mailbox. */
  file?: string;
  /** The name it was dropped under. */
  dropped_as?: string;
  /** Byte offset of the fault. */
  offset?: number;
}
