/**
 * Scans the text of one JSON object without making values. It finds what JSON.parse accepts but mailchute refuses (duplicate
 * keys, forbidden keys, deep nesting), and the place where a text breaks the grammar of RFC 8259.
 */
import { JSON_MEMBERS_MAX } from "../core/limits.ts";
import { visible } from "../core/visible.ts";

/** Keys that could change a prototype. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set([
  "__proto__",
  "constructor",
  "prototype",
]);

/** A fault at a character of the text. */
export class ScanFault extends Error {
  constructor(
    message: string,
    readonly at: number,
    readonly isFinal = true,
  ) {
    super(message);
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** An incomplete number at the end of the text: "-", "1.", "1e", "1e+". */
const CUT_NUMBER = /-?(?:(?:0|[1-9]\d*)(?:\.|(?:\.\d+)?[eE][+-]?)?)?$/y;
const BACKSLASH = 0x5c;
const STRING_CHUNK = /[^"\\\x00-\x1f]*/y;

export class Scanner {
  /** Where the value of each top-level member is: [from, to), counted from the opening brace. */
  readonly spans = new Map<string, [number, number]>();
  private at = 0;
  /** The place of the next backslash that the scan has found; the length of the text when there is none. */
  private backslashAt = -1;
  /** Where the object begins. */
  private origin = 0;
  /** True inside a free member: any key is allowed there. */
  private isFree = false;

  /**
   * @param freeMembers top-level members that may hold any keys
   * @param isGrammatical true when JSON.parse has accepted the text; the scan then skips the checks of JSON.parse
   */
  constructor(
    private readonly text: string,
    private readonly freeMembers: ReadonlySet<string>,
    private readonly depthMax: number,
    private readonly isGrammatical: boolean,
  ) {}

  document(): { from: number; to: number } {
    this.space();
    this.origin = this.at;
    const first = this.text[this.at];
    if (first !== "{") {
      throw first === undefined
        ? new ScanFault("the file is empty", this.at, false)
        : new ScanFault(`expected a JSON object, found ${describe(this.text, this.at)}`, this.at);
    }
    this.object(1, true);
    const to = this.at;
    this.space();
    if (this.at < this.text.length) throw new ScanFault("more text after the JSON object", this.at);
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
      throw new ScanFault(`the text ends where ${expected} is expected`, this.at, false);
    throw new ScanFault(`expected ${expected}, found ${describe(this.text, this.at)}`, this.at);
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
        throw new ScanFault("the text ends inside a number", this.text.length, false);
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

  /** Skips the opening mark. When the closing mark follows, it skips that, too, and returns false. */
  private open(depth: number, close: "}" | "]"): boolean {
    if (depth > this.depthMax)
      throw new ScanFault(`nested deeper than ${this.depthMax} levels`, this.at);
    this.at++;
    this.space();
    if (this.text[this.at] !== close) return true;
    this.at++;
    return false;
  }

  /** Skips the mark after an item. True for a comma, false for the closing mark. */
  private hasNext(close: "}" | "]"): boolean {
    this.space();
    const mark = this.text[this.at];
    if (mark !== "," && mark !== close) this.fail(`',' or '${close}'`);
    this.at++;
    if (mark === close) return false;
    this.space();
    return true;
  }

  private object(depth: number, isTop: boolean): void {
    if (!this.open(depth, "}")) return;
    const keys: Map<string, unknown> = isTop ? this.spans : new Map();
    do {
      const key = this.newKey(keys);
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
    } while (this.hasNext("}"));
  }

  private array(depth: number): void {
    if (!this.open(depth, "]")) return;
    do this.value(depth);
    while (this.hasNext("]"));
  }

  /** @param known the keys of this object so far */
  private newKey(known: ReadonlyMap<string, unknown>): string {
    if (this.text[this.at] !== '"') this.fail("a key in double quotes");
    const from = this.at;
    const key = this.key();
    if (known.size >= JSON_MEMBERS_MAX)
      throw new ScanFault(`an object has more than ${JSON_MEMBERS_MAX} members`, from);
    if (known.has(key)) throw new ScanFault(`the key ${quote(key)} is used twice`, from);
    if (FORBIDDEN_KEYS.has(key) && !this.isFree)
      throw new ScanFault(`the key ${quote(key)} is not allowed`, from);
    return key;
  }

  private key(): string {
    const from = this.at;
    const isEscaped = this.string();
    const raw = this.text.slice(from, this.at);
    return isEscaped ? (JSON.parse(raw) as string) : raw.slice(1, -1);
  }

  /** Skips a string that JSON.parse has accepted. It ends at the first quote after an even number of backslashes. */
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

  /** Skips a string. @returns whether it holds escapes */
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
      if (c === undefined) throw new ScanFault("the text ends inside a string", this.at, false);
      if (c !== "\\")
        throw new ScanFault(`a raw ${describe(this.text, this.at)} inside a string`, this.at);
      isEscaped = true;
      const next = this.text[this.at + 1];
      if (next === undefined)
        throw new ScanFault("the text ends inside a string", this.at + 1, false);
      if (next === "u") {
        const hex = this.text.slice(this.at + 2, this.at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(hex)) {
          throw new ScanFault(
            "a bad \\u escape",
            this.at,
            hex.length === 4 || !/^[0-9a-fA-F]*$/.test(hex),
          );
        }
        this.at += 6;
      } else if ('"\\/bfnrt'.includes(next)) {
        this.at += 2;
      } else {
        throw new ScanFault(
          `an unknown escape: a backslash before ${describe(this.text, this.at + 1)}`,
          this.at,
        );
      }
    }
  }
}

/** A key for a message. A long one is shortened. */
function quote(key: string): string {
  return visible(JSON.stringify(key.length > 60 ? `${key.slice(0, 57)}…` : key));
}

function describe(text: string, at: number): string {
  const code = text.codePointAt(at) ?? 0;
  return code > 0x20 && code < 0x7f
    ? `'${String.fromCodePoint(code)}'`
    : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}
