/** Decodes and checks tasks. Holds the JSON Schema of tasks. */

import { CALLBACK_EVENTS, type Callback, type CallbackEvent } from "../core/callback.ts";
import type { DependencyField } from "../core/dependencies.ts";
import { ErrInvalidTask } from "../core/errors.ts";
import {
  DEDUP_WINDOW_MS_MAX,
  ID_CHARS_MAX,
  MAX_ATTEMPTS_MAX,
  TIMER_MS_MAX,
  WEIGHT_MAX,
} from "../core/limits.ts";
import { explainBadId } from "../core/names.ts";
import { OWNED_MAX } from "../core/owned-paths.ts";
import { NODE_PRIORITIES, PRIORITY_MAX } from "../core/priority.ts";
import type { Task } from "../core/task.ts";
import { JsonFault, type JsonObject, parseObject } from "./json.ts";
import { compileCheck, optional, shorten } from "./schema.ts";
import {
  AGENT_FIELDS,
  Argument,
  Argv,
  CALLBACK_FIELDS,
  CacheSchema,
  CHECK_FIELDS,
  LAND_FIELDS,
  LimitNames,
  Programs,
  RunLimitsSchema,
  TASK_BUDGET,
} from "./shared-fields.ts";
import { TASK_RULES, type TaskRule } from "./task-rules.ts";
import { type Static, Type } from "./typebox.ts";

const Text = Type.String();
const Seconds = Type.Integer({
  minimum: 0,
  maximum: 253402300799,
  description: "integer unix seconds",
});
const Count = Type.Integer({ minimum: 0, maximum: MAX_ATTEMPTS_MAX });
const Names = Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: 1024 });
const DependencyId = Type.String({ minLength: 1, maxLength: 256 });
const RequiredStatus = Type.Optional(
  Type.Union([Type.Literal("done"), Type.Literal("terminal")], {
    description: "done: it must complete (default); terminal: it must end, also failed",
  }),
);
const DependencyObject = (name: "id" | "node") =>
  Type.Object(
    { [name]: DependencyId, required_status: RequiredStatus },
    { additionalProperties: false },
  );
const Dependency = Type.Union([DependencyId, DependencyObject("id"), DependencyObject("node")]);
const DependencyList = Type.Unsafe<DependencyField[]>(
  Type.Array(Dependency, { maxItems: 1024, description: "ids, or { id, required_status }" }),
);
/** As in the plan, a single one needs no list. Decoded into `metadata.dependencies`. */
const Dependencies = Type.Union([Dependency, DependencyList], {
  description: "ids, or { id, required_status }; together with metadata.dependencies",
});
const MaxAttempts = Type.Integer({
  minimum: 1,
  maximum: MAX_ATTEMPTS_MAX,
  description: "N means N runs",
});
/** How urgent a task or a node is. Decoded into a number in a task. */
export const Priority = Type.Unsafe<number>(
  Type.Union(
    [
      Type.Integer({ minimum: -PRIORITY_MAX, maximum: PRIORITY_MAX }),
      ...NODE_PRIORITIES.map((word) => Type.Literal(word)),
    ],
    { description: `a whole number, higher first, or ${NODE_PRIORITIES.join(", ")}` },
  ),
);
export const RetryPolicy = Type.Object(
  optional({ max_attempts: MaxAttempts, maxAttempts: MaxAttempts }),
  { additionalProperties: true, description: "max_attempts in it counts before that of the task" },
);
const OwnedList = Type.Array(
  Type.String({ minLength: 1, maxLength: 1024, pattern: "^[^\\u0000]*$" }),
  {
    maxItems: OWNED_MAX,
    description:
      "paths from the top of the repository, with *, ? and **; each stands for all below it, too",
  },
);

export const TaskSchema = Type.Object(
  optional({
    id: Type.String({ minLength: 1, maxLength: ID_CHARS_MAX }),
    title: Text,
    description: Text,
    epic_id: Text,
    parent_id: Text,
    sequence_number: Type.Integer({
      minimum: Number.MIN_SAFE_INTEGER,
      maximum: Number.MAX_SAFE_INTEGER,
    }),
    type: Text,
    priority: Priority,
    dependencies: Dependencies,
    depends_on: Dependencies,
    retry_policy: RetryPolicy,
    status: Text,
    attempts: Count,
    max_attempts: MaxAttempts,
    last_error: Text,
    claimed_by: Text,
    claimed_at: Seconds,
    operator: Text,
    verdict: Text,
    verdict_reason: Text,
    test_mode: Text,
    test_scope: Text,
    test_command: Text,
    created_at: Seconds,
    updated_at: Seconds,
    metadata: Type.Object(optional({ worktree: Argument, dependencies: DependencyList }), {
      additionalProperties: true,
    }),
    exec: Argv,
    ...AGENT_FIELDS,
    capabilities: Names,
    prompt: Text,
    payload: Type.Unknown(),
    cwd: Argument,
    env: Type.Record(Type.String({ pattern: "^[^=\\u0000]+$" }), Argument, {
      additionalProperties: false,
    }),
    env_from: Type.Record(
      Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$" }),
      Type.String({
        pattern: "^(?:file:/[^\\u0000]+|env:[A-Za-z_][A-Za-z0-9_]*)$",
        description: "file:/absolute/path or env:NAME",
      }),
      { additionalProperties: false, description: "variables that are read at each start" },
    ),
    timeout_ms: Type.Integer({ minimum: 1, maximum: TIMER_MS_MAX }),
    run_limits: RunLimitsSchema,
    ...CHECK_FIELDS,
    worktree: Type.Union([Type.Literal("auto"), Type.Literal("none")], {
      description:
        "auto: its runs work in a git worktree of their own; metadata.worktree is a path",
    }),
    setup: Programs("programs that make a new worktree ready, each of which must exit with 0"),
    cache: CacheSchema,
    ...LAND_FIELDS,
    budget: Type.Object(optional(TASK_BUDGET), {
      additionalProperties: false,
      description: "how much its runs by a coding agent may spend",
    }),
    not_before: Seconds,
    group: Text,
    weight: Type.Integer({
      minimum: 1,
      maximum: WEIGHT_MAX,
      description: "how many of the slots of its group it takes; default: 1",
    }),
    limits: LimitNames,
    owns: Type.Object(optional({ read: OwnedList, write: OwnedList }), {
      additionalProperties: false,
      description:
        "files that it reads and writes; tasks that would meet there run one after the other",
    }),
    keep_background: Type.Boolean({
      description:
        "true: processes that its programs leave behind go on; false: they are ended. Default: those of a plain exec without run_limits go on",
    }),
    dedup_key: Type.String({
      description: "while a task of this key waits or runs, another one is not run",
    }),
    dedup_window_ms: Type.Integer({
      minimum: 0,
      maximum: DEDUP_WINDOW_MS_MAX,
      description: "and so long after that one came, unless it failed; default: 0",
    }),
    traceparent: Type.String({
      pattern: "^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$",
      description: "the trace of which its runs are a part, as W3C Trace Context writes it",
    }),
    ...CALLBACK_FIELDS,
    callback_of: Text,
  }),
  { $id: "task", title: "mailchute task", additionalProperties: true },
);

// With this type, the compiler reports when the documented shape and the schema differ.
type _TaskMatchesSchema = Static<typeof TaskSchema> extends Partial<Task> ? true : never;
const _taskMatchesSchema: _TaskMatchesSchema = true;
void _taskMatchesSchema;

const check = compileCheck(TaskSchema);
/** Members in which any keys are allowed, because the user decides what they hold. */
export const FREE_MEMBERS: ReadonlySet<string> = new Set(["payload"]);

/** Why this cannot be the `budget` of a task or a plan; undefined when it can. */
export function explainBadBudget(budget: unknown): string | undefined {
  return check({ budget })?.message;
}

const BODY_FIELDS = [
  "exec",
  "agent",
  "prompt",
  "payload",
  "title",
  "description",
  "agents",
] as const;

export interface DecodedTask {
  task: Task;
  /** The JSON text as it was dropped (trimmed). The result holds an exact copy of it. */
  text: string;
}

/**
 * @param id the file name without its ending; an id in the body must be the same
 * @throws ErrInvalidTask; its `cause` is a JsonFault when the text is not valid JSON
 */
export function decodeTask(bytes: Buffer, id: string, path?: string): DecodedTask {
  const where = path === undefined ? { id } : { id, path };
  let object: JsonObject;
  try {
    object = parseObject(bytes, FREE_MEMBERS);
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    throw new ErrInvalidTask(`${error.message} (byte ${error.offset})`, {
      ...where,
      offset: error.offset,
      cause: error,
      hint: "write one JSON object, best into a temporary file that is then moved into inbox/",
    });
  }
  const task = checkTask(object.value, id, where);
  return { task, text: object.text };
}

/**
 * Decodes a task from one of several lines. A line may leave the id out.
 * @param freshId makes the id for a line without one
 * @throws JsonFault, ErrInvalidTask
 */
export function decodeLine(bytes: Buffer, freshId: () => string): Task {
  const { value } = parseObject(bytes, FREE_MEMBERS);
  return checkTask(value, typeof value["id"] === "string" ? value["id"] : freshId());
}

/** Checks a task that is parsed already. @throws ErrInvalidTask */
export function checkTask(
  value: Record<string, unknown>,
  id: string,
  where: { id?: string; path?: string } = { id },
): Task {
  const task = checkBody(value, id, where);
  const badId = explainBadId(id);
  if (badId !== undefined) throw new ErrInvalidTask(`bad id ${shorten(id)}: ${badId}`, where);
  if (task.id !== undefined && task.id !== id) {
    throw new ErrInvalidTask(
      `the body says id ${shorten(task.id)} but the file is named ${shorten(id)}`,
      {
        ...where,
        hint: "make them agree, or leave the id out of the body",
      },
    );
  }
  task.id = id;
  return task;
}

/** Checks everything except the task's own id. @throws ErrInvalidTask */
export function checkBody(
  value: Record<string, unknown>,
  id: string,
  where: { id?: string; path?: string } = { id },
): Task {
  const fault = check(value);
  if (fault !== undefined)
    throw new ErrInvalidTask(fault.message, {
      ...where,
      hint: "see `mailchute schema task`",
      found: fault.found,
    });
  const task = value as unknown as Task;
  if (!BODY_FIELDS.some((field) => task[field] !== undefined)) {
    throw new ErrInvalidTask(`nothing to run: none of ${BODY_FIELDS.join(", ")} is given`, where);
  }
  for (const field in value) {
    const bad = RULES.get(field)?.(task, id);
    if (bad === undefined) continue;
    const { message, ...more } = bad;
    throw new ErrInvalidTask(message, { ...where, ...more });
  }
  return task;
}

/** What is wrong with a callback that fits the schema; undefined when it can run. */
export function explainBadCallback(callback: Callback): string | undefined {
  if (callback === "none") return undefined;
  if (Array.isArray(callback))
    return callback[0] === "" ? "the program's name is empty" : undefined;
  const own = CALLBACK_EVENTS.find((event) => Object.hasOwn(callback, event));
  if (own !== undefined) return `a callback has no callbacks: take ${own} out`;
  const given = ["id", "callback_of"].find((name) => Object.hasOwn(callback, name));
  if (given !== undefined) return `mailchute gives it its ${given}: take that out`;
  try {
    // `checkBody` changes lists of programs, so it gets a copy: the callback must stay as it was written.
    checkBody(structuredClone(callback), "callback");
    return undefined;
  } catch (error) {
    if (error instanceof ErrInvalidTask) return error.message;
    throw error;
  }
}

const RULES: ReadonlyMap<string, TaskRule> = new Map([
  ...TASK_RULES,
  ...CALLBACK_EVENTS.map((event) => [event, callbackRule(event)] as const),
]);

function callbackRule(event: CallbackEvent): TaskRule {
  return ({ [event]: callback }) => {
    const fault = callback === undefined ? undefined : explainBadCallback(callback);
    if (fault === undefined) return undefined;
    return {
      message: `${event}: ${fault}`,
      hint: "a callback is a program with its arguments, or the fields of a task",
    };
  };
}
