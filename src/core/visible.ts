/** Text from outside, made safe to show: it ends up in messages, records and terminals. */

/** Control characters, bidi marks and other invisible steering, line separators, lone surrogates. */
export const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/gu;

/** Any text, and nothing in it that steers a terminal or hides: `\\u202e` for what would turn the line round. */
export function visible(text: string): string {
  return isPlain(text) ? text : text.replace(UNSAFE, escapeUnsafe);
}

/** Of a message so much is shown, the beginning and the end (UTF-16 units): the names in it may be megabytes long. */
const HEAD_CHARS = 200;
const TAIL_CHARS = 90;

/** The same for a whole message, which is for people to read. */
export function visibleMessage(text: string): string {
  const isShort = text.length <= HEAD_CHARS + TAIL_CHARS;
  return visible(isShort ? text : `${text.slice(0, HEAD_CHARS)}…${text.slice(-TAIL_CHARS)}`);
}

/** A value as JSON on one line: the same value, and what is not visible in it is written as `\\u202e`. */
export function visibleJson(value: unknown): string {
  const json = JSON.stringify(value);
  return isPlain(json) ? json : json.replace(UNSAFE, (c) => c.split("").map(escapeUnit).join(""));
}

/** Printable ASCII only. Asked first: making `UNSAFE` from the tables of Unicode takes some milliseconds at its first use. */
export function isPlain(text: string): boolean {
  return /^[ -~]*$/.test(text);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function escapeUnsafe(c: string): string {
  const code = c.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}
