/** Which note belongs to which item, after any change of the list. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addNotes, matchNotes } from "../../../src/parts/list/match-notes.ts";
import type { ListNotes } from "../../../src/parts/list/notes.ts";
import { parseList } from "../../../src/parts/list/parse-list.ts";
import { type WorkItem, workOf } from "../../../src/parts/list/work-items.ts";

const itemsOf = (...lines: string[]): WorkItem[] => workOf(parseList(lines.join("\n"))).items;

/** The notes after this list was enqueued. */
function enqueued(...lines: string[]): ListNotes {
  const notes: ListNotes = { list: "todo.md", items: [] };
  const { fresh } = matchNotes(itemsOf(...lines), notes);
  addNotes(fresh, notes, ({ key, number }) => `${key}-${number}`);
  for (const note of notes.items) note.submitted_at = 1;
  return notes;
}

/** The number of each item's note; 0 for a new item. */
function numbers(notes: ListNotes, ...lines: string[]): number[] {
  const items = itemsOf(...lines);
  const { notes: found } = matchNotes(items, notes);
  return items.map((item) => found.get(item)?.number ?? 0);
}

describe("an item keeps its note", () => {
  it("when other items are added, moved and removed, or its details change", () => {
    const notes = enqueued("- [ ] a", "- [ ] b");
    expect(numbers(notes, "# Now", "* [ ] b", "- [ ] new", "1. [ ] a", "   detail")).toEqual([
      1, 0, 1,
    ]);
  });

  it("when it is ticked, by a person as by us", () => {
    const notes = enqueued("- [ ] a");
    expect(numbers(notes, "- [x] a")).toEqual([1]);
  });

  it("among items with the same line by its details", () => {
    const notes = enqueued("- [ ] a", "  one", "- [ ] a", "  two");
    expect(numbers(notes, "- [ ] a", "  two", "- [ ] a", "  one")).toEqual([2, 1]);
    expect(numbers(notes, "- [ ] a", "  two")).toEqual([2]);
  });

  it("and another one with the same line below another heading has its own", () => {
    const notes = enqueued("- [ ] A", "  - [ ] write tests");
    expect(numbers(notes, "- [ ] B", "  - [ ] write tests")).toEqual([0]);
  });
});

it("a new open box above a finished one with the same line is a new item", () => {
  const notes = enqueued("- [ ] water the plants");
  for (const note of notes.items) Object.assign(note, { landed_at: 5, ticking: 5, ticked: 5 });
  expect(numbers(notes, "- [ ] water the plants", "- [x] water the plants")).toEqual([0, 1]);
  expect(numbers(notes, "- [ ] water the plants")).toEqual([1]);
});

it("a box that a person ticked before anything was enqueued takes no note from an open one", () => {
  const notes = enqueued("- [x] a", "- [ ] a");
  expect(notes.items).toHaveLength(1);
  expect(numbers(notes, "- [x] a", "- [ ] a")).toEqual([0, 1]);
});

it("a list that did not change has nothing new, whatever lines it has", () => {
  const line = fc.tuple(
    fc.constantFrom("- [ ] ", "- [x] ", "  - [ ] ", "    - [ ] ", "  "),
    fc.constantFrom("a", "b", "c"),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 30 }), (all) => {
      const lines = all.map((pair) => pair.join(""));
      const notes = enqueued(...lines);
      const again = matchNotes(itemsOf(...lines), notes);
      expect(again.fresh).toEqual([]);
      expect(again.gone).toEqual([]);
      const ids = notes.items.map((note) => note.id);
      expect(new Set(ids).size).toBe(ids.length);
    }),
    { numRuns: 500 },
  );
});
