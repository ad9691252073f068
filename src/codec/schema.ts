/** From a schema to a check that explains the first fault in words a person can act on. */
import { visible } from "../core/visible.ts";
import { type TSchema, type TypeCheck, TypeCompiler } from "./typebox.ts";

/**
 * Compiles lazily: a process that never checks never pays. The check returns the fault, or undefined.
 * @param unshown places ("env.TOKEN") whose values are not shown in the fault
 */
export function compileCheck(
  schema: TSchema,
  unshown?: RegExp,
): (value: unknown) => string | undefined {
  let compiled: TypeCheck<TSchema> | undefined;
  return (value) => {
    compiled ??= TypeCompiler.Compile(schema);
    if (compiled.Check(value)) return undefined;
    const first = compiled.Errors(value).First();
    if (first === undefined) return "does not fit the schema";
    const place = first.path.slice(1).replaceAll("/", ".");
    const shown = visible(place.length > 200 ? `${place.slice(0, 197)}…` : place);
    const isShown = unshown?.test(place) !== true;
    const found =
      first.value === undefined ? "nothing" : isShown ? shorten(first.value) : kindOf(first.value);
    // A pattern, or the forms of which none fits, say little: what is meant says more.
    const { description, pattern, anyOf } = first.schema;
    const isMeant = description !== undefined && (pattern ?? anyOf) !== undefined;
    const expected = isMeant ? `expected ${description}` : lowerFirst(first.message);
    return `${shown === "" ? "the value" : shown}: ${expected}, found ${found}`;
  };
}

/** A value as it may stand in a message: never a megabyte, and nothing that steers a terminal. */
export function shorten(value: unknown): string {
  if (typeof value === "number" && !Number.isFinite(value)) return "a number out of range";
  const text = visible(JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
