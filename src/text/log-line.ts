/** Makes a line of a program's output safe for the screen: colours stay, other control sequences become text. Pure. */
import { inert } from "./inert.ts";

const SGR = /(\u001b\[[0-9;]*m)/;
const TAB_CELLS = 8;
/** Of a line longer than this, only the beginning is shown (characters). */
const LINE_CHARS_MAX = 16 * 1024;
/** Codes for colours, bold, dim, italic and underlined, and their ends. Hidden, blinking and background codes are not allowed. */
const ALLOWED = /^(?:0|1|2|3|4|22|23|24|3[0-79]|9[0-7])$/;
const CODES_MAX = 64;

/** @param isColoured false: colours are left out, too */
export function logLine(raw: string, isColoured: boolean): string {
  // A program may have overwritten the line several times. Show its last state.
  const last = raw
    .slice(0, LINE_CHARS_MAX)
    .split("\r")
    .findLast((part) => part !== "");
  const line = `${last ?? ""}${raw.length > LINE_CHARS_MAX ? "…" : ""}`;
  if (!line.includes("\u001b")) return inert(untab(line));
  let codes = 0;
  const parts = line.split(SGR).map((part, i) => {
    if (i % 2 === 0) return inert(untab(part));
    return isColoured && ++codes <= CODES_MAX ? coloursOf(part) : "";
  });
  return `${parts.join("")}${isColoured && codes > 0 ? "\u001b[0m" : ""}`;
}

/** The allowed codes of a sequence. After 38 or 48, the next codes belong to that code, so they are dropped with it. */
function coloursOf(sequence: string): string {
  const codes = sequence.slice(2, -1).split(";");
  const kept: string[] = [];
  for (let i = 0; i < codes.length; i++) {
    const code = String(Number(codes[i] ?? ""));
    if (code === "38" || code === "48") i += codes[i + 1] === "5" ? 2 : 4;
    else if (ALLOWED.test(code)) kept.push(code);
  }
  return kept.length === 0 ? "" : `\u001b[${kept.join(";")}m`;
}

function untab(text: string): string {
  if (!text.includes("\t")) return text;
  let shown = "";
  for (const part of text.split(/(\t)/))
    shown += part === "\t" ? " ".repeat(TAB_CELLS - (shown.length % TAB_CELLS)) : part;
  return shown;
}
