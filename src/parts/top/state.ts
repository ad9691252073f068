/** What the person has chosen on the screen: the pane, the row, the page, the prompt. Types, and pure steps on them. */
import type { Overview } from "../../view/overview.ts";
import { PANES, type Row } from "./rows.ts";

/** The chosen row. It stays chosen wherever it moves. When it is gone, the row at its index is chosen. */
export interface Cursor {
  key: string;
  index: number;
}

export interface GroupPage {
  kind: "group";
  /** The key of its row in the pane. */
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
  /** Where the shown part of the log ends (bytes); undefined while it follows the end. */
  to: number | undefined;
  isWrapped: boolean;
  /** The text that `n` searches in the log. */
  search: string;
}

export type Page = GroupPage | TaskPageState;

/** What a key asks for, apart from another view. */
export type Deed =
  | { does: "quit" | "interrupt" | "suspend" | "redraw" | "pause" | "resume" }
  | { does: "workers"; by: 1 | -1 }
  | { does: "retry"; ids: readonly string[] }
  | { does: "cancel"; ids: readonly string[]; isFinal: boolean }
  | { does: "answer"; id: string; text: string }
  | { does: "scroll"; by: "line" | "page" | "all"; direction: "back" | "on" }
  | { does: "search"; direction: "back" | "on"; isFirst?: boolean }
  /** Opens a task that is in no row, by its whole id. */
  | { does: "find"; id: string };

/** A text that the person types. */
export interface InputPrompt {
  kind: "input";
  what: "filter" | "answer" | "search";
  /** The text of the prompt. */
  label: string;
  text: string;
  /** The id of the question that is answered; "" for other inputs. */
  id: string;
}

/** A yes or no. The key that asks is never the key that confirms. */
export interface ConfirmPrompt {
  kind: "confirm";
  text: string;
  /** When it was asked (ms). Keys that come at once were meant for something else. */
  askedMs: number;
  /** The deeds, by the key that confirms each. */
  deeds: Readonly<Record<string, Deed>>;
}

/** To act on many tasks the person must type their number. */
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
  /** The cursor of each pane. */
  cursors: readonly Cursor[];
  filter: string;
  /** The pages that are open above the panes. The last one is shown. */
  pages: readonly Page[];
  prompt: Prompt | undefined;
  isHelp: boolean;
  /** An answer to the last key, shown until the next key. */
  note: string;
}

export const START: TopState = {
  pane: 0,
  cursors: PANES.map(() => ({ key: "", index: 0 })),
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
  /** The rows of each pane. */
  panes: readonly Row[][];
  /** How many rows PgUp and PgDn move. */
  pageRows: number;
  /** Monotonic ms. */
  nowMs: number;
  /** True if keys must not change the pool. */
  isReadOnly: boolean;
  /** True while the log of stderr is shown. */
  isStderr: boolean;
}
