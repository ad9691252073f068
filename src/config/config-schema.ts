/** What `config.yaml` may say: its JSON Schema, and why a value does not fit it. */

import { shapeOf } from "../codec/schema.ts";
import { type TSchema, Type, Value } from "../codec/typebox.ts";
import {
  BATCH_CONCURRENCY_MAX,
  MAX_ATTEMPTS_MAX,
  TIMER_MS_MAX,
  WORKERS_MAX,
} from "../core/limits.ts";
import { PHASES } from "../core/phases.ts";

const Ms = (minimum: number, description: string) =>
  Type.Integer({ minimum, maximum: TIMER_MS_MAX, description });
const Days = (description: string) => Type.Number({ minimum: 0, maximum: 36_500, description });
/** What becomes an argument, a path or the name of a variable. */
const Text = Type.String({ minLength: 1, pattern: "^[^\\u0000]*$" });
const Strict = { additionalProperties: false } as const;

const AgentSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 128 }),
    kind: Type.Union([
      Type.Literal("exec"),
      Type.Literal("module"),
      Type.Literal("codex"),
      Type.Literal("claude"),
    ]),
    program: Type.Optional(Text),
    args: Type.Optional(Type.Array(Type.String({ pattern: "^[^\\u0000]*$" }))),
    module: Type.Optional(Text),
    types: Type.Optional(Type.Array(Text)),
    capabilities: Type.Optional(Type.Array(Text)),
    default: Type.Optional(Type.Boolean()),
    timeout_ms: Type.Optional(Ms(1, "longest run of this agent's tasks")),
    phases: Type.Optional(
      Type.Array(Type.Union(PHASES.map((phase) => Type.Literal(phase))), {
        minItems: 1,
        uniqueItems: true,
        description:
          "phases of its work on nodes of the plan, in order; default: by the node's type",
      }),
    ),
    result: Type.Optional(
      Type.Union([Type.Literal("required"), Type.Literal("optional")], {
        description:
          "whether a program's run of a node must end with a <result>; default: required",
      }),
    ),
  },
  Strict,
);

/** The JSON Schema of `config.yaml`. */
export const ConfigSchema = Type.Object(
  {
    workers: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: WORKERS_MAX,
        description: "slots over all worker processes",
      }),
    ),
    processes: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 64, description: "worker processes" }),
    ),
    durability: Type.Optional(
      Type.Union([Type.Literal("power"), Type.Literal("process")], {
        description: "what acknowledged work survives: a power cut, or the death of any process",
      }),
    ),
    retention: Type.Optional(
      Type.Object(
        {
          outbox_days: Type.Optional(Days("results are kept this long")),
          failed_days: Type.Optional(Days("failed tasks are kept this long")),
          journal_days: Type.Optional(Days("journals that were rotated are kept this long")),
          journal_bytes_max: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: Number.MAX_SAFE_INTEGER,
              description: "of journals that were rotated so much is kept, all together",
            }),
          ),
          evidence_days: Type.Optional(
            Days("evidence of nodes that left the plan, and of earlier runs, is kept this long"),
          ),
        },
        Strict,
      ),
    ),
    retry: Type.Optional(
      Type.Object(
        {
          max_attempts: Type.Optional(
            Type.Integer({ minimum: 1, maximum: MAX_ATTEMPTS_MAX, description: "N means N runs" }),
          ),
          backoff_ms: Type.Optional(Ms(0, "wait before the second run; doubles each time")),
          backoff_max_ms: Type.Optional(Ms(0, "longest wait between two runs")),
        },
        Strict,
      ),
    ),
    lease_ttl_ms: Type.Optional(Ms(100, "how long a silent lease is respected")),
    heartbeat_ms: Type.Optional(Ms(10, "how often a worker renews its lease")),
    settle_ms: Type.Optional(
      Ms(0, "a file that does not parse is refused after it was quiet for this long"),
    ),
    grace_ms: Type.Optional(Ms(0, "from SIGTERM to SIGKILL")),
    timeout_ms: Type.Optional(Ms(0, "longest run of a task that sets none; 0 = no limit")),
    sweep_ms: Type.Optional(Ms(10, "longest wait between two looks at everything")),
    output_bytes_max: Type.Optional(
      Type.Integer({
        minimum: 1024,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "a run that writes more into its logs and its folder is stopped",
      }),
    ),
    batch_bytes_max: Type.Optional(
      Type.Integer({
        minimum: 1024,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "a larger batch is refused",
      }),
    ),
    batch_results_bytes_max: Type.Optional(
      Type.Integer({
        minimum: 1024,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "a batch whose results have more ends with an error",
      }),
    ),
    batch_concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: BATCH_CONCURRENCY_MAX,
        description: "lines of a batch that run at once, when functions run them",
      }),
    ),
    free_bytes_min: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          "nothing new starts while the disk has less free, or less than an eighth of its size; 0 = whatever is free",
      }),
    ),
    env_allow: Type.Optional(
      Type.Array(Text, {
        description: "variables that programs get beside PATH, HOME and the like",
      }),
    ),
    roots: Type.Optional(
      Type.Array(Text, { description: "directories under which cwd and worktree must lie" }),
    ),
    uids: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0 }), { description: "owners whose files are accepted" }),
    ),
    mailbox_enabled: Type.Optional(
      Type.Boolean({ description: "false: the task mailbox is left alone" }),
    ),
    agents: Type.Optional(Type.Array(AgentSchema)),
  },
  { $id: "config", title: "mailchute config.yaml", ...Strict },
);

/** The settings that a part of the schema knows, by name. */
export function propertiesOf(schema: TSchema): Record<string, TSchema> {
  return (schema["properties"] ?? {}) as Record<string, TSchema>;
}

/** Why a value is none for a setting, or undefined. */
export function explainBadSetting(schema: TSchema, value: unknown): string | undefined {
  if (Value.Check(schema, value)) return undefined;
  const first = Value.Errors(schema, value).First();
  const choices = choicesOf(schema);
  const found = `found ${shapeOf(value)}`;
  if (choices !== undefined) return `expected ${choices.join(" or ")}, ${found}`;
  return `${(first?.message ?? "does not fit").replace(/^./, (c) => c.toLowerCase())}, ${found}`;
}

function choicesOf(schema: TSchema): string[] | undefined {
  const anyOf = schema["anyOf"] as { const?: unknown }[] | undefined;
  return anyOf?.every((one) => typeof one.const === "string") === true
    ? anyOf.map((one) => String(one.const))
    : undefined;
}
