/**
 * The shapes of tasks and of their result and error records. Fields are named as in the files; times are integer unix seconds.
 *
 * The words of this project, one for each thing, in code, files, messages and documents:
 *
 * - task: one JSON file that asks for one piece of work. batch: one file with a task in each line.
 * - command: a file in the control mailbox that tells the supervisor what to do. What a worker runs is a program.
 * - mailbox: a folder with four trays. tray: `inbox/`, `processing/`, `outbox/` or `failed/`.
 * - submit (or enqueue): put a task into the inbox. Any program may also drop a file there.
 * - backlog: the tasks that wait in the inbox, in the order in which they run.
 * - accept: move a task from the inbox into processing, where it is ready for a worker.
 * - claim: take a ready task by renaming it. The new name carries the lease.
 * - lease: the right to run a task and to settle it. It names an owner and an attempt. heartbeat: what renews it.
 * - attempt: one run of a task, counted from 1. outcome: what an attempt led to: complete, fail, retry or release.
 * - settle: end a task for good by one rename, the commit; then publish its record, a result or an error.
 * - release: give a task back without using up its attempt.
 * - reclaim: take a task back from an owner that died or became silent.
 * - fence: keep a process that lost its lease from settling.
 * - quarantine: set aside a file that is not a valid task, with the reason. dead letter: a task that failed for good.
 * - backoff: the wait before the next attempt. retention: how long records are kept. sweep: remove older records.
 * - drain: finish what runs and start nothing new. tick: one round of the supervisor. wake: make a tick due.
 * - journal: a file of JSON lines that only grows. event: a line of it that says what happened to a task.
 * - roadmap: the plan in `roadmap.yaml`. node: one item of it. phase: a step of a node's run. packet: what an agent reads for it.
 * - agent: what runs a task: a program, or a function of a module. worker: a process with slots in which agents run.
 */
import type { BatchCounts } from "./batch.ts";
import type { TaskBudget } from "./budget.ts";
import type { CallbackFields } from "./callback.ts";
import type { DependencyField } from "./dependencies.ts";
import type { KeptWork, LandMode, WorkFacts } from "./landing.ts";
import type { OwnedPaths } from "./owned-paths.ts";
import type { LimitKind, RunLimits } from "./run-limits.ts";
import type { RunUsage } from "./run-usage.ts";
import type { Permissions } from "./settings.ts";
import type { CacheFields } from "./setup-cache.ts";

export interface TaskMetadata {
  worktree?: string;
  /** Ids of tasks or roadmap items that must complete before this task starts. */
  dependencies?: DependencyField[];
  [key: string]: unknown;
}

/** A task as dropped into `inbox/`. It must say what to run; all other fields are optional. Unknown fields are kept. */
export interface Task extends CallbackFields {
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
  /** The trace that its runs belong to: the variable `TRACEPARENT` of its programs, and a member of its events. */
  traceparent?: string;
  verdict?: string;
  verdict_reason?: string;
  test_mode?: string;
  test_scope?: string;
  test_command?: string;
  created_at?: number;
  updated_at?: number;
  metadata?: TaskMetadata;
  /** The program and its arguments (argv). No shell is used. */
  exec?: string[];
  /** Name of a configured agent. */
  agent?: string;
  /** Several agents in place of one, the first one first: while one is at its limit, the next takes the task over. */
  agents?: string[];
  /** For this task, in place of those of its coding agent. */
  model?: string;
  effort?: string;
  permissions?: Permissions;
  capabilities?: string[];
  prompt?: string;
  payload?: unknown;
  cwd?: string;
  env?: Record<string, string>;
  /** Variables that are read at each start: `file:/path` or `env:NAME`. */
  env_from?: Record<string, string>;
  timeout_ms?: number;
  /** How much the programs of one run may use. */
  run_limits?: RunLimits;
  /** Programs, each as argv, that must all exit with 0 before the task is done. */
  verify?: string[][];
  /** Files that must exist after the run and not be older than the first run. Paths are relative to where the task runs. */
  expect_files?: string[];
  /** Whether processes that its programs leave behind go on. Left out: only those of a plain `exec` without limits. */
  keep_background?: boolean;
  /** `auto`: its runs work in a git worktree of their own. `none`: they do not, whatever the settings of the agent say. */
  worktree?: "auto" | "none";
  /** Programs, each as argv, that make a new worktree ready. */
  setup?: string[][];
  /** What `setup` makes, and worktrees with the same key share. */
  cache?: CacheFields;
  /** What becomes of its branch: see `LandMode`. */
  land?: LandMode;
  /** The branch that gets its work. */
  target?: string;
  /** Where its work begins, with `land: merge`: see `LandFields`. */
  base?: "target" | "checkout";
  land_command?: string[];
  land_into_checkout?: boolean;
  review_by?: string;
  /** How its check is kept from the run: see `LandFields`. */
  protect?: string[];
  verify_from?: "target";
  prove?: true | string[];
  /** How much the runs of a coding agent may spend on this task. */
  budget?: TaskBudget;
  /** Unix seconds; the task waits in the inbox until then. */
  not_before?: number;
  group?: string;
  /** How many slots of its group it takes. Default: 1. */
  weight?: number;
  /** The limits that it shares with other groups: see `task-limits.ts`. */
  limits?: string[];
  /** The files that it reads and writes. Tasks that conflict over a file do not run together. */
  owns?: OwnedPaths;
  dedup_key?: string;
  dedup_window_ms?: number;
  /** Set in a callback: the task that has settled. A callback has no callbacks. */
  callback_of?: string;
  [key: string]: unknown;
}

/** Why an attempt or a task failed. */
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
  /** Its programs used more than `run_limits` allow. */
  | LimitKind
  | "verify"
  /** A variable of `env_from` could not be read. */
  | "environment"
  /** Its worktree could not be made. */
  | "worktree"
  /** A program of `setup` did not exit with 0. */
  | "setup"
  /** Its work could not be brought into the target branch. */
  | "landing"
  | "reported"
  | "no_result"
  | "invalid_result"
  | "auth"
  | "quota"
  /** A coding agent's stream ended before it said how its work ended. */
  | "interrupted"
  /** A coding agent was not allowed to use its tools. */
  | "permission"
  /** A coding agent cannot work with its configuration: billing, model, flags. */
  | "config"
  /** A person refused to let it spend more. */
  | "budget"
  /** A coding agent said that it failed. */
  | "agent"
  /** It was skipped: a task that it depends on has failed. */
  | "dependency_failed"
  /** It was skipped: another task has its `dedup_key`. */
  | "duplicate_key";

/** `outbox/<id>_result.json` without the copy of the task in it. */
export interface ResultRecord extends Partial<WorkFacts>, KeptWork, RunUsage {
  task_id: string;
  status: "completed";
  verdict: string;
  verdict_reason: string;
  output: unknown;
  duration_ms: number;
  completed_at: number;
  attempts: number;
  agent_id: string;
  /** The other agents that had it before, the first one first. */
  agents_before?: string[];
  lease: string;
  exit_code: number | null;
  run: string | null;
  /** For a batch: how many lines completed and failed. */
  batch?: BatchCounts;
  /** The other machine that had the last run. Left out when it was here. */
  machine?: string;
}

/** `failed/<id>_error.json` without the copy of the task in it. */
export interface ErrorRecord extends KeptWork, RunUsage {
  task_id: string;
  status: "failed";
  error: string;
  attempts: number;
  last_attempt_at: number;
  failed_at: number;
  code: string;
  kind: FailureKind;
  agent_id: string;
  /** The other agents that had it before, the first one first. */
  agents_before?: string[];
  lease: string;
  exit_code: number | null;
  signal: string | null;
  run: string | null;
  /** The result that the run of a node reported. */
  output?: unknown;
  /** For a batch: how many lines completed and failed before the batch failed. */
  batch?: BatchCounts;
  /** Set when a file was refused: where the file is now, relative to the mailbox. */
  file?: string;
  /** The name under which the file was dropped. */
  dropped_as?: string;
  /** Byte offset of the fault. */
  offset?: number;
  /** Set when it was skipped: see `Skip`. */
  cause?: string;
  root?: string;
  depth?: number;
  chain?: string[];
  /** Set when another task had its `dedup_key`: the id of that one. */
  of?: string;
  /** The other machine that had the last run. Left out when it was here. */
  machine?: string;
  /** Set when another run cannot help, however many attempts are left. */
  can_retry?: boolean;
}
