/** The messages of JSON-RPC 2.0, one object a line, as the Model Context Protocol uses them. */
import { isObject } from "../../core/json-object.ts";

export type Id = string | number;
export type Answer = { result: object } | { error: { code: number; message: string } };

export const PARSE_ERROR = -32_700;
export const INVALID_REQUEST = -32_600;
export const METHOD_NOT_FOUND = -32_601;
export const INVALID_PARAMS = -32_602;
/** A code of the Model Context Protocol. */
export const RESOURCE_NOT_FOUND = -32_002;
/** The first code that a server may define itself: the server does not take this request now. */
export const REFUSED = -32_000;

/** @returns undefined when the line is no JSON; an empty object when it is JSON but no object */
export function parseMessage(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : {};
  } catch {
    return undefined;
  }
}

export function isId(value: unknown): value is Id {
  return typeof value === "string" || Number.isInteger(value);
}

export function fail(code: number, message: string): Answer {
  return { error: { code, message } };
}
