/** Fields that stand in a task and also in the settings of an agent, a group or a tree. */
import type { Callback } from "../core/callback.ts";
import { LAND_MODES, type LandMode } from "../core/landing.ts";
import { LIMIT_NAME, TASK_LIMITS_MAX } from "../core/limits.ts";
import { CACHE_LIST_MAX } from "../core/setup-cache.ts";
import { optional } from "./schema.ts";
import { Type } from "./typebox.ts";

/** For arguments, paths and names of variables. */
export const NonEmpty = Type.String({ minLength: 1, pattern: "^[^\\u0000]*$" });
export const Argument = Type.String({
  pattern: "^[^\\u0000]*$",
  description: "text without NUL characters",
});
export const Argv = Type.Array(Argument, {
  minItems: 1,
  maxItems: 4096,
  description: "argv, no shell",
});

export const Usd = (description: string) => Type.Number({ minimum: 0, description });
export const Whole = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

/** How much a task may spend, in a task and in the settings of an agent. */
export const TASK_BUDGET = {
  soft_usd: Usd("US dollars; above it a person is asked before another turn or run; 0 = no limit"),
  hard_usd: Usd("US dollars; above it the run is interrupted; 0 = no limit"),
  tokens: Whole("input and output tokens; 0 = no limit"),
  hard_tokens: Whole("tokens; above them the run is interrupted; 0 = no limit"),
  turns: Whole("turns of the model; 0 = no limit"),
  hard_turns: Whole("turns; above them the run is interrupted; 0 = no limit"),
  time_ms: Whole("time of all its runs; 0 = no limit"),
  hard_time_ms: Whole("time; above it the run is interrupted; 0 = no limit"),
};

/** How much the programs of a run may use: in a task, and in the settings of an agent and of a tree. */
export const RUN_LIMITS = {
  memory_bytes: Whole("memory of all processes of a run together; 0 = no limit"),
  processes: Whole("processes of a run at a time; 0 = no limit"),
  cpu_ms: Whole("processor time of all processes of a run together; 0 = no limit"),
  disk_bytes: Whole("what the processes of a run write to the disk; 0 = no limit"),
};
/** The same in a task, and in the settings of an agent. */
export const RunLimitsSchema = Type.Object(
  optional({
    ...RUN_LIMITS,
    output_bytes: Type.Integer({
      minimum: 1024,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        "what a run may write into its logs and its folder, in place of output_bytes_max",
    }),
  }),
  { additionalProperties: false, description: "how much the programs of one run may use" },
);

/** One program or a list of them; decoded into a list. */
export const Programs = (description: string) =>
  Type.Unsafe<string[][]>(Type.Union([Argv, Type.Array(Argv, { maxItems: 64 })], { description }));

const CachePaths = Type.Array(NonEmpty, {
  minItems: 1,
  maxItems: CACHE_LIST_MAX,
});
/** The same in a task, and in the settings of an agent. */
export const CacheSchema = Type.Object(
  { paths: CachePaths, key: CachePaths, ...optional({ link: Type.Boolean() }) },
  {
    additionalProperties: false,
    description: "folders that setup makes, and worktrees with the same files in key share",
  },
);

/** What decides whether a run that reports success is good: in a task, and in the settings of an agent. */
export const CHECK_FIELDS = {
  verify: Programs(
    "a program with its arguments, or a list of up to 64, that must exit with 0 for the task to be done",
  ),
  expect_files: Type.Array(NonEmpty, {
    maxItems: 256,
    description: "files that must be there after the run, and not be older than the first run",
  }),
};

/** How the work of a task lands: in a task, and in the settings of an agent. */
export const LAND_FIELDS = {
  land: Type.Union(
    LAND_MODES.map((mode) => Type.Literal(mode)) as [ReturnType<typeof Type.Literal<LandMode>>],
    {
      description:
        "what becomes of its branch: it stays, is brought into target, or is handed to land_command; default: branch",
    },
  ),
  target: Type.String({
    pattern: "^[^\\u0000-\\u0020~^:?*\\[\\\\]+$",
    description: "the branch into which the work is brought; default: mailchute/integration",
  }),
  base: Type.Union([Type.Literal("target"), Type.Literal("checkout")], {
    description:
      "where work with land: merge begins: at what has landed on target, or at the commit of cwd; default: target",
  }),
  land_command: Argv,
  land_into_checkout: Type.Boolean({
    description: "target may be a branch that a person has checked out, while that tree is clean",
  }),
  review_by: Type.String({
    minLength: 1,
    maxLength: 128,
    description: "another agent, whose verdict on the work must be pass before it lands",
  }),
  protect: Type.Array(Type.String({ minLength: 1, maxLength: 256, pattern: "^[^\\u0000]*$" }), {
    maxItems: 256,
    description:
      "patterns of files that work may not change by itself; one that begins with + also forbids new files",
  }),
  verify_from: Type.Literal("target", {
    description: "the landing checks the work as the target would have it, in a clean environment",
  }),
  prove: Type.Unsafe<true | string[]>(
    Type.Union([Type.Literal(true), Argv], {
      description: "verify, or this program, must fail without the work and pass with it",
    }),
  ),
};

const CallbackSchema = (when: string) =>
  Type.Unsafe<Callback>(
    Type.Union([Argv, Type.Object({}, { additionalProperties: true }), Type.Literal("none")], {
      description: `a program with its arguments, or a task, that runs when it ${when}; or none`,
    }),
  );

/** What runs when a task has settled: in a task, in the settings of a group, and for all tasks. */
export const CALLBACK_FIELDS = {
  on_success: CallbackSchema("has completed"),
  on_failure: CallbackSchema("has failed for good"),
  on_settled: CallbackSchema("has ended, well or not"),
};

/** Names of limits: in a task, and in the settings of a group. */
export const LimitNames = Type.Array(Type.String({ pattern: LIMIT_NAME }), {
  maxItems: TASK_LIMITS_MAX,
  uniqueItems: true,
  description: "names of limits, as in config.yaml: letters, digits and -",
});

const AgentName = Type.String({ minLength: 1, maxLength: 128 });

/** What a coding agent may do without a person: in a task, and in the settings of an agent. */
export const PermissionsSchema = Type.Object(
  {
    mode: Type.Union([Type.Literal("read"), Type.Literal("edit"), Type.Literal("full")]),
    ...optional({ allow: Type.Array(Type.String({ minLength: 1 }), { maxItems: 1024 }) }),
  },
  { additionalProperties: false, description: "what a coding agent may do without a person" },
);

/** The fields of a task that name its agent and set something for it. */
export const AGENT_FIELDS = {
  agent: AgentName,
  agents: Type.Array(AgentName, {
    minItems: 1,
    maxItems: 16,
    uniqueItems: true,
    description:
      "several agents instead, the first one first: while one is at its limit, paused or over its budget, the next takes the task over",
  }),
  model: Type.String({ minLength: 1, description: "in place of the model of its agent" }),
  effort: Type.String({
    minLength: 1,
    description: "of claude and codex, in place of that of its agent: low, medium, high, …",
  }),
  permissions: PermissionsSchema,
};
