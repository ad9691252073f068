/** What is drawn, in plain data: one frame is made of this and nothing else. Types only. */
import type { LogPage } from "../../view/log-page.ts";
import type { Overview } from "../../view/overview.ts";
import type { TaskPage } from "../../view/task-page.ts";
import type { Look } from "./cells.ts";
import type { Row } from "./rows.ts";
import type { TopState } from "./state.ts";

/** A task that is open, or chosen on a wide screen. */
export interface TaskShown {
  id: string;
  /** Undefined: no tray has it now. */
  page: TaskPage | undefined;
  /** Why it has not ended; undefined when it has, or that is not known yet. */
  why: { text: string; do: string | undefined } | undefined;
  /** The name of the log, and what is read of it; undefined when there is none. */
  log: { name: string; path: string; page: LogPage; toLines: ToLines } | undefined;
}

/** A line of the log as it is drawn; a line of a coding agent's stream may be none or several. */
export type ToLines = (raw: string, width: number) => readonly string[];

export interface Frame {
  overview: Overview | undefined;
  /** The tree cannot be read now, for this reason. */
  trouble: string | undefined;
  /** By pane, as filtered. */
  panes: readonly Row[][];
  state: TopState;
  task: TaskShown | undefined;
  /** How far the last action is. */
  step: string;
  look: Look;
  isReadOnly: boolean;
  /** Epoch ms. */
  nowMs: number;
}

export interface Size {
  columns: number;
  rows: number;
}

/** The part of the log that was drawn: scrolling starts from there. */
export interface LogShown {
  rows: number;
  /** Where the first drawn line begins (bytes). */
  firstStart: number;
}
