/** Makes schemas, and from a schema a check that explains the first fault in words a person can act on. */
import { visible } from "../core/visible.ts";
import {
  type TOptional,
  type TProperties,
  type TSchema,
  Type,
  type TypeCheck,
  TypeCompiler,
} from "./typebox.ts";

/** The same members, each of which may be left out. */
export function optional<P extends TProperties>(members: P): { [K in keyof P]: TOptional<P[K]> } {
  const entries = Object.entries(members).map(([name, one]) => [name, Type.Optional(one)]);
  return Object.fromEntries(entries) as { [K in keyof P]: TOptional<P[K]> };
}

/** What is wrong with a value. */
export interface SchemaFault {
  /** With the shape of what was found, not with what it says. */
  message: string;
  found?: unknown;
}

/** Compiles lazily: a process that never checks never pays. The check returns the fault, or undefined. */
export function compileCheck(schema: TSchema): (value: unknown) => SchemaFault | undefined {
  let compiled: TypeCheck<TSchema> | undefined;
  return (value) => {
    compiled ??= TypeCompiler.Compile(schema);
    if (compiled.Check(value)) return undefined;
    const first = compiled.Errors(value).First();
    if (first === undefined) return { message: "does not fit the schema" };
    const place = first.path.slice(1).replaceAll("/", ".");
    const shown = visible(place.length > 200 ? `${place.slice(0, 197)}…` : place);
    // A pattern, or the forms of which none fits, say little: what is meant says more.
    const { description, pattern, anyOf } = first.schema;
    const isMeant = description !== undefined && (pattern ?? anyOf) !== undefined;
    const expected = isMeant ? `expected ${description}` : lowerFirst(first.message);
    const what = shown === "" ? "the value" : shown;
    const { value: found } = first;
    return { message: `${what}: ${expected}, found ${shapeOf(found)}`, found };
  };
}

/** What a value is, and how large: what stands in it may be a secret, and messages end up in logs and records. */
export function shapeOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "number" && !Number.isFinite(value)) return "a number out of range";
  if (typeof value === "string") return counted("a text", value.length, "character");
  if (Array.isArray(value)) return counted("a list", value.length, "item");
  if (value !== null && typeof value === "object")
    return counted("an object", Object.keys(value).length, "member");
  return JSON.stringify(value);
}

function counted(what: string, count: number, unit: string): string {
  return `${what} of ${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** A name as it may stand in a message: never a megabyte, and nothing that steers a terminal. */
export function shorten(value: unknown): string {
  const text = visible(JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
