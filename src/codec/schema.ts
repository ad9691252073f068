/** Builds schemas, and checks that explain the first fault of a value in words a person can act on. */
import { isObject } from "../core/json-object.ts";
import { visible } from "../core/visible.ts";
import {
  type TOptional,
  type TProperties,
  type TSchema,
  Type,
  type TypeCheck,
  TypeCompiler,
} from "./typebox.ts";

/** Makes all members optional. */
export function optional<P extends TProperties>(members: P): { [K in keyof P]: TOptional<P[K]> } {
  const entries = Object.entries(members).map(([name, one]) => [name, Type.Optional(one)]);
  return Object.fromEntries(entries) as { [K in keyof P]: TOptional<P[K]> };
}

/** What is wrong with a value. */
export interface SchemaFault {
  /** Describes the type and size of the found value, but does not quote it. */
  message: string;
  found?: unknown;
}

/** Makes a check that returns the fault or undefined. The schema is compiled at the first use; many processes never use it. */
export function compileCheck(schema: TSchema): (value: unknown) => SchemaFault | undefined {
  const whole = compileLater(schema);
  const members = isOpen(schema) ? memberChecks(schema["properties"]) : undefined;
  return (value) => {
    if (members === undefined ? whole().Check(value) : fitsOpen(value, members)) return undefined;
    const first = whole().Errors(value).First();
    if (first === undefined) return { message: "does not fit the schema" };
    const place = first.path.slice(1).replaceAll("/", ".");
    const shown = visible(place.length > 200 ? `${place.slice(0, 197)}…` : place);
    // For a pattern or a choice of forms, the description explains more than the library's message.
    const { description, pattern, anyOf } = first.schema;
    const isMeant = description !== undefined && (pattern ?? anyOf) !== undefined;
    const words = anyOf?.map((one: TSchema) => one["const"]);
    const isChoice = words?.every((word: unknown) => typeof word === "string") === true;
    const expected = isChoice
      ? `expected one of ${words.join(", ")}`
      : isMeant
        ? `expected ${description}`
        : lowerFirst(first.message);
    const what = shown === "" ? "the value" : shown;
    const { value: found } = first;
    return { message: `${what}: ${expected}, found ${shapeOf(found)}`, found };
  };
}

type Compiled = () => TypeCheck<TSchema>;

function compileLater(schema: TSchema): Compiled {
  let compiled: TypeCheck<TSchema> | undefined;
  return () => (compiled ??= TypeCompiler.Compile(schema));
}

/** Whether the schema is an object without required members that also allows unknown members. */
function isOpen({ type, required, additionalProperties }: TSchema): boolean {
  return type === "object" && required === undefined && additionalProperties === true;
}

/** One check for each member, compiled at its first use: a task has about five of eighty members, and compiling all takes 15 ms. */
function memberChecks(properties: TProperties): ReadonlyMap<string, Compiled> {
  return new Map(Object.entries(properties).map(([name, one]) => [name, compileLater(one)]));
}

function fitsOpen(value: unknown, members: ReadonlyMap<string, Compiled>): boolean {
  if (!isObject(value)) return false;
  for (const name in value) {
    const member = value[name];
    if (member !== undefined && members.get(name)?.().Check(member) === false) return false;
  }
  return true;
}

/** The type and size of a value. Its content is not shown: it may be a secret, and messages are kept in logs and records. */
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

/** A name for a message: shortened, and without characters that steer a terminal. */
export function shorten(value: unknown): string {
  const text = visible(JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
