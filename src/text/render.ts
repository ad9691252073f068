/** Formats text for people: tables that fit the terminal, times, durations and colours. Escapes what could steer the terminal. */

import { isPlain, UNSAFE } from "../core/visible.ts";

const ESCAPE = "\u001b";
const RESET = `${ESCAPE}[0m`;
/** Control sequences that are not escaped: colours, line breaks and tabs. */
const HARMLESS = new RegExp(`(${ESCAPE}\\[[0-9;]*m|\\r?\\n|\\t)`);
const COLOUR = new RegExp(`(${ESCAPE}\\[[0-9;]*m)`);
const SHORT_ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Makes any text safe to print on one line. */
export function safe(text: unknown): string {
  const plain = typeof text === "string" ? text : (JSON.stringify(text) ?? "");
  if (isPlain(plain)) return plain;
  return plain.replace(UNSAFE, (c) => {
    const short = SHORT_ESCAPES[c];
    if (short !== undefined) return short;
    const code = c.codePointAt(0) ?? 0;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}

/** Makes the output of a program safe to print. Line breaks, tabs and colours stay; other unsafe characters are escaped. */
export function safeOutput(text: string): string {
  if (isPlain(text)) return text;
  return text
    .split(HARMLESS)
    .map((part, index) => (index % 2 === 1 ? part : safe(part)))
    .join("");
}

/** For a line of a screen: only colours stay, and everything else that could steer the terminal is escaped. */
export function safePainted(line: string): string {
  if (isPlain(line)) return line;
  return line
    .split(COLOUR)
    .map((part, index) => (index % 2 === 1 ? part : safe(part)))
    .join("");
}

/** A line of a screen without its colours. */
export function withoutColours(line: string): string {
  return line.includes(ESCAPE)
    ? line
        .split(COLOUR)
        .filter((_, i) => i % 2 === 0)
        .join("")
    : line;
}

export type Paint = "red" | "green" | "yellow" | "cyan" | "dim" | "bold" | "inverse";
const CODES: Readonly<Record<Paint, [number, number]>> = {
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
  dim: [2, 22],
  bold: [1, 22],
  inverse: [7, 27],
};

export function paint(isOn: boolean, how: Paint, text: string): string {
  const [on, off] = CODES[how];
  return isOn ? `\x1b[${on}m${text}\x1b[${off}m` : text;
}

const MS: readonly [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

/** A duration in at most two units: "250 ms", "3.2 s", "4 min 10 s", "2 h 5 min", "3 d 4 h". */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "?";
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toString()} s`;
  for (const [index, [unit, size]] of MS.entries()) {
    if (ms < size) continue;
    const whole = Math.floor(ms / size);
    const [nextUnit, nextSize] = MS[index + 1] ?? ["", 0];
    const rest = nextSize === 0 ? 0 : Math.floor((ms % size) / nextSize);
    return rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${nextUnit}`;
  }
  return "0 ms";
}

/** "3 s ago", "just now", or "in 5 min" for a time in the future. */
export function ago(thenMs: number, nowMs: number): string {
  const past = nowMs - thenMs;
  if (!Number.isFinite(past)) return "?";
  if (past < -1000) return `in ${coarse(nearest(-past))}`;
  return past < 1000 ? "just now" : `${coarse(past)} ago`;
}

/** Rounds to whole units, so that what was put off by 2 h is not "in 1 h" a moment later. */
function nearest(ms: number): number {
  const [, size] = unitOf(ms);
  return Math.round(ms / size) * size;
}

function unitOf(ms: number): readonly [string, number] {
  return MS.find(([, one]) => ms >= one) ?? ["s", 1000];
}

/** A duration in one unit. */
function coarse(ms: number): string {
  const [unit, size] = unitOf(ms);
  return `${Math.floor(ms / size)} ${unit}`;
}

/** "12,345"; or "100,000+" when counting stopped at that number. */
export function countText(count: number, isExact = true): string {
  // `toLocaleString` is not used, because it takes some milliseconds at its first use.
  const digits = String(count).replace(/\B(?=(\d{3})+$)/g, ",");
  return `${digits}${isExact ? "" : "+"}`;
}

/** `1,204`, `100,000+`, or `~1,204` for a count from some time ago. */
export function countOf(of: { count: number; is_exact: boolean; is_old?: true }): string {
  return of.is_old === true ? `~${countText(of.count)}` : countText(of.count, of.is_exact);
}

/** "1 slot", "3 slots". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Characters that terminals draw two cells wide: East Asian wide characters, and emoji that are shown as pictures by default. */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|(?![\u{1f1e6}-\u{1f1ff}])\p{Emoji_Presentation}/u;
const NO_WIDTH = /[\p{Mn}\p{Me}\u1160-\u11ff]/u;
/** Texts of Latin letters, dashes, lines and blocks only. Nearly all texts on a screen are of this kind. */
const ONE_CELL_EACH = /^[\0-\u02ff\u2010-\u2027\u2500-\u25fc]*$/;

/** How many cells a text takes on a terminal. */
export function widthOf(text: string): number {
  if (ONE_CELL_EACH.test(text)) return text.length;
  let width = 0;
  for (const c of text) {
    if (c <= "~") width += 1;
    else if (!NO_WIDTH.test(c)) width += WIDE.test(c) ? 2 : 1;
  }
  return width;
}

/** Cuts a text to `max` cells. The last cell then holds an ellipsis. */
export function cut(text: string, max: number): string {
  if (widthOf(text) <= max) return text;
  if (ONE_CELL_EACH.test(text)) return `${text.slice(0, Math.max(0, max - 1))}…`;
  let kept = "";
  let width = 0;
  for (const c of text) {
    width += widthOf(c);
    if (width > max - 1) break;
    kept += c;
  }
  return `${kept}…`;
}

/** Like `cut`, for a line that may hold colours of mailchute. */
export function cutPainted(line: string, max: number): string {
  // The odd parts are colours, which take no cell.
  const parts = line.split(COLOUR);
  if (widthOf(parts.filter((_, i) => i % 2 === 0).join("")) <= max) return line;
  let kept = "";
  let room = max - 1;
  for (const [i, part] of parts.entries()) {
    const width = i % 2 === 1 ? 0 : widthOf(part);
    // The added blank makes the part too long, so that `cut` ends it with an ellipsis.
    if (width > room)
      return `${kept}${cut(`${part} `, room + 1)}${kept.includes(ESCAPE) ? RESET : ""}`;
    kept += part;
    room -= width;
  }
  return kept;
}

export interface Column {
  title: string;
  align?: "right";
  /** The column may be cut down to this many cells. When left out, it is never cut. */
  min?: number;
  paint?: (cell: string, row: number) => string;
}

/** The lines of a table, at most `width` cells wide. The widest column that may be cut is cut first. Cells must be `safe`. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
  colour: boolean,
): string[] {
  const gap = 2;
  const widths = columns.map((column, i) =>
    Math.max(widthOf(column.title), ...rows.map((row) => widthOf(row[i] ?? ""))),
  );
  for (let over = sum(widths) + gap * (columns.length - 1) - width; over > 0; ) {
    const slack = columns.map((column, i) =>
      column.min === undefined ? 0 : (widths[i] ?? 0) - Math.max(column.min, widthOf(column.title)),
    );
    const widest = slack.reduce(
      (best, value, i) =>
        value > 0 && (best < 0 || (widths[i] ?? 0) > (widths[best] ?? 0)) ? i : best,
      -1,
    );
    if (widest < 0) break;
    const taken = Math.min(over, slack[widest] ?? 0, Math.max(1, Math.ceil(over / 2)));
    widths[widest] = (widths[widest] ?? 0) - taken;
    over -= taken;
  }
  const line = (cells: readonly string[], style: (text: string, i: number) => string): string =>
    columns
      .map((column, i) => {
        const room = widths[i] ?? 0;
        const text = cut(cells[i] ?? "", room);
        const pad = " ".repeat(Math.max(0, room - widthOf(text)));
        const shown = style(text, i);
        if (column.align === "right") return pad + shown;
        return i === columns.length - 1 ? shown : shown + pad;
      })
      .join(" ".repeat(gap))
      .trimEnd();
  return [
    line(
      columns.map((column) => column.title),
      (text) => paint(colour, "bold", text),
    ),
    ...rows.map((row, r) => line(row, (text, i) => columns[i]?.paint?.(text, r) ?? text)),
  ];
}

/** A table with a text for each row: beside the row if it fits, else below it in several lines. Texts must be `safe`. */
export function tableWithTexts(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  texts: readonly string[],
  width: number,
  colour: boolean,
  linesMax = Number.POSITIVE_INFINITY,
): string[] {
  const [head = "", ...lines] = table(columns, rows, width, colour);
  const at = Math.max(...lines.map(widthOf)) + 2;
  const shown = lines.flatMap((line, i) => {
    const text = texts[i] ?? "";
    if (text === "") return [line];
    if (at + widthOf(text) <= width) return [line + " ".repeat(at - widthOf(line)) + text];
    const parts = fold(text, width - 4);
    const last = parts[linesMax - 1];
    if (last !== undefined && parts.length > linesMax)
      parts.splice(linesMax - 1, parts.length, cut(`${last} …`, width - 4));
    return [line, ...parts.map((part) => `    ${part}`)];
  });
  return [head, ...shown];
}

/** Breaks text at spaces into lines of at most `width` cells. All lines after the first are indented. */
export function wrap(text: string, width: number, indent = 0): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/ +/)) {
    if (
      line !== "" &&
      widthOf(line) + 1 + widthOf(word) > width - (lines.length === 0 ? 0 : indent)
    ) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  lines.push(line);
  return lines.map((one, i) => (i === 0 ? one : " ".repeat(indent) + one));
}

/** Like `wrap`, but also breaks words that are longer than a line. */
export function fold(text: string, width: number): string[] {
  return wrap(text, width).flatMap((line) => {
    if (widthOf(line) <= width) return [line];
    const parts: string[] = [];
    let part = "";
    let used = 0;
    for (const c of line) {
      const cells = widthOf(c);
      if (used + cells > width) {
        parts.push(part);
        part = "";
        used = 0;
      }
      part += c;
      used += cells;
    }
    return [...parts, part];
  });
}

/** "12 done, 1 failed". Counts of zero are left out. */
export function describeCounts(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name.replaceAll("_", " ")}`);
  return parts.length === 0 ? "nothing in it" : parts.join(", ");
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}
