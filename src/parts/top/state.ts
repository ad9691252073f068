/** What the person who looks has chosen: the pane, the row, the page, the question on the screen. Types, and pure steps on them. */
import type { Overview } from "../../view/overview.ts";
import type { Row } from "./rows.ts";

/** A row stays chosen while it is there, wherever it moves; then its place counts. */
export interface Cursor {
  key: string;
  index: number;
}

export interface GroupPage {
  kind: "group";
  /** Of its row in the pane. */
  key: string;
  pane: number;
  cursor: Cursor;
}

/** `auto`: stdout, unless only stderr has anything. */
export type Stream = "auto" | "stdout" | "stderr";

export interface TaskPageState {
  kind: "task";
  id: string;
  stream: Stream;
  /** Where the shown part of the log ends (bytes); undefined: it follows the end. */
  to: number | undefined;
  isWrapped: boolean;
  /** What `n` searches in the log. */
  search: string;
}

export type Page = GroupPage | TaskPageState;

/** What a key asks for, besides another view. */
export type Deed =
  | { does: "quit" | "interrupt" | "suspend" | "redraw" | "pause" | "resume" }
  | { does: "workers"; by: 1 | -1 }
  | { does: "retry"; ids: readonly string[] }
  | { does: "cancel"; ids: readonly string[]; isFinal: boolean }
  | { does: "answer"; id: string; text: string }
  | { does: "scroll"; by: "line" | "page" | "all"; direction: "back" | "on" }
  | { does: "search"; direction: "back" | "on"; isFirst?: boolean }
  /** A task that is in no row, by its whole id. */
  | { does: "find"; id: string };

/** A text that the person types. */
export interface InputPrompt {
  kind: "input";
  what: "filter" | "answer" | "search";
  /** What is asked. */
  label: string;
  text: string;
  /** Of the question that is answered. */
  id: string;
}

/** A yes or no. The key that asks is never the key that confirms. */
export interface ConfirmPrompt {
  kind: "confirm";
  text: string;
  /** When it was asked (ms); keys that come at once were meant for something else. */
  askedMs: number;
  /** By the key that confirms. */
  deeds: Readonly<Record<string, Deed>>;
}

/** More than a few tasks: their number has to be typed. */
export interface NumberPrompt {
  kind: "number";
  text: string;
  count: number;
  typed: string;
  deed: Deed;
}

export type Prompt = InputPrompt | ConfirmPrompt | NumberPrompt;

export interface TopState {
  pane: number;
  /** By pane. */
  cursors: readonly Cursor[];
  filter: string;
  /** Above the panes, the last one is shown. */
  pages: readonly Page[];
  prompt: Prompt | undefined;
  isHelp: boolean;
  /** An answer to the last key, until the next one. */
  note: string;
}

export const START: TopState = {
  pane: 0,
  cursors: [0, 1, 2, 3].map(() => ({ key: "", index: 0 })),
  filter: "",
  pages: [],
  prompt: undefined,
  isHelp: false,
  note: "",
};

/** Which of the rows is chosen; -1 when there is none. */
export function chosenIndex(rows: readonly Row[], { key, index }: Cursor): number {
  const at = rows.findIndex((row) => row.key === key);
  return at === -1 ? Math.min(index, rows.length - 1) : at;
}

export function cursorAt(rows: readonly Row[], index: number): Cursor {
  const at = Math.max(0, Math.min(index, rows.length - 1));
  return { key: rows[at]?.key ?? "", index: at };
}

/** The row on which the keys act; undefined when there is none. */
export function chosenRow(state: TopState, panes: readonly Row[][]): Row | undefined {
  const rows = panes[state.pane] ?? [];
  return rows[chosenIndex(rows, state.cursors[state.pane] ?? { key: "", index: 0 })];
}

export function pageOf({ pages }: Pick<TopState, "pages">): Page | undefined {
  return pages.at(-1);
}

/** The row of the pane that an open group shows; undefined when that group is gone. */
export function rowOfGroup(page: GroupPage, panes: readonly Row[][]): Row | undefined {
  return panes[page.pane]?.find((row) => row.key === page.key);
}

export interface Pressed {
  state: TopState;
  deed?: Deed;
}

export interface Around {
  overview: Overview | undefined;
  /** By pane. */
  panes: readonly Row[][];
  /** How many rows a page moves. */
  pageRows: number;
  /** Monotonic ms. */
  nowMs: number;
  /** Nothing may be changed. */
  isReadOnly: boolean;
  /** The log that is shown is that of stderr. */
  isStderr: boolean;
}
