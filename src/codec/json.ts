/** Bytes in, one strict JSON object out: no duplicate keys, no deep nesting, no half of UTF-8. Knows nothing of tasks. */
import { isUtf8 } from "node:buffer";
import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX } from "../core/limits.ts";
import { visible } from "../core/visible.ts";

/** A fault in the text, with the byte it was found at. */
export class JsonFault extends Error {
  readonly offset: number;
  /** False when more bytes could still make the text whole (a half-written file). */
  readonly isFinal: boolean;
  constructor(message: string, offset: number, isFinal: boolean) {
    super(message);
    this.name = "JsonFault";
    this.offset = offset;
    this.isFinal = isFinal;
  }
}

export interface JsonObject {
  value: Record<string, unknown>;
  /** The text as it was, without a byte order mark and surrounding white space. */
  text: string;
}

export interface ScannedObject extends JsonObject {
  /** Where the value of each top-level member stands in `text`: [from, to). */
  spans: Map<string, [number, number]>;
}

const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/**
 * Reads exactly one JSON object.
 * @param freeMembers top-level members whose inside is the user's own (any keys allowed)
 * @throws JsonFault
 */
export function parseObject(
  bytes: Buffer,
  freeMembers: ReadonlySet<string> = new Set(),
): JsonObject {
  // As nearly all are. Too many members, or levels, do not fit into so little.
  if (bytes.length <= JSON_MEMBERS_MAX && isUtf8(bytes)) {
    const text = bytes.toString("utf8");
    try {
      return { value: parseObjectText(text, freeMembers), text: text.trim() };
    } catch {
      // What is wrong, and where, the scan tells.
    }
  }
  return scanObject(bytes, freeMembers);
}

/**
 * The same, read by our own eyes, and with the places of its members.
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
  return {
    value: (value ?? JSON.parse(trimmed)) as Record<string, unknown>,
    text: trimmed,
    spans: scanner.spans,
  };
}

/**
 * The same for a text: what can hide nothing from `JSON.parse` is not scanned a second time.
 * @throws JsonFault; a SyntaxError when it is no JSON
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
  return value as Record<string, unknown>;
}

/** @param skipped bytes before the text @throws JsonFault */
function scan(scanner: Scanner, text: string, skipped = 0): { from: number; to: number } {
  try {
    return scanner.document();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const offset = Buffer.byteLength(text.slice(0, error.at), "utf8") + skipped;
    throw new JsonFault(error.message, offset, error.isFinal);
  }
}

/** False when the text surely has as many members as the value, none of a forbidden name, and is small in every way. */
function mayHide(text: string, value: object): boolean {
  if (text.length > JSON_MEMBERS_MAX) return true;
  let count = 0;
  for (let at = text.indexOf(":"); at !== -1; at = text.indexOf(":", at + 1)) {
    const before = text.charCodeAt(at - 1);
    // Behind a space it may stand in a string or not; behind anything else, in one.
    if (before === QUOTE) count++;
    else if (before <= SPACE) return true;
  }
  return countMembers(value, JSON_DEPTH_MAX) !== count;
}

/** Of it and all that is in it; NaN when it is nested too deep, or a name is forbidden. */
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

/** The value, when the grammar of RFC 8259 holds: then only what JSON.parse forgives is left to be checked. */
function parseQuickly(text: string, content: Buffer): unknown {
  if (mayHoldTooMany(content)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether there may be too many members, or levels: to make them takes longer than to refuse them. */
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

/** Where the first sequence that is not UTF-8 begins. `isCut`: it is only short of bytes at the end of the text. */
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
      // The second byte is what rules out overlong forms, surrogates and what lies above U+10FFFF.
      const from = i > 1 ? 0x80 : lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
      const to = i > 1 ? 0xbf : lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
      if (next < from || next > to) return { at, isCut: false };
    }
    at += more + 1;
  }
  return { at, isCut: false };
}

class Fault extends Error {
  readonly at: number;
  readonly isFinal: boolean;
  constructor(message: string, at: number, isFinal = true) {
    super(message);
    this.at = at;
    this.isFinal = isFinal;
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** A number that the end of the text cuts short: "-", "1.", "1e", "1e+". */
const CUT_NUMBER = /-?(?:(?:0|[1-9]\d*)(?:\.|(?:\.\d+)?[eE][+-]?)?)?$/y;
const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const STRING_CHUNK = /[^"\\\x00-\x1f]*/y;

/** Checks the grammar of RFC 8259, unless that holds already, and what JSON.parse forgives: duplicate keys, depth, dangerous keys. */
class Scanner {
  readonly spans = new Map<string, [number, number]>();
  private readonly text: string;
  private readonly freeMembers: ReadonlySet<string>;
  private readonly depthMax: number;
  private readonly isGrammatical: boolean;
  private at = 0;
  /** The next backslash, as far as it was looked for. */
  private backslashAt = -1;
  /** Where the object begins: spans are counted from here. */
  private origin = 0;
  private isFree = false;

  constructor(
    text: string,
    freeMembers: ReadonlySet<string>,
    depthMax: number,
    isGrammatical: boolean,
  ) {
    this.text = text;
    this.freeMembers = freeMembers;
    this.depthMax = depthMax;
    this.isGrammatical = isGrammatical;
  }

  document(): { from: number; to: number } {
    this.space();
    this.origin = this.at;
    const first = this.text[this.at];
    if (first !== "{") {
      throw first === undefined
        ? new Fault("the file is empty", this.at, false)
        : new Fault(`expected a JSON object, found ${describe(this.text, this.at)}`, this.at);
    }
    this.object(1, true);
    const to = this.at;
    this.space();
    if (this.at < this.text.length) throw new Fault("more text after the JSON object", this.at);
    return { from: this.origin, to };
  }

  private space(): void {
    for (; this.at < this.text.length; this.at++) {
      const c = this.text.charCodeAt(this.at);
      if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return;
    }
  }

  private fail(expected: string): never {
    if (this.at >= this.text.length)
      throw new Fault(`the text ends where ${expected} is expected`, this.at, false);
    throw new Fault(`expected ${expected}, found ${describe(this.text, this.at)}`, this.at);
  }

  private value(depth: number): void {
    switch (this.text[this.at]) {
      case "{":
        this.object(depth + 1, false);
        return;
      case "[":
        this.array(depth + 1);
        return;
      case '"':
        this.string();
        return;
      case "t":
        this.word("true");
        return;
      case "f":
        this.word("false");
        return;
      case "n":
        this.word("null");
        return;
      default:
        this.number();
    }
  }

  private number(): void {
    NUMBER.lastIndex = this.at;
    const length = NUMBER.test(this.text) ? NUMBER.lastIndex - this.at : 0;
    const next = this.text[this.at + length];
    if (next === undefined && length === 0) this.fail("a value");
    if (length === 0 || next === "." || next === "e" || next === "E") {
      CUT_NUMBER.lastIndex = this.at;
      if (CUT_NUMBER.test(this.text))
        throw new Fault("the text ends inside a number", this.text.length, false);
    }
    if (length === 0) this.fail("a value");
    this.at += length;
  }

  private word(word: string): void {
    for (const c of word) {
      if (this.text[this.at] !== c) this.fail(`"${word}"`);
      this.at++;
    }
  }

  private deepen(depth: number): void {
    if (depth > this.depthMax)
      throw new Fault(`nested deeper than ${this.depthMax} levels`, this.at);
    this.at++;
    this.space();
  }

  private object(depth: number, isTop: boolean): void {
    this.deepen(depth);
    if (this.text[this.at] === "}") {
      this.at++;
      return;
    }
    const keys: Map<string, unknown> = isTop ? this.spans : new Map();
    for (;;) {
      if (this.text[this.at] !== '"') this.fail("a key in double quotes");
      const keyAt = this.at;
      const key = this.key();
      if (keys.size >= JSON_MEMBERS_MAX)
        throw new Fault(`an object has more than ${JSON_MEMBERS_MAX} members`, keyAt);
      if (keys.has(key)) throw new Fault(`the key ${quote(key)} is there twice`, keyAt);
      if (FORBIDDEN_KEYS.has(key) && !this.isFree) {
        throw new Fault(`the key ${quote(key)} is not allowed`, keyAt);
      }
      this.space();
      if (this.text[this.at] !== ":") this.fail("':'");
      this.at++;
      this.space();
      const from = this.at;
      if (isTop) this.isFree = this.freeMembers.has(key);
      this.value(depth);
      if (isTop) {
        this.isFree = false;
        this.spans.set(key, [from - this.origin, this.at - this.origin]);
      } else {
        keys.set(key, true);
      }
      this.space();
      const next = this.text[this.at];
      if (next === "}") {
        this.at++;
        return;
      }
      if (next !== ",") this.fail("',' or '}'");
      this.at++;
      this.space();
    }
  }

  private array(depth: number): void {
    this.deepen(depth);
    if (this.text[this.at] === "]") {
      this.at++;
      return;
    }
    for (;;) {
      this.value(depth);
      this.space();
      const next = this.text[this.at];
      if (next === "]") {
        this.at++;
        return;
      }
      if (next !== ",") this.fail("',' or ']'");
      this.at++;
      this.space();
    }
  }

  private key(): string {
    const from = this.at;
    const isEscaped = this.string();
    const raw = this.text.slice(from, this.at);
    return isEscaped ? (JSON.parse(raw) as string) : raw.slice(1, -1);
  }

  /** The same for a string that is known to be good: its end is the first quote behind an even number of backslashes. */
  private stepOverString(): boolean {
    const { text } = this;
    const from = this.at + 1;
    let end = text.indexOf('"', from);
    for (;;) {
      let back = end;
      while (text.charCodeAt(back - 1) === BACKSLASH && back > from) back--;
      if ((end - back) % 2 === 0) break;
      end = text.indexOf('"', end + 1);
    }
    this.at = end + 1;
    if (this.backslashAt < from) {
      const next = text.indexOf("\\", from);
      this.backslashAt = next === -1 ? text.length : next;
    }
    return this.backslashAt < end;
  }

  /** Steps over a string. True when it holds escapes. */
  private string(): boolean {
    if (this.isGrammatical) return this.stepOverString();
    let isEscaped = false;
    this.at++;
    for (;;) {
      STRING_CHUNK.lastIndex = this.at;
      if (STRING_CHUNK.test(this.text)) this.at = STRING_CHUNK.lastIndex;
      const c = this.text[this.at];
      if (c === '"') {
        this.at++;
        return isEscaped;
      }
      if (c === undefined) throw new Fault("the text ends inside a string", this.at, false);
      if (c !== "\\")
        throw new Fault(`a raw ${describe(this.text, this.at)} inside a string`, this.at);
      isEscaped = true;
      const next = this.text[this.at + 1];
      if (next === undefined) throw new Fault("the text ends inside a string", this.at + 1, false);
      if (next === "u") {
        const hex = this.text.slice(this.at + 2, this.at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(hex)) {
          throw new Fault(
            "a bad \\u escape",
            this.at,
            hex.length === 4 || !/^[0-9a-fA-F]*$/.test(hex),
          );
        }
        this.at += 6;
      } else if ('"\\/bfnrt'.includes(next)) {
        this.at += 2;
      } else {
        throw new Fault(
          `an unknown escape: a backslash before ${describe(this.text, this.at + 1)}`,
          this.at,
        );
      }
    }
  }
}

/** A key as it may stand in a message: whole or shortened, never a megabyte. */
function quote(key: string): string {
  return visible(JSON.stringify(key.length > 60 ? `${key.slice(0, 57)}…` : key));
}

function describe(text: string, at: number): string {
  const code = text.codePointAt(at) ?? 0;
  return code > 0x20 && code < 0x7f
    ? `'${String.fromCodePoint(code)}'`
    : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}
