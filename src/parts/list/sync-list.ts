/**
 * Ticks the items that have landed. First the notes record which ticks are being written. Then the person's file is replaced. Then the
 * notes record that the ticks were written. After a crash in between, the next run ticks an open box, and knows a ticked one as its own.
 */

import { ErrIo } from "../../core/errors.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { standingOfNote } from "./landed.ts";
import { replaceList } from "./list-file.ts";
import { matchNotes } from "./match-notes.ts";
import type { ListNotes, Note, NotesFile } from "./notes.ts";
import { type OpenList, openList } from "./open-list.ts";
import { type Box, tickBoxes } from "./parse-list.ts";
import { learnStandings } from "./task-standings.ts";

/** How often a list is read again if a person saves it in between. */
const TRIES_MAX = 50;

export interface Synced {
  /** How many boxes were ticked, including the headings above them. */
  ticked: number;
  /** Titles of items whose tick was written earlier, but whose box is open again. */
  reopened: string[];
  /** How many open items have not landed. */
  open: number;
}

/** @param again true: also ticks boxes that were opened again. @throws ErrInvalidList, ErrIo */
export async function syncList(
  tree: StateTree,
  path: string,
  file: NotesFile,
  again: boolean,
): Promise<Synced> {
  const notes = file.read();
  await noteLanded(tree, notes, file);
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const list = await openList(path);
    const plan = planTicks(list, notes, again);
    for (const { note } of plan.ticks) note.ticking = note.landed_at;
    if (plan.ticks.length > 0) file.write(notes);
    const boxes = [...plan.ticks.map(({ box }) => box), ...plan.headings];
    const isWritten =
      boxes.length === 0 || replaceList(list.source, tickBoxes(list.source.text, boxes));
    if (!isWritten) continue;
    const written = [...plan.ticks.map(({ note }) => note), ...plan.seen];
    for (const note of written) {
      note.ticking = note.landed_at;
      note.ticked = note.landed_at;
    }
    if (written.length > 0) file.write(notes);
    return { ticked: boxes.length, reopened: plan.reopened, open: plan.open };
  }
  throw new ErrIo("the list is being saved all the time", {
    path,
    phase: "tick",
    hint: "find out which program writes it, and try again",
  });
}

/** Notes in the state tree which items have landed, because retention may remove the records. */
async function noteLanded(tree: StateTree, notes: ListNotes, file: NotesFile): Promise<void> {
  const standings = await learnStandings(tree, notes.items, file.stem);
  let isChanged = false;
  for (const note of notes.items) {
    const standing = standingOfNote(note, standings);
    if (standing?.state !== "landed" || standing.at === note.landed_at) continue;
    note.landed_at = standing.at;
    isChanged = true;
  }
  if (isChanged) file.write(notes);
}

interface TickPlan {
  ticks: { box: Box; note: Note }[];
  headings: Box[];
  /** Notes whose box is ticked already, by a person or by a run that crashed. */
  seen: Note[];
  reopened: string[];
  open: number;
}

function planTicks(list: OpenList, notes: ListNotes, again: boolean): TickPlan {
  const plan: TickPlan = { ticks: [], headings: [], seen: [], reopened: [], open: 0 };
  const matched = matchNotes(list.items, notes).notes;
  for (const item of list.items) {
    const note = matched.get(item);
    const hasLanded = note !== undefined && note.landed_at !== null;
    if (item.box.isTicked) {
      if (hasLanded && note.ticked !== note.landed_at) plan.seen.push(note);
    } else if (!hasLanded) plan.open++;
    else if (note.ticked === note.landed_at && !again) plan.reopened.push(item.title);
    else plan.ticks.push({ box: item.box, note });
  }
  const ticked = new Set(plan.ticks.map(({ box }) => box));
  const isDone = (box: Box): boolean => box.isTicked || ticked.has(box);
  for (const { box, boxes } of list.headings) {
    // A heading is ticked only together with a tick below it: a person may have opened the heading again.
    if (box.isTicked || !boxes.every(isDone) || !boxes.some((one) => ticked.has(one))) continue;
    plan.headings.push(box);
    ticked.add(box);
  }
  return plan;
}
