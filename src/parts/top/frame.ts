/** The data that a frame of the screen is made of, and nothing else. Types only. */
import type { LogPage } from "../../view/log-page.ts";
import type { Overview } from "../../view/overview.ts";
import type { TaskPage } from "../../view/task-page.ts";
import type { Column } from "../../view/timeline/lay-out.ts";
import type { TimelineRun } from "../../view/timeline/timeline.ts";
import type { Look } from "./cells.ts";
import type { Row } from "./rows.ts";
import type { TopState } from "./state.ts";

/** The task whose page is open, or that is chosen on a wide screen. */
export interface TaskShown {
  id: string;
  /** Undefined when no tray has the task now. */
  page: TaskPage | undefined;
  /** Why it has not ended; undefined when it has ended, or when the reason is not known yet. */
  why: { text: string; do: string | undefined } | undefined;
  /** The name of the log, and the part that was read; undefined when there is no log. */
  log: { name: string; path: string; page: LogPage; toLines: ToLines } | undefined;
}

/** Turns a line of the log into lines to draw. A line of a coding agent's stream may become none or several. */
export type ToLines = (raw: string, width: number) => readonly string[];

export interface PastShown {
  /** The line of blocks; null: not known. */
  columns: readonly (Column | null)[];
  /** The tasks that ended last, the latest one first. */
  ended: readonly TimelineRun[];
}

export interface Frame {
  overview: Overview | undefined;
  /** Why the tree cannot be read now; undefined when it can. */
  trouble: string | undefined;
  /** What ran in the last hours, as far as the journal was read. */
  past: PastShown | undefined;
  /** The rows of each pane that the filter leaves. */
  panes: readonly Row[][];
  state: TopState;
  task: TaskShown | undefined;
  /** The progress of the last action, as text. */
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

/** The part of the log that was drawn. Scrolling starts from there. */
export interface LogShown {
  rows: number;
  /** Where the first drawn line begins (bytes). */
  firstStart: number;
}
