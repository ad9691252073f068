/**
 * The JSON Schema of `schedules/<name>.yaml`, for editors. It accepts every schedule that the reader accepts. The reader also checks time
 * zones, and refuses times that never come.
 */
import { optional } from "../codec/schema.ts";
import { type TProperties, Type } from "../codec/typebox.ts";

const Duration = (description: string) =>
  Type.Union(
    [
      Type.Number({ minimum: 0 }),
      Type.String({
        pattern: "^\\s*(\\d+(\\.\\d+)?|(\\d+(\\.\\d+)?\\s*(ms|s|sec|m|min|h|d)\\s*)+)\\s*$",
      }),
    ],
    { description: `${description}, such as 30s, 15m, 2h, 7d; a bare number means seconds` },
  );
const Instant = (description: string) =>
  Type.String({ description: `${description}, such as 2026-12-24T18:00:00` });
const OneOf = (words: readonly string[], description: string) =>
  Type.Union(
    words.map((word) => Type.Literal(word)),
    { description },
  );
const Reset = OneOf(["all", "failed"], "which nodes are opened");

const FIELDS = {
  cron: Type.String({ description: "five fields, or six with the seconds first" }),
  every: Duration("a time that is repeated, a second or more"),
  at: Type.Union([Instant("a time"), Type.Array(Instant("a time"), { minItems: 1 })]),
  timezone: Type.String({ description: "an IANA name; default: that of this machine" }),
  start: Instant("no time before this one"),
  end: Instant("no time after this one"),
  missed: OneOf(
    ["one", "all", "none"],
    "what becomes of times at which no supervisor ran; default: one",
  ),
  missed_max: Type.Integer({ minimum: 1, maximum: 1000, description: "with all: at most so many" }),
  missed_within: Duration("with all: none that is older"),
  grace: Duration("a time that is at most so late is not missed"),
  overlap: OneOf(
    ["skip", "wait", "replace", "allow"],
    "what becomes of a time when the task of an earlier one has not ended; default: skip",
  ),
  paused: Type.Boolean(),
  jitter: Duration("each task starts up to so much later"),
  task: Type.Object(
    {},
    { additionalProperties: true, description: "the fields of its tasks: see the schema `task`" },
  ),
  roadmap: Type.Union(
    [
      Type.Literal("reset"),
      Type.Object(
        {
          reset: Type.Union([Reset, Type.Array(Type.String(), { minItems: 1 })]),
          ...optional({ downstream: Type.Boolean() }),
        },
        { additionalProperties: false },
      ),
    ],
    { description: "opens nodes of the plan, in place of a task" },
  ),
};

/** `field:` without a value counts as missing, except for `task` and `roadmap`. */
function orEmpty({ task, roadmap, ...others }: typeof FIELDS): TProperties {
  const empty = Object.entries(others).map(([name, one]) => [name, Type.Union([one, Type.Null()])]);
  return { ...Object.fromEntries(empty), task, roadmap };
}

export const ScheduleSchema = Type.Object(optional(orEmpty(FIELDS)), {
  $id: "schedule",
  title: "mailchute schedule",
  additionalProperties: false,
});
