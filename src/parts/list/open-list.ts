/** Opens a list: reads the person's file and finds the work in it. */
import { ErrInvalidList } from "../../core/errors.ts";
import { type ListText, readList } from "./list-file.ts";
import { parseList } from "./parse-list.ts";
import { type ListWork, workOf } from "./work-items.ts";

/** A list with more items is refused: each has a note, and all notes are read and written at once. */
const ITEMS_MAX = 10_000;

export interface OpenList extends ListWork {
  source: ListText;
}

/** @throws ErrInvalidList, also when the list has no box; ErrIo */
export async function openList(path: string): Promise<OpenList> {
  const source = await readList(path);
  const work = workOf(parseList(source.text));
  if (work.items.length === 0)
    throw new ErrInvalidList("it has no box, so it is not a list of tasks", {
      path,
      phase: "read",
      hint: "write each task as a line `- [ ] what to do`; for JSON lines leave --agent out",
    });
  if (work.items.length > ITEMS_MAX)
    throw new ErrInvalidList(
      `the list has ${work.items.length} boxes, more than the limit of ${ITEMS_MAX}`,
      { path, phase: "read", hint: "split it, or take enqueue --batch for very many small tasks" },
    );
  return { ...work, source };
}
