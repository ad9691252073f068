/**
 * Reads the progress that a task itself reports: in the file `progress` of its run's folder, or else in the last line `::progress
 * 40 text` that it printed. Reads at most the end of two files.
 */
import { join } from "node:path";
import { readEnd } from "../host/regular-file.ts";

export interface TaskProgress {
  /** From 0 to 100; null when it gave no number. */
  pct: number | null;
  text: string;
}

const END_BYTES = 4096;
const TEXT_CHARS_MAX = 200;
const BAR_CELLS = 20;
const MARK = "::progress ";

export function readTaskProgress(runDir: string): TaskProgress | undefined {
  const written = readEnd(join(runDir, "progress"), END_BYTES);
  return progressIn(
    written,
    written.trim() === "" ? readEnd(join(runDir, "stdout.log"), END_BYTES) : "",
  );
}

/** @param written the end of the file `progress` @param printed the end of stdout.log, which counts when the file says nothing */
export function progressIn(written: string, printed: string): TaskProgress | undefined {
  const last = linesOf(written).at(-1);
  if (last !== undefined) return parseProgress(last);
  const line = linesOf(printed).findLast(isProgressLine);
  return line === undefined ? undefined : parseProgress(line.slice(MARK.length));
}

/** Whether a printed line reports progress. */
export function isProgressLine(line: string): boolean {
  return line.startsWith(MARK);
}

/** `40 text`, `40 % text`, `40`, or only a text. */
export function parseProgress(line: string): TaskProgress {
  const [, number, text = ""] = /^(\d{1,3}(?:\.\d{1,6})?) ?%?(?: (.*))?$/.exec(line.trim()) ?? [];
  if (number === undefined) return { pct: null, text: line.trim().slice(0, TEXT_CHARS_MAX) };
  return { pct: Math.min(100, Number(number)), text: text.trim().slice(0, TEXT_CHARS_MAX) };
}

/** `[########------------]  40 %  halfway`. The text is not made safe for a terminal here. @param hasBar false: `40 %  halfway` */
export function progressText({ pct, text }: TaskProgress, hasBar = true): string {
  if (pct === null) return text;
  const number = String(Math.floor(pct));
  return (
    hasBar ? `${bar(pct)} ${number.padStart(3)} %  ${text}` : `${number} %  ${text}`
  ).trimEnd();
}

/** `[########------------]`. It is full only at 100. */
export function bar(pct: number): string {
  const filled = Math.floor((pct / 100) * BAR_CELLS);
  return `[${"#".repeat(filled)}${"-".repeat(BAR_CELLS - filled)}]`;
}

/** The lines that hold something. The first one may have lost its beginning. */
function linesOf(text: string): string[] {
  return text.split(/\r?\n|\r/).filter((line) => line.trim() !== "");
}
