/**
 * Reads a page of the tasks in one state, or searches the latest ones of several. The cost is bounded however many tasks there are.
 */
import { setImmediate as othersTurn } from "node:timers/promises";
import type { StateTree } from "../core/state-tree.ts";
import { type ChosenFiles, chooseFiles, type Wanted } from "./choose-files.ts";
import { processingPlaces, type TaskPlace, type TaskState } from "./find-task.ts";
import { readJsonObject } from "./scan.ts";
import { placeRow, readTask, settledRow, type TaskRow, waitingRow, wordsOf } from "./task-rows.ts";

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
  if (state === "running" || state === "ready" || state === "held")
    return pageOfAccepted(tree, state, query);
  const { files, next, isAll, count } = await filesOf(tree, state, query);
  const rows = files.map((file) =>
    state === "waiting" ? waitingRow(file) : settledRow(file, state),
  );
  return { rows, next, isAll, count };
}

async function filesOf(
  tree: StateTree,
  state: "waiting" | "done" | "failed",
  wanted: Omit<Wanted, "lookedAtMax">,
): Promise<ChosenFiles> {
  const choosing = chooseFiles(tree, state, { ...wanted, lookedAtMax: LOOKED_AT_MAX });
  let step = choosing.next();
  for (; step.done !== true; step = choosing.next()) await othersTurn();
  return step.value;
}

type AcceptedState = "running" | "ready" | "held";

function acceptedPlaces(tree: StateTree, state: AcceptedState): TaskPlace[] {
  const states: readonly TaskState[] = state === "running" ? ["running", "settling"] : [state];
  return processingPlaces(tree)
    .filter((place) => states.includes(place.state))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

function pageOfAccepted(
  tree: StateTree,
  state: AcceptedState,
  { limit, after = "", idPrefix = "" }: PageQuery,
): Page {
  const places = acceptedPlaces(tree, state).filter(
    ({ id, path }) => id.startsWith(idPrefix) && path > after,
  );
  const shown = places.slice(0, limit);
  return {
    rows: shown.map((place) => placeRow(tree, place)),
    next: places.length > limit ? shown.at(-1)?.path : undefined,
    isAll: true,
    count: places.length,
  };
}

type Task = Readonly<Record<string, unknown>>;

export interface Search {
  states: readonly ListedState[];
  /** At most so many of the latest tasks of each state are looked at. */
  readMax: number;
  /** @param words what `wordsOf` gives @param task undefined for a file that holds no task */
  isWanted: (row: TaskRow, words: () => string, task: Task | undefined) => boolean;
}

/** After so many files others have a turn: 2 ms. */
const STEP_FILES = 32;

/** The tasks that are wanted, in no order. `isAll` is false when there were more than could be looked at. */
export async function searchTasks(
  tree: StateTree,
  { states, readMax, isWanted }: Search,
): Promise<{ rows: TaskRow[]; isAll: boolean }> {
  const rows: TaskRow[] = [];
  let isWhole = true;
  let seen = 0;
  const add = async (row: TaskRow, task: Task | undefined): Promise<void> => {
    if (isWanted(row, () => wordsOf(row, task), task)) rows.push(row);
    if (++seen % STEP_FILES === 0) await othersTurn();
  };
  for (const state of states) {
    if (state === "running" || state === "ready" || state === "held") {
      const places = acceptedPlaces(tree, state);
      isWhole &&= places.length <= readMax;
      for (const place of places.slice(0, readMax)) {
        const task = readTask(place.path);
        await add(placeRow(tree, place, task), task);
      }
      continue;
    }
    const { files, next, isAll } = await filesOf(tree, state, {
      limit: readMax,
      isLatestFirst: true,
    });
    isWhole &&= isAll && next === undefined;
    for (const file of files) {
      if (state === "waiting") {
        const task = readTask(file.path);
        await add(waitingRow(file, task), task);
        continue;
      }
      const record = readJsonObject(file.path);
      await add(settledRow(file, state, record), record?.["task"] as Task | undefined);
    }
  }
  return { rows, isAll: isWhole };
}
