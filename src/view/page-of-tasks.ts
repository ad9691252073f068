/** Reads a page of the tasks in one state. The cost is bounded however many tasks there are: only the files of its rows are read. */
import { setImmediate as othersTurn } from "node:timers/promises";
import type { StateTree } from "../core/state-tree.ts";
import { type ChosenFiles, chooseFiles, type Wanted } from "./choose-files.ts";
import { processingPlaces, type TaskState } from "./find-task.ts";
import { placeRow, settledRow, type TaskRow, waitingRow } from "./task-rows.ts";

export const LISTED_STATES = ["waiting", "ready", "held", "running", "done", "failed"] as const;
export type ListedState = (typeof LISTED_STATES)[number];

/** For how many files of a tray the time is read: 20 to 40 ms, in steps of 2 ms. */
const LOOKED_AT_MAX = 10_000;

export interface PageQuery extends Omit<Wanted, "lookedAtMax"> {
  state: ListedState;
}

/** `isAll` is false for a tray with more tasks than were looked at: some may be on no page. */
export interface Page extends Omit<ChosenFiles, "files"> {
  rows: TaskRow[];
}

/** Waiting tasks come oldest first, ended tasks latest first (see `chooseFiles`), accepted tasks by name. */
export async function pageOfTasks(tree: StateTree, query: PageQuery): Promise<Page> {
  const { state } = query;
  if (state === "running") return pageOfAccepted(tree, ["running", "settling"], query);
  if (state === "ready" || state === "held") return pageOfAccepted(tree, [state], query);
  const choosing = chooseFiles(tree, state, { ...query, lookedAtMax: LOOKED_AT_MAX });
  let step = choosing.next();
  for (; step.done !== true; step = choosing.next()) await othersTurn();
  const { files, next, isAll, count } = step.value;
  const rows = files.map((file) =>
    state === "waiting" ? waitingRow(file) : settledRow(file, state),
  );
  return { rows, next, isAll, count };
}

function pageOfAccepted(
  tree: StateTree,
  states: readonly TaskState[],
  { limit, after = "", idPrefix = "" }: PageQuery,
): Page {
  const places = processingPlaces(tree)
    .filter(
      ({ id, state, path }) => states.includes(state) && id.startsWith(idPrefix) && path > after,
    )
    .sort((a, b) => (a.path < b.path ? -1 : 1));
  const shown = places.slice(0, limit);
  return {
    rows: shown.map((place) => placeRow(tree, place)),
    next: places.length > limit ? shown.at(-1)?.path : undefined,
    isAll: true,
    count: places.length,
  };
}
