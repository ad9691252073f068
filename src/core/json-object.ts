/** Text or values that should be JSON objects. */
import { RECORD_DEPTH_MAX } from "./limits.ts";
import { isDeeperThan } from "./nesting.ts";

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses a text that is one JSON object. Undefined when it is not, or when it nests so deep that it could never be written again. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value)) return undefined;
    // Each level takes two characters: most texts are too short for too many.
    const mayBeTooDeep = text.length >= 2 * RECORD_DEPTH_MAX;
    return mayBeTooDeep && isDeeperThan(value, RECORD_DEPTH_MAX) ? undefined : value;
  } catch {
    return undefined;
  }
}
