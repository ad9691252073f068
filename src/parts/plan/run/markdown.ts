/** Puts foreign text into Markdown: shortens it, and fences it so that it cannot end its block or begin a heading. Pure. */

/** Control characters other than tab, newline and carriage return. */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

/** The first `bytesMax` bytes, cut between two characters, with a note that the text was cut. */
export function cutBytes(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= bytesMax) return text;
  let end = bytesMax;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  const kept = bytes.toString("utf8", 0, end);
  return `${kept}… [cut: ${end} bytes of ${bytes.length} shown]`;
}

/** Makes a fenced block. Its fence is longer than any in the text. @param indent number of spaces before each line */
export function fenced(text: string, language = "text", indent = 0): string {
  const lines = text
    .replace(CONTROL, "\ufffd")
    .replace(/\r\n?/g, "\n")
    .replace(/\n$/, "")
    .split("\n");
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  const pad = " ".repeat(indent);
  return [`${fence}${language}`, ...lines, fence]
    .map((line) => (line === "" ? line : pad + line))
    .join("\n");
}

/** Puts a text on one line, without control characters. */
export function flat(text: string): string {
  return text.replace(/\s+/g, " ").replace(CONTROL, "\ufffd").trim();
}
