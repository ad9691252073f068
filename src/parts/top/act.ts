/** Turns the keys that change something into deeds and questions. Pure. */
import { askAnswer, askCancel, askRetry } from "./ask.ts";
import { type Row, tasksOf } from "./rows.ts";
import {
  type Around,
  chosenIndex,
  chosenRow,
  type Pressed,
  pageOf,
  rowOfGroup,
  type TopState,
} from "./state.ts";

/** @param name a key that changes something */
export function act(state: TopState, name: string, around: Around): Pressed {
  switch (name) {
    case "p": {
      if (around.overview === undefined) return { state };
      return { state, deed: { does: around.overview.paused === null ? "pause" : "resume" } };
    }
    case "+":
    case "=":
      return { state, deed: { does: "workers", by: 1 } };
    case "-":
      return { state, deed: { does: "workers", by: -1 } };
    case "r":
      return askRetry(state, targetOf(state, around), around);
    case "c":
      return askCancel(state, targetOf(state, around), around);
    default:
      return askAnswer(state, targetOf(state, around), around);
  }
}

/** What the keys `r`, `c` and `a` act on: a row, or the task that is open. */
function targetOf(state: TopState, { panes }: Around): Row | undefined {
  const page = pageOf(state);
  if (page === undefined) return chosenRow(state, panes);
  if (page.kind === "task") {
    const { id } = page;
    const running = panes[0]?.find((row) => row.ids[0] === id);
    return (
      running ?? {
        key: id,
        ids: [id],
        words: "",
        shown: { kind: "task", id, title: "", text: "", due_ms: null },
      }
    );
  }
  const row = rowOfGroup(page, panes);
  if (row === undefined) return undefined;
  const rows = tasksOf(row);
  return rows[chosenIndex(rows, page.cursor)] ?? row;
}
