/**
 * Reads members of JSON that another program wrote. A later version of that program may change them, so a member of an unexpected
 * type counts as missing. Pure.
 */

export type JsonMembers = Readonly<Record<string, unknown>>;

const NOTHING: JsonMembers = {};

/** The object on a line; undefined when the line holds anything else. */
export function readObjectLine(line: string): JsonMembers | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is JsonMembers {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object at the end of a path of members; an empty one when there is none. */
export function membersAt(value: unknown, ...path: readonly string[]): JsonMembers {
  let found = value;
  for (const name of path) found = isObject(found) ? found[name] : undefined;
  return isObject(found) ? found : NOTHING;
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A finite number; null for anything else. */
export function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A value as text: a text stays as it is, a missing value becomes an empty text, anything else becomes JSON. */
export function asText(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value);
  } catch {
    // JSON may nest too deep to be written, although it could be read.
    return "";
  }
}
