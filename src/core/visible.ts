/** Makes text from outside safe to show in messages, records and terminals. */

/** Control characters, bidi marks and other invisible format characters, line separators, lone surrogates. */
export const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/gu;

/** Escapes characters that steer a terminal or are invisible. For example, the mark for right-to-left text becomes `\\u202e`. */
export function visible(text: string): string {
  return isPlain(text) ? text : text.replace(UNSAFE, escapeUnsafe);
}

/** How much of the beginning and the end of a message is shown (UTF-16 units), because names in it may be megabytes long. */
const HEAD_CHARS = 200;
const TAIL_CHARS = 90;

/** Escapes a message like `visible`, and also shortens it. */
export function visibleMessage(text: string): string {
  const isShort = text.length <= HEAD_CHARS + TAIL_CHARS;
  return visible(isShort ? text : `${text.slice(0, HEAD_CHARS)}…${text.slice(-TAIL_CHARS)}`);
}

/** A value as JSON on one line, with unsafe characters escaped as in `\\u202e`. Parsed, it is the same value. */
export function visibleJson(value: unknown): string {
  const json = JSON.stringify(value);
  return isPlain(json) ? json : json.replace(UNSAFE, (c) => c.split("").map(escapeUnit).join(""));
}

/** True for printable ASCII only. It is checked first, because the first use of `UNSAFE` takes some milliseconds. */
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
