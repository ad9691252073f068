/** Turns a key into another view or a deed. Pure. */
import { act } from "./act.ts";
import type { Key } from "./keys.ts";
import { pressInPrompt } from "./press-prompt.ts";
import { isOneTask, PANES, type Row, tasksOf } from "./rows.ts";
import {
  type Around,
  type Cursor,
  chosenIndex,
  cursorAt,
  type Deed,
  type GroupPage,
  type Page,
  type Pressed,
  pageOf,
  rowOfGroup,
  type TaskPageState,
  type TopState,
} from "./state.ts";

export function press(state: TopState, key: Key, around: Around): Pressed {
  const always = pressAlways(key.name);
  if (always !== undefined) return { state, deed: always };
  if (state.prompt !== undefined) return pressInPrompt(state, state.prompt, key, around.nowMs);
  // Pasted text counts only in a prompt.
  if (key.name === "paste") return { state };
  const quiet = state.note === "" ? state : { ...state, note: "" };
  if (quiet.isHelp)
    return key.name === "q"
      ? { state: quiet, deed: { does: "quit" } }
      : { state: { ...quiet, isHelp: false } };
  const page = pageOf(quiet);
  const own =
    page === undefined
      ? pressInPanes(quiet, key.name, around)
      : page.kind === "group"
        ? pressInGroup(quiet, page, key.name, around)
        : pressInTask(quiet, page, key.name, around);
  return own ?? pressAnywhere(quiet, key.name, around);
}

function pressAlways(name: string): Deed | undefined {
  if (name === "ctrl-c") return { does: "interrupt" };
  if (name === "ctrl-z") return { does: "suspend" };
  return name === "ctrl-l" ? { does: "redraw" } : undefined;
}

/** The index to which a key moves in a list; undefined for another key. */
function moved(name: string, index: number, count: number, pageRows: number): number | undefined {
  switch (name) {
    case "up":
    case "k":
      return index - 1;
    case "down":
    case "j":
      return index + 1;
    case "pgup":
      return index - pageRows;
    case "pgdn":
      return index + pageRows;
    case "g":
    case "home":
      return 0;
    case "G":
    case "end":
      return count - 1;
    default:
      return undefined;
  }
}

function withCursor(state: TopState, pane: number, cursor: Cursor): TopState {
  return { ...state, pane, cursors: state.cursors.map((one, i) => (i === pane ? cursor : one)) };
}

function pressInPanes(state: TopState, name: string, around: Around): Pressed | undefined {
  const { pane } = state;
  const rows = around.panes[pane] ?? [];
  const index = chosenIndex(rows, state.cursors[pane] ?? cursorAt(rows, 0));
  const to = moved(name, index, rows.length, around.pageRows);
  if (to !== undefined) return { state: withCursor(state, pane, cursorAt(rows, to)) };
  const toPane = (next: number): Pressed => ({
    state: { ...state, pane: (next + PANES.length) % PANES.length },
  });
  switch (name) {
    case "tab":
      return toPane(pane + 1);
    case "backtab":
      return toPane(pane - 1);
    case "1":
    case "2":
    case "3":
    case "4":
    case "5":
    case "6":
      return toPane(Number(name) - 1);
    case "n":
    case "N":
      return { state: toNext(state, around.panes, index, name === "n" ? 1 : -1) };
    case "/":
      return ask(state, "filter", "filter", state.filter);
    case "enter":
    case "right":
      return { state: open(state, rows[index]) };
    case "esc":
    case "left":
      return { state: { ...state, filter: "" } };
    default:
      return undefined;
  }
}

/** Chooses the next row, or the first one of the next pane that has rows. */
function toNext(
  state: TopState,
  panes: readonly Row[][],
  index: number,
  direction: 1 | -1,
): TopState {
  const rows = panes[state.pane] ?? [];
  const next = index + direction;
  if (next >= 0 && next < rows.length) return withCursor(state, state.pane, cursorAt(rows, next));
  for (let n = 1; n <= PANES.length; n++) {
    const pane = (state.pane + n * direction + PANES.length * 2) % PANES.length;
    const others = panes[pane] ?? [];
    if (others.length === 0) continue;
    return withCursor(state, pane, cursorAt(others, direction === 1 ? 0 : others.length - 1));
  }
  return { ...state, note: "nothing else matches" };
}

function ask(state: TopState, what: "filter" | "search", label: string, text: string): Pressed {
  return { state: { ...state, prompt: { kind: "input", what, label, text, id: "" } } };
}

/** Opens the page of a row. */
function open(state: TopState, row: Row | undefined): TopState {
  if (row === undefined) return state;
  const [only] = row.ids;
  if (only !== undefined && isOneTask(row)) return push(state, taskPage(only));
  return push(state, {
    kind: "group",
    key: row.key,
    pane: state.pane,
    cursor: { key: "", index: 0 },
  });
}

export function taskPage(id: string): TaskPageState {
  return { kind: "task", id, stream: "auto", to: undefined, isWrapped: false, search: "" };
}

function push(state: TopState, page: Page): TopState {
  return { ...state, pages: [...state.pages, page] };
}

function replacePage(state: TopState, page: Page): TopState {
  return { ...state, pages: [...state.pages.slice(0, -1), page] };
}

function pressInGroup(
  state: TopState,
  page: GroupPage,
  name: string,
  { panes, pageRows }: Around,
): Pressed | undefined {
  const row = rowOfGroup(page, panes);
  const rows = row === undefined ? [] : tasksOf(row);
  const index = chosenIndex(rows, page.cursor);
  const to = moved(name, index, rows.length, pageRows);
  if (to !== undefined)
    return { state: replacePage(state, { ...page, cursor: cursorAt(rows, to) }) };
  if (name === "enter" || name === "right") {
    const [id] = rows[index]?.ids ?? [];
    return { state: id === undefined ? state : push(state, taskPage(id)) };
  }
  return undefined;
}

const SCROLLS: Readonly<Record<string, Deed>> = {
  up: { does: "scroll", by: "line", direction: "back" },
  k: { does: "scroll", by: "line", direction: "back" },
  down: { does: "scroll", by: "line", direction: "on" },
  j: { does: "scroll", by: "line", direction: "on" },
  pgup: { does: "scroll", by: "page", direction: "back" },
  pgdn: { does: "scroll", by: "page", direction: "on" },
  " ": { does: "scroll", by: "page", direction: "on" },
  g: { does: "scroll", by: "all", direction: "back" },
  home: { does: "scroll", by: "all", direction: "back" },
  G: { does: "scroll", by: "all", direction: "on" },
  end: { does: "scroll", by: "all", direction: "on" },
  f: { does: "scroll", by: "all", direction: "on" },
  n: { does: "search", direction: "on" },
  N: { does: "search", direction: "back" },
};

function pressInTask(
  state: TopState,
  page: TaskPageState,
  name: string,
  around: Around,
): Pressed | undefined {
  const deed = SCROLLS[name];
  if (deed !== undefined) return { state, deed };
  switch (name) {
    case "w":
      return { state: replacePage(state, { ...page, isWrapped: !page.isWrapped }) };
    case "o": {
      const stream = around.isStderr ? "stdout" : "stderr";
      return { state: replacePage(state, { ...page, stream, to: undefined }) };
    }
    case "/":
      return ask(state, "search", "search in the log", page.search);
    default:
      return undefined;
  }
}

function pressAnywhere(state: TopState, name: string, around: Around): Pressed {
  switch (name) {
    case "q":
      return { state, deed: { does: "quit" } };
    case "?":
      return { state: { ...state, isHelp: true } };
    case "esc":
    case "left":
    case "backspace":
      return { state: { ...state, pages: state.pages.slice(0, -1) } };
    case "p":
    case "+":
    case "=":
    case "-":
    case "r":
    case "c":
    case "a":
      if (around.isReadOnly)
        return { state: { ...state, note: "read only: nothing is changed from here" } };
      return act(state, name, around);
    default:
      return { state };
  }
}
