/**
 * Reads bytes as one JSON object, and refuses duplicate keys, deep nesting and broken UTF-8. JSON.parse makes the values. The
 * scanner runs only when JSON.parse may have hidden a fault, or to find the place of a fault. Knows nothing of tasks.
 */
import { isUtf8 } from "node:buffer";
import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX } from "../core/limits.ts";
import { FORBIDDEN_KEYS, ScanFault, Scanner } from "./json-scanner.ts";
import { findHalfCharacter, HALF_CHARACTER } from "./well-formed.ts";

/** A fault in the text, with its byte offset. */
export class JsonFault extends Error {
  constructor(
    message: string,
    readonly offset: number,
    /** False when the file may be only half written: the fault may disappear when the rest arrives. */
    readonly isFinal: boolean,
  ) {
    super(message);
    this.name = "JsonFault";
  }
}

/** True when the fault behind this error may disappear, because a program may still be writing the file. */
export function mayStillGrow(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof JsonFault && !cause.isFinal;
}

export interface JsonObject {
  value: Record<string, unknown>;
  /** The original text without a byte order mark and surrounding white space. */
  text: string;
}

export interface ScannedObject extends JsonObject {
  /** Where the value of each top-level member is in `text`: [from, to). */
  spans: Map<string, [number, number]>;
}

const SPACE = 0x20;
const QUOTE = 0x22;

/**
 * Reads exactly one JSON object.
 * @param freeMembers top-level members in which any keys are allowed, because the user decides what they hold
 * @throws JsonFault
 */
export function parseObject(
  bytes: Buffer,
  freeMembers: ReadonlySet<string> = new Set(),
): JsonObject {
  // The fast path for nearly all files. A text this short cannot hold too many members.
  if (bytes.length <= JSON_MEMBERS_MAX && isUtf8(bytes)) {
    const text = bytes.toString("utf8");
    try {
      return { value: parseObjectText(text, freeMembers), text: text.trim() };
    } catch {
      // The scan below finds the fault and its place.
    }
  }
  return scanObject(bytes, freeMembers);
}

/**
 * Reads and scans one JSON object. Returns the places of its members, too.
 * @param depthMax objects and arrays may nest this deep, the outermost included
 * @throws JsonFault
 */
export function scanObject(
  bytes: Buffer,
  freeMembers: ReadonlySet<string>,
  depthMax: number = JSON_DEPTH_MAX,
): ScannedObject {
  const skip =
    bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  const body = skip === 0 ? bytes : bytes.subarray(skip);
  if (body.length === 0) throw new JsonFault("the file is empty", 0, false);
  const nul = body.indexOf(0);
  if (nul !== -1 || isUtf16Mark(body)) {
    const hint =
      isUtf16Mark(body) || nul < 8 ? "; it looks like UTF-16 or UTF-32, save it as UTF-8" : "";
    throw new JsonFault(`the file holds NUL bytes${hint}`, Math.max(nul, 0) + skip, true);
  }
  if (!isUtf8(body)) {
    const { at, isCut } = findBadUtf8(body);
    throw new JsonFault("the file is not valid UTF-8", at + skip, !isCut);
  }
  const text = body.toString("utf8");
  const value = parseQuickly(text, body);
  const scanner = new Scanner(text, freeMembers, depthMax, value !== undefined);
  const end = scan(scanner, text, skip);
  const trimmed = text.slice(end.from, end.to);
  const object = (value ?? JSON.parse(trimmed)) as Record<string, unknown>;
  refuseHalfCharacters(object, text, skip);
  return { value: object, text: trimmed, spans: scanner.spans };
}

/**
 * Reads a text, and scans it only when JSON.parse may have hidden a fault.
 * @throws JsonFault; a SyntaxError when the text is not JSON
 */
export function parseObjectText(
  text: string,
  freeMembers: ReadonlySet<string> = new Set(),
): Record<string, unknown> {
  const isVast = text.length > JSON_MEMBERS_MAX && mayHoldTooMany(text);
  if (isVast) scan(new Scanner(text, freeMembers, JSON_DEPTH_MAX, false), text);
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new JsonFault("expected a JSON object", 0, true);
  if (!isVast && mayHide(text, value))
    scan(new Scanner(text, freeMembers, JSON_DEPTH_MAX, true), text);
  refuseHalfCharacters(value, text, 0);
  return value as Record<string, unknown>;
}

/** An escape of half a character. In well-formed text two of them make one character. */
const SURROGATE = /\\u[dD][89a-fA-F]/;

/** @param skipped bytes before the text @throws JsonFault, which names the member */
function refuseHalfCharacters(value: object, text: string, skipped: number): void {
  // The bytes are UTF-8, so only an escape can hold one. Looking for the two characters first takes a tenth of the time.
  if (!text.includes("\\u") || !SURROGATE.test(text)) return;
  const place = findHalfCharacter(value);
  if (place === undefined) return;
  const offset = Buffer.byteLength(text.slice(0, text.search(SURROGATE)), "utf8") + skipped;
  throw new JsonFault(`${place}: ${HALF_CHARACTER}`, offset, true);
}

/** @param skipped bytes before the text @throws JsonFault */
function scan(scanner: Scanner, text: string, skipped = 0): { from: number; to: number } {
  try {
    return scanner.document();
  } catch (error) {
    if (!(error instanceof ScanFault)) throw error;
    const offset = Buffer.byteLength(text.slice(0, error.at), "utf8") + skipped;
    throw new JsonFault(error.message, offset, error.isFinal);
  }
}

/** Whether JSON.parse may have dropped a duplicate key, or accepted a forbidden key or too deep nesting. May be true for a good text. */
function mayHide(text: string, value: object): boolean {
  if (text.length > JSON_MEMBERS_MAX) return true;
  let count = 0;
  for (let at = text.indexOf(":"); at !== -1; at = text.indexOf(":", at + 1)) {
    const before = text.charCodeAt(at - 1);
    // A colon after a quote is counted. After a space it may or may not be inside a string. After another character it is inside one.
    if (before === QUOTE) count++;
    else if (before <= SPACE) return true;
  }
  return countMembers(value, JSON_DEPTH_MAX) !== count;
}

/** Counts the members at all levels. NaN when it is nested too deep, or a key is forbidden. */
function countMembers(value: object, depthLeft: number): number {
  if (depthLeft === 0) return Number.NaN;
  let count = 0;
  if (Array.isArray(value)) {
    for (const member of value as unknown[])
      if (typeof member === "object" && member !== null)
        count += countMembers(member, depthLeft - 1);
    return count;
  }
  for (const key in value) {
    if (FORBIDDEN_KEYS.has(key)) return Number.NaN;
    count++;
    const member = (value as Record<string, unknown>)[key];
    if (typeof member === "object" && member !== null) count += countMembers(member, depthLeft - 1);
  }
  return count;
}

/** The value when JSON.parse accepts the text; then the scan need not check the grammar. Else undefined. */
function parseQuickly(text: string, content: Buffer): unknown {
  if (mayHoldTooMany(content)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether there may be too many members or levels. The scan refuses them faster than JSON.parse would read them. */
function mayHoldTooMany(content: Buffer | string): boolean {
  return [":", "[", "{"].some((mark) => {
    let count = 0;
    for (let at = content.indexOf(mark); at !== -1; at = content.indexOf(mark, at + 1)) {
      count++;
      if (count > JSON_MEMBERS_MAX) return true;
    }
    return false;
  });
}

function isUtf16Mark(bytes: Buffer): boolean {
  return (
    bytes.length >= 2 &&
    ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
  );
}

/** Where the first sequence that is not UTF-8 begins. `isCut`: the text ends inside that sequence. */
function findBadUtf8(bytes: Buffer): { at: number; isCut: boolean } {
  let at = 0;
  while (at < bytes.length) {
    const lead = bytes[at] ?? 0;
    const more =
      lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : -1;
    if (more < 0) return { at, isCut: false };
    for (let i = 1; i <= more; i++) {
      const next = bytes[at + i];
      if (next === undefined) return { at, isCut: true };
      // The range of the second byte excludes overlong forms, surrogates and code points above U+10FFFF.
      const from = i > 1 ? 0x80 : lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
      const to = i > 1 ? 0xbf : lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
      if (next < from || next > to) return { at, isCut: false };
    }
    at += more + 1;
  }
  return { at, isCut: false };
}
