/** Turns colour sequences of a log line into names of colours for the page. All other control characters become text. Pure. */
import { logLine } from "../../text/log-line.ts";
import type { PlainLine } from "./page.ts";

const SGR = /\u001b\[([0-9;]*)m/;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
/** A line with more parts than this is shown without its colours. */
const PARTS_MAX = 200;

interface Style {
  colour: string;
  isBold: boolean;
  isDim: boolean;
  isUnderlined: boolean;
}

const PLAIN: Style = { colour: "", isBold: false, isDim: false, isUnderlined: false };

/** @param raw the line as a program wrote it */
export function colouredLine(raw: string): PlainLine {
  return colouredText(logLine(raw, true));
}

/** @param text a text that has no control characters except those of colours */
export function colouredText(text: string): PlainLine {
  if (!text.includes("\u001b")) return text;
  const pieces = text.split(SGR);
  if (pieces.length > PARTS_MAX) return pieces.filter((_, i) => i % 2 === 0).join("");
  const parts: [string, string][] = [];
  let style = PLAIN;
  for (const [i, piece] of pieces.entries()) {
    if (i % 2 === 1) style = piece.split(";").reduce(after, style);
    else if (piece !== "") parts.push([piece, namesOf(style)]);
  }
  return parts.every(([, names]) => names === "") ? parts.map(([one]) => one).join("") : parts;
}

/** Marks each place of a text in a line. */
export function markedLine(line: PlainLine, find: string): PlainLine {
  const parts: [string, string][] = typeof line === "string" ? [[line, ""]] : line;
  if (find === "" || !parts.some(([text]) => text.includes(find))) return line;
  return parts.flatMap(([text, names]) =>
    text.split(find).flatMap((piece, at): [string, string][] => {
      const mark: [string, string][] = at === 0 ? [] : [[find, `${names} mark`.trim()]];
      return piece === "" ? mark : [...mark, [piece, names]];
    }),
  );
}

export function isMarked(line: PlainLine): boolean {
  return typeof line !== "string" && line.some(([, names]) => names.endsWith("mark"));
}

function after(style: Style, code: string): Style {
  const number = Number(code);
  if (number === 0) return PLAIN;
  if (number === 1) return { ...style, isBold: true };
  if (number === 2) return { ...style, isDim: true };
  if (number === 4) return { ...style, isUnderlined: true };
  if (number === 22) return { ...style, isBold: false, isDim: false };
  if (number === 24) return { ...style, isUnderlined: false };
  if (number === 39) return { ...style, colour: "" };
  const colour = NAMES[number >= 90 ? number - 90 : number - 30];
  return colour === undefined ? style : { ...style, colour };
}

function namesOf({ colour, isBold, isDim, isUnderlined }: Style): string {
  const names = [colour, isBold ? "bold" : "", isDim ? "dim" : "", isUnderlined ? "under" : ""];
  return names.filter((name) => name !== "").join(" ");
}
