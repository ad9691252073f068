/**
 * The JSON Schema of `roadmap.yaml`, for editors. It accepts every plan that the reader accepts. The reader also refuses faults that a
 * schema cannot express, such as circles and repeated ids.
 */
import { optional } from "../codec/schema.ts";
import { TASK_BUDGET } from "../codec/shared-fields.ts";
import { Priority, RetryPolicy } from "../codec/task-codec.ts";
import { type SchemaOptions, type TProperties, type TSchema, Type } from "../codec/typebox.ts";
import { ID_CHARS_MAX, MAX_ATTEMPTS_MAX, TIMER_MS_MAX } from "../core/limits.ts";
import { NODE_STATUSES, NODE_TYPES } from "../core/roadmap.ts";

/** YAML reads `id: 7` as a number; the reader takes the text as it is written. */
const Word = (description: string) =>
  Type.Union([Type.String(), Type.Number(), Type.Boolean()], { description });
const Id = Type.Union([Type.String({ minLength: 1, maxLength: ID_CHARS_MAX }), Type.Number()], {
  description: "unique in the file, ignoring case",
});
const OneOf = (words: readonly string[], options: SchemaOptions = {}) =>
  Type.Union(
    words.map((word) => Type.Literal(word)),
    options,
  );
const OneOrMore = (one: TSchema, description: string) =>
  Type.Union([one, Type.Array(one)], { description });
const Argv = Type.Array(Word("a word of the command"), {
  minItems: 1,
  description: "a program with its arguments, no shell",
});

const Dependency = Type.Union([
  Word("an id: that node must be done"),
  Type.Object(
    optional({
      id: Word("an id"),
      node: Word("an id"),
      required_status: OneOf(["done", "terminal"], {
        description: "terminal: done or failed",
      }),
    }),
    { additionalProperties: false },
  ),
]);
const Input = Type.Union([
  Type.String({ pattern: "^[^:]+:.", description: "nodeId:key" }),
  Type.Object(
    optional({
      nodeId: Word("whose value"),
      node: Word("whose value"),
      key: Word("of the value"),
      as: Word("its name in the packet"),
    }),
    { additionalProperties: false },
  ),
]);
const Attempts = Type.Integer({
  minimum: 1,
  maximum: MAX_ATTEMPTS_MAX,
  description: "N means N runs",
});

const FIELDS = {
  title: Word("what people read"),
  status: OneOf(["pending", ...NODE_STATUSES], {
    description: "default: pending, which is open",
  }),
  epic: Word("for filters"),
  milestone: Word("for filters"),
  domain: Word("for filters"),
  priority: Priority,
  dependencies: OneOrMore(Dependency, "what must have ended before it starts"),
  depends_on: OneOrMore(Dependency, "the same as dependencies"),
  retry_policy: RetryPolicy,
  max_attempts: Attempts,
  inputs: OneOrMore(Input, "values of other nodes that it gets"),
  goal: Word("what is to be reached"),
  description: Word("the same as goal"),
  prompt: Word("what the agent is told"),
  acceptance: OneOrMore(Word("one condition"), "it is done when"),
  verify: Type.Union([Word("a line for the shell"), Type.Array(Type.Union([Word(""), Argv]))], {
    description: "one program with its arguments, several of them, or a line for the shell",
  }),
  expect_files: OneOrMore(Word("a path"), "files that must be there after the run"),
  keep_background: Type.Boolean({
    description: "whether processes that its programs leave behind go on",
  }),
  exec: Argv,
  agent: Word("the name of an agent in config.yaml"),
  role: Word("an agent that lists this role, such as researcher"),
  capabilities: OneOrMore(Word("a capability"), "an agent that lists all of these"),
  cwd: Word("where it runs"),
  env: Type.Record(Type.String(), Type.Union([Word("a value"), Type.Null()])),
  timeout_ms: Type.Integer({ minimum: 1, maximum: TIMER_MS_MAX }),
  payload: Type.Unknown({ description: "plain data for the program" }),
  reopened: Type.Integer({ minimum: 0, description: "written by mailchute" }),
};
const Budget = Type.Object(optional(TASK_BUDGET), {
  additionalProperties: false,
  description: "how much its runs by a coding agent may spend",
});

/** `key:` without a value counts as missing. */
function orEmpty(members: TProperties): TProperties {
  return optional(
    Object.fromEntries(
      Object.entries(members).map(([name, one]) => [name, Type.Union([one, Type.Null()])]),
    ),
  );
}

/** Users may add keys of their own. */
const Item = (description: string, members: TProperties) =>
  Type.Object({ id: Id, ...orEmpty({ ...FIELDS, ...members }) }, { description });

const NOT_CONTAINERS = NODE_TYPES.filter((type) => type !== "epic" && type !== "milestone");
const Task = Item("a node that runs", { type: OneOf(NOT_CONTAINERS), budget: Budget });
const Milestone = Item("it holds tasks, and never runs", {
  type: OneOf(["milestone"]),
  tasks: Type.Array(Task),
});
const Epic = Item("it holds milestones and tasks, and never runs", {
  type: OneOf(["epic"]),
  milestones: Type.Array(Milestone),
  tasks: Type.Array(Task),
});
const Node = Item("a node; parent says where it belongs", {
  type: OneOf(NODE_TYPES),
  parent: Word("the plan, epic or milestone that it belongs to"),
  budget: Budget,
});

export const RoadmapSchema = Type.Object(
  orEmpty({
    name: Word("the budget is that of the plan of this name"),
    budget: Budget,
    epics: Type.Array(Epic),
    nodes: Type.Array(Node),
  }),
  { $id: "roadmap", title: "mailchute plan" },
);
