/** Finds where lines, list items and their dashes begin and end in a text. Offsets are in UTF-16 units. Pure. */

/** The offset of the dash of the list item that begins at or before `start`; -1 if there is none. */
export function findDash(text: string, start: number): number {
  let at = start - 1;
  while (at >= 0 && /\s/.test(text[at] as string)) at--;
  if (text[at] === "-") return at;
  // An anchor, a tag or a comment is between the dash and the item.
  for (let lineStart = text.lastIndexOf("\n", start - 1) + 1; ; ) {
    const lineEnd = Math.min(start, endOfLine(text, lineStart));
    const match = /^\s*-(?=\s|$)/.exec(text.slice(lineStart, lineEnd));
    if (match !== null) return lineStart + match[0].length - 1;
    if (lineStart === 0) return -1;
    lineStart = text.lastIndexOf("\n", lineStart - 2) + 1;
  }
}

/** The column of the dash before a list item, or -1 if there is no dash right before it on its line. */
export function dashColumn(text: string, start: number): number {
  const lineStart = text.lastIndexOf("\n", start) + 1;
  const match = /^( *)- +$/.exec(text.slice(lineStart, start));
  return match === null ? -1 : (match[1] ?? "").length;
}

/** Skips line breaks and blank lines from the end of a line. @returns the start of the next line with text, or the end of the text */
export function skipBlankLines(text: string, lineEnd: number): number {
  const match = /^(?:[ \t]*\r?\n)+/.exec(text.slice(lineEnd));
  return lineEnd + (match?.[0].length ?? 0);
}

export function trimEnd(text: string, start: number, end: number): number {
  return start + text.slice(start, end).trimEnd().length;
}

/** The offset of the line break (`\n` or `\r\n`) at or after `from`, or the text's end. */
export function endOfLine(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  if (at < 0) return text.length;
  return text[at - 1] === "\r" && at > from ? at - 1 : at;
}

/** The line break at an offset; at the end of the text, the kind of line break that the text uses. */
export function newlineAt(text: string, at: number): string {
  if (at >= text.length) {
    const first = text.indexOf("\n");
    return first > 0 && text[first - 1] === "\r" ? "\r\n" : "\n";
  }
  return text[at] === "\r" ? "\r\n" : "\n";
}
