/** Looks into the schema of the settings: which are groups, and why a value does not fit. Pure. */
import { shapeOf } from "../codec/schema.ts";
import { type TSchema, Value } from "../codec/typebox.ts";

/** Whether a schema is a group of settings. A record, in which the user chooses the names, counts as one setting. */
export function isGroup(schema: TSchema): boolean {
  return schema["type"] === "object" && schema["properties"] !== undefined;
}

/** The settings of an object in the schema, by name. */
export function propertiesOf(schema: TSchema): Record<string, TSchema> {
  return (schema["properties"] ?? {}) as Record<string, TSchema>;
}

/** Why a value does not fit a setting; undefined when it fits. */
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
