/** The fields of a task that name its agent and set something for it. */
import { optional } from "./schema.ts";
import { Type } from "./typebox.ts";

const AgentName = Type.String({ minLength: 1, maxLength: 128 });

/** What a coding agent may do without a person: in a task, and in the settings of an agent. */
export const PermissionsSchema = Type.Object(
  {
    mode: Type.Union([Type.Literal("read"), Type.Literal("edit"), Type.Literal("full")]),
    ...optional({ allow: Type.Array(Type.String({ minLength: 1 }), { maxItems: 1024 }) }),
  },
  { additionalProperties: false, description: "what a coding agent may do without a person" },
);

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
