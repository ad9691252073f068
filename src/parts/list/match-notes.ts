/** Finds the note of each item of a list. Pure. */
import { hashOf, type ListNotes, type Note } from "./notes.ts";
import type { WorkItem } from "./work-items.ts";

export interface Matched {
  notes: Map<WorkItem, Note>;
  /** Open items without a note. */
  fresh: WorkItem[];
  /** Notes whose item is no longer in the list. */
  gone: Note[];
}

/**
 * Items with the same text differ by their number. A ticked box takes a note whose tick was written. So a new open box above it counts as
 * a new item, and not as the finished one. Among equal candidates, a note with the same details is taken first.
 */
export function matchNotes(items: readonly WorkItem[], notes: ListNotes): Matched {
  const left = new Map<string, Note[]>();
  for (const note of notes.items) {
    const same = left.get(note.key);
    if (same === undefined) left.set(note.key, [note]);
    else same.push(note);
  }
  const matched: Matched = { notes: new Map(), fresh: [], gone: [] };
  const claim = (isTicked: boolean, may: (note: Note) => boolean): void => {
    for (const isExact of [true, false])
      for (const item of items) {
        if (item.box.isTicked !== isTicked || matched.notes.has(item)) continue;
        const same = left.get(keyOf(item));
        if (same === undefined) continue;
        const prompt = isExact ? hashOf(item.prompt) : undefined;
        const at = same.findIndex(
          (note) => may(note) && (prompt === undefined || note.prompt === prompt),
        );
        const [note] = at === -1 ? [] : same.splice(at, 1);
        if (note !== undefined) matched.notes.set(item, note);
      }
  };
  claim(true, (note) => note.ticking !== null);
  claim(false, (note) => note.ticking === null);
  claim(false, () => true);
  claim(true, () => true);
  matched.fresh = items.filter((item) => !item.box.isTicked && !matched.notes.has(item));
  matched.gone = [...left.values()].flat();
  return matched;
}

export function keyOf(item: WorkItem): string {
  return hashOf(item.text);
}

/** Adds notes for new items, with numbers that no item with the same text has had. @returns the new notes by item */
export function addNotes(
  fresh: readonly WorkItem[],
  notes: ListNotes,
  idOf: (note: Pick<Note, "key" | "number">) => string,
): Map<WorkItem, Note> {
  const highest = new Map<string, number>();
  for (const { key, number } of notes.items)
    highest.set(key, Math.max(number, highest.get(key) ?? 0));
  const added = new Map<WorkItem, Note>();
  for (const item of fresh) {
    const key = keyOf(item);
    const number = (highest.get(key) ?? 0) + 1;
    highest.set(key, number);
    const note: Note = {
      id: idOf({ key, number }),
      key,
      number,
      title: item.title,
      prompt: hashOf(item.prompt),
      submitted_at: null,
      landed_at: null,
      ticking: null,
      ticked: null,
    };
    notes.items.push(note);
    added.set(item, note);
  }
  return added;
}
