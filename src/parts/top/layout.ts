/** Draws a frame: turns plain data and a size into exactly as many lines as the terminal has rows. Pure. */
import { cutPainted, widthOf, withoutColours } from "../../text/render.ts";
import { ASCII_SIGNS, sized } from "./cells.ts";
import type { Frame, LogShown, Size } from "./frame.ts";
import { footLines, headLines } from "./head.ts";
import { helpLines } from "./help.ts";
import { groupLines, taskLines, textAndTasks } from "./pages.ts";
import { onePane, paneLines } from "./pane-lines.ts";
import { isOneTask, PANES, type Row } from "./rows.ts";
import { chosenRow, pageOf, type TopState } from "./state.ts";

/** At this width or more the chosen row is shown in full beside the panes (cells). */
const WIDE = 140;
const LEFT_SHARE = 0.55;
/** On a wide screen this pane is below the chosen row. */
const GROUPS = PANES.indexOf("groups");

const BEYOND_ASCII = /[^\0-\x7f]/gu;
const ASCII_FOR: Readonly<Record<string, string>> = { "…": "~", "–": "-", "·": "." };

export interface Drawn {
  lines: string[];
  log: LogShown;
}

const NO_LOG: LogShown = { rows: 0, firstStart: 0 };

/** The task whose page and log a frame needs; undefined when it needs none. */
export function wantedTask(
  state: TopState,
  panes: readonly Row[][],
  { columns }: Pick<Size, "columns">,
): string | undefined {
  const page = pageOf(state);
  if (page?.kind === "task") return page.id;
  if (page !== undefined || columns < WIDE) return undefined;
  const row = chosenRow(state, panes);
  return row !== undefined && isOneTask(row) ? row.ids[0] : undefined;
}

export function layout(frame: Frame, { columns, rows }: Size): Drawn {
  const isSmall = rows < 16;
  const head = headLines(frame, columns, rows < 8 ? 1 : isSmall ? 2 : 5);
  const foot = footLines(frame, columns, rows < 6 ? 1 : 2);
  const room = Math.max(1, rows - head.length - foot.length);
  const { lines: inner, log } = body(frame, { columns, rows: room });
  const shown = inner.slice(0, room).map((line) => cutPainted(line, columns));
  while (shown.length < room) shown.push("");
  const lines = [...head, ...shown, ...foot].slice(0, Math.max(1, rows));
  return { lines: frame.look.signs === ASCII_SIGNS ? lines.map(toAscii) : lines, log };
}

/** For a terminal that cannot show other characters. Each replacement takes as many cells as its character. */
function toAscii(line: string): string {
  return line.replace(BEYOND_ASCII, (c) => ASCII_FOR[c] ?? "?".repeat(widthOf(c)));
}

function body(frame: Frame, { columns, rows }: Size): Drawn {
  const { state, task } = frame;
  const page = pageOf(state);
  if (state.isHelp) return { lines: helpLines(columns), log: NO_LOG };
  if (page?.kind === "task") {
    if (task?.id !== page.id) return { lines: ["looking …"], log: NO_LOG };
    return taskLines(frame, task, page, { width: columns, rows });
  }
  if (page?.kind === "group") return { lines: groupLines(frame, page, columns, rows), log: NO_LOG };
  if (columns < WIDE) return { lines: paneLines(frame, columns, rows), log: NO_LOG };
  const left = Math.floor(columns * LEFT_SHARE);
  const width = columns - left - 3;
  const groups = Math.min(1 + (frame.panes[GROUPS]?.length ?? 0), Math.floor(rows / 3));
  const panes = paneLines(frame, left, rows, GROUPS);
  const beside = besideLines(frame, { columns: width, rows: rows - groups }).slice(
    0,
    rows - groups,
  );
  while (beside.length < rows - groups) beside.push("");
  beside.push(...onePane(frame, GROUPS, width, groups));
  const { column } = frame.look.signs;
  return {
    lines: panes.map((line, i) => `${padPainted(line, left)} ${column} ${beside[i] ?? ""}`),
    log: NO_LOG,
  };
}

/** The chosen row of the panes in full. */
function besideLines(frame: Frame, { columns, rows }: Size): string[] {
  const { state, panes, task } = frame;
  const row = chosenRow(state, panes);
  if (row === undefined) return [];
  const size = { width: columns, rows };
  const wanted = wantedTask(state, panes, { columns: WIDE });
  if (wanted === undefined) return textAndTasks(frame, row, undefined, size);
  if (task?.id !== wanted) return ["looking …"];
  return taskLines(frame, task, undefined, size).lines.map((line) => cutPainted(line, columns));
}

function padPainted(line: string, width: number): string {
  const used = widthOf(withoutColours(line));
  return used >= width ? line : line + sized("", width - used);
}
