/** The JSON Schemas of result and error records. Other programs may rely on them. This file checks nothing. */

import type { ErrorRecord, FailureKind, ResultRecord } from "../core/task.ts";
import { optional } from "./schema.ts";
import { TaskSchema } from "./task-codec.ts";
import { type Static, Type } from "./typebox.ts";

const Seconds = Type.Integer({ minimum: 0, description: "integer unix seconds" });
const ExitCode = Type.Union([Type.Integer(), Type.Null()]);
const Run = Type.Union([Type.String(), Type.Null()], {
  description: "the directory of the attempt, as a path below runs/",
});
const Counts = Type.Object(
  {
    lines: Type.Integer({ minimum: 0, description: "lines with a result" }),
    completed: Type.Integer({ minimum: 0 }),
    failures: Type.Integer({ minimum: 0, description: "lines that failed, bad ones included" }),
    bad: Type.Integer({ minimum: 0, description: "lines that are not valid tasks" }),
  },
  { additionalProperties: true, description: "how many lines of a batch completed and failed" },
);
const { $id: _taskId, ...TaskInside } = TaskSchema;
const TaskAsRun = Type.Unsafe<unknown>({ ...TaskInside, description: "the task as it ran" });

export const FAILURE_KINDS = [
  "exit",
  "signal",
  "timeout",
  "spawn",
  "invalid",
  "cancelled",
  "lease_expired",
  "handler",
  "output",
  "memory",
  "processes",
  "cpu",
  "disk",
  "verify",
  "environment",
  "worktree",
  "setup",
  "landing",
  "reported",
  "no_result",
  "invalid_result",
  "auth",
  "quota",
  "interrupted",
  "permission",
  "config",
  "agent",
  "budget",
  "dependency_failed",
  "duplicate_key",
] as const satisfies readonly FailureKind[];
// With this type, the compiler reports a kind that is missing above.
type _Kinds = FailureKind extends (typeof FAILURE_KINDS)[number] ? true : never;
const _kinds: _Kinds = true;
void _kinds;

/** What a run has left on the branch of its worktree. */
const WORK = {
  landing: Type.Union(
    [
      Type.Literal("pending"),
      Type.Literal("branch"),
      Type.Literal("nothing"),
      Type.Literal("landed"),
    ],
    {
      description:
        "pending: the task <id>.land brings the work into the target; landed: that was done at the other machine",
    },
  ),
  branch: Type.String({ description: "the branch with the work" }),
  base: Type.String({ description: "the commit at which the branch began" }),
  target: Type.String({ description: "the branch into which the work is to be brought" }),
  diffstat: Type.Object(
    { files: Type.Integer(), insertions: Type.Integer(), deletions: Type.Integer() },
    { description: "how much the work differs from its base" },
  ),
};

/** See `KeptWork`. */
const KEPT = {
  work_saved: Type.String({
    description: "the ref of the repository that has what the branch of its worktree lacks",
  }),
  work_left: Type.Array(Type.String(), {
    description: "what only its worktree has, at most ten names",
  }),
};

/** See `RunUsage`. */
const USAGE = {
  cpu_ms: Type.Integer({
    minimum: 0,
    description:
      "processor time of the programs of the last run, at the last look before each ended",
  }),
  peak_memory_bytes: Type.Integer({
    minimum: 0,
    description: "the most memory that a program of the last run was seen to have",
  }),
  left_processes: Type.Integer({
    minimum: 1,
    description: "how many processes the last run left running; see keep_background",
  }),
  denied: Type.Array(Type.String(), {
    description: "the tools that the coding agents of the last run were not allowed to use",
  }),
};

const Machine = Type.String({ description: "the other machine at which the last run was" });

/** `outbox/<id>_result.json` */
export const ResultSchema = Type.Object(
  {
    task_id: Type.String(),
    status: Type.Literal("completed"),
    verdict: Type.String(),
    verdict_reason: Type.String(),
    output: Type.Unknown({
      description: "the result object of the program, or the tail of its output",
    }),
    duration_ms: Type.Number({ minimum: 0 }),
    completed_at: Seconds,
    attempts: Type.Integer({ minimum: 0 }),
    agent_id: Type.String(),
    lease: Type.String(),
    exit_code: ExitCode,
    run: Run,
    ...optional({
      ...USAGE,
      batch: Counts,
      ...WORK,
      ...KEPT,
      machine: Machine,
      task: TaskAsRun,
    }),
  },
  { $id: "result", title: "mailchute result record", additionalProperties: true },
);

/** `failed/<id>_error.json` */
export const ErrorSchema = Type.Object(
  {
    task_id: Type.String(),
    status: Type.Literal("failed"),
    error: Type.String(),
    attempts: Type.Integer({
      minimum: 0,
      description: "0: it was refused, cancelled or skipped and never ran",
    }),
    last_attempt_at: Seconds,
    failed_at: Seconds,
    code: Type.String(),
    kind: Type.Union(
      FAILURE_KINDS.map((kind) => Type.Literal(kind)) as [
        ReturnType<typeof Type.Literal<FailureKind>>,
      ],
    ),
    agent_id: Type.String(),
    lease: Type.String(),
    exit_code: ExitCode,
    signal: Type.Union([Type.String(), Type.Null()]),
    run: Run,
    ...optional({
      ...USAGE,
      ...KEPT,
      output: Type.Unknown({ description: "the result that a node's run reported" }),
      batch: Counts,
      file: Type.String({
        description: "where a refused file is now, relative to the mailbox",
      }),
      dropped_as: Type.String({ description: "the name under which the file was dropped" }),
      offset: Type.Integer({ minimum: 0, description: "byte offset of the fault" }),
      cause: Type.String({ description: "of a skipped task: the dependency that failed" }),
      root: Type.String({ description: "the first task that failed by itself" }),
      depth: Type.Integer({ minimum: 1, description: "how many steps it is from the root" }),
      chain: Type.Array(Type.String(), {
        description: "the ids from the root to the cause; of a long chain the first and last 8",
      }),
      of: Type.String({ description: "of a duplicate: the task that had its dedup_key" }),
      machine: Machine,
      can_retry: Type.Boolean({
        description: "false: another run cannot help, however many attempts are left",
      }),
      task: TaskAsRun,
    }),
  },
  { $id: "error", title: "mailchute error record", additionalProperties: true },
);

// With these types, the compiler reports when the shapes and the schemas differ.
type _Result = ResultRecord extends Static<typeof ResultSchema> ? true : never;
type _Error = ErrorRecord extends Static<typeof ErrorSchema> ? true : never;
const _shapes: [_Result, _Error] = [true, true];
void _shapes;
