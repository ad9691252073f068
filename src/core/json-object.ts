/** Recognizes and parses JSON objects. */
import { RECORD_DEPTH_MAX } from "./limits.ts";
import { isDeeperThan } from "./nesting.ts";

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses a JSON object. Undefined when the text is not one, or nests so deep that it could not be written again. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value)) return undefined;
    // Each level takes two characters, so most texts are too short to be too deep.
    const mayBeTooDeep = text.length >= 2 * RECORD_DEPTH_MAX;
    return mayBeTooDeep && isDeeperThan(value, RECORD_DEPTH_MAX) ? undefined : value;
  } catch {
    return undefined;
  }
}
