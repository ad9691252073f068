/** Reads the items of a list and their states for `list ls`. Changes nothing. */
import fs from "node:fs";
import type { StateTree } from "../../core/state-tree.ts";
import { standingOfNote, type WorkStanding } from "./landed.ts";
import { matchNotes } from "./match-notes.ts";
import { hashOf, type Note, type NotesFile } from "./notes.ts";
import { openList } from "./open-list.ts";
import { learnStandings } from "./task-standings.ts";

export interface ListRow {
  state: WorkStanding["state"] | "open" | "gone" | "ticked";
  title: string;
  /** The id of its task; null when it has none. */
  id: string | null;
  /** The number of its line; null when the item is no longer in the file. */
  line: number | null;
  is_ticked: boolean;
  reason: string | null;
}

/** In the order of the file, then those that are no longer in it. @throws ErrInvalidList, ErrIo */
export async function listRows(tree: StateTree, path: string, file: NotesFile): Promise<ListRow[]> {
  const notes = file.read();
  const isGone = notes.items.length > 0 && !fs.existsSync(path);
  const items = isGone ? [] : (await openList(path)).items;
  const matched = matchNotes(items, notes);
  const standings = await learnStandings(tree, notes.items, file.stem);
  const standingOf = (note: Note): WorkStanding | undefined => standingOfNote(note, standings);
  const rows = items.map((item): ListRow => {
    const note = matched.notes.get(item);
    const standing = note === undefined ? undefined : standingOf(note);
    const isTicked = item.box.isTicked;
    const edited =
      note !== undefined && note.prompt !== hashOf(item.prompt)
        ? "its details were changed after it was enqueued"
        : undefined;
    return {
      state: standing?.state ?? (isTicked ? "ticked" : "open"),
      title: item.title,
      id: standing === undefined ? null : (note?.id ?? null),
      line: item.line,
      is_ticked: isTicked,
      reason: reasonOf(standing, note, isTicked) ?? edited ?? null,
    };
  });
  for (const note of matched.gone) {
    const standing = standingOf(note);
    if (standing === undefined) continue;
    const how = standing.state === "failed" ? `failed: ${standing.reason}` : standing.state;
    rows.push({
      state: "gone",
      title: note.title,
      id: note.id,
      line: null,
      is_ticked: false,
      reason: `its task: ${how}`,
    });
  }
  return rows;
}

function reasonOf(
  standing: WorkStanding | undefined,
  note: Note | undefined,
  isTicked: boolean,
): string | undefined {
  if (standing?.state === "failed")
    return standing.reason === "" ? "its record is gone" : standing.reason;
  if (standing?.state !== "landed" || isTicked) return undefined;
  const isOpenAgain = note?.ticked !== null && note?.ticked === note?.landed_at;
  return isOpenAgain ? "its box was opened again" : "`list sync` ticks it";
}
