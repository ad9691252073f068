/** Reads the states of many tasks from the trays, and from the journal if their records are gone. Reads only. */
import { setTimeout as wait } from "node:timers/promises";
import { parseObject } from "../../core/json-object.ts";
import { landingIdOf } from "../../core/landing.ts";
import { headlineOf } from "../../core/outcome.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { searchBack } from "../../journal/read-back.ts";
import { lookForTask, type TaskPlace } from "../../view/find-task.ts";
import { readJsonObject, textOf } from "../../view/scan.ts";
import { numberIn } from "../../view/task-rows.ts";
import type { TaskStanding } from "./landed.ts";
import type { Note } from "./notes.ts";

/** One look can miss a task that moves between two trays. Several looks in a row hardly can. */
const LOOKS = 4;
const LOOK_AGAIN_MS = 15;

export type Standings = (id: string) => TaskStanding | undefined;

/**
 * Looks at the tasks of these notes, and at the landings of the completed ones.
 * @param stem the prefix of the ids of all these tasks
 */
export async function learnStandings(
  tree: StateTree,
  notes: readonly Note[],
  stem: string,
): Promise<Standings> {
  const known = new Map<string, TaskStanding>();
  const unseen = notes.filter(({ id }) => !lookAt(tree, id, known));
  let missing = unseen.flatMap(({ id, landed_at }) => (landed_at === null ? [id] : []));
  for (let looks = 1; missing.length > 0 && looks < LOOKS; looks++) {
    await wait(LOOK_AGAIN_MS);
    missing = missing.filter((id) => !lookAt(tree, id, known));
  }
  const completed = [...known].filter(([, { state }]) => state === "completed");
  const landings = completed
    .map(([id]) => landingIdOf(id))
    .filter((id) => !lookAt(tree, id, known));
  // The journal is searched for a landing that is in no tray only if it is read anyway, or if the record of a task announces a landing.
  const isExpected = [...known.values()].some(
    (one) => one.state === "completed" && one.isLandingPending,
  );
  if (missing.length > 0 || isExpected)
    searchJournal(
      tree,
      stem,
      new Set([...missing, ...missing.map(landingIdOf), ...landings]),
      known,
    );
  return (id) => known.get(id);
}

/** @returns true if the task is in a tray */
function lookAt(tree: StateTree, id: string, known: Map<string, TaskStanding>): boolean {
  const place = lookForTask(tree, id);
  const standing = place === undefined ? undefined : standingAt(place);
  if (standing === undefined) return false;
  known.set(id, standing);
  return true;
}

/** Undefined when the record was just removed. */
function standingAt({ state, path }: TaskPlace): TaskStanding | undefined {
  switch (state) {
    case "waiting":
    case "ready":
    case "held":
      return { state: "waiting" };
    case "running":
    case "settling":
      return { state: "running" };
    default: {
      const record = readJsonObject(path);
      if (record === undefined) return undefined;
      if (state === "failed") return { state: "failed", reason: reasonOf(record["error"]) };
      const at = numberIn(record, "completed_at") ?? 0;
      return { state: "completed", at, isLandingPending: record["landing"] === "pending" };
    }
  }
}

function reasonOf(error: unknown): string {
  return headlineOf(textOf(error, "no reason given"));
}

/** Finds the latest events of these tasks in the journal and its last rotated file. */
function searchJournal(
  tree: StateTree,
  stem: string,
  ids: ReadonlySet<string>,
  known: Map<string, TaskStanding>,
): void {
  const found = new Map<string, TaskStanding>();
  // All ids have the same prefix, so one text finds the lines of all tasks.
  for (const { line } of searchBack(tree.events, [`"${stem}`])) {
    const event = line === undefined ? undefined : parseObject(line.replaceAll("\0", ""));
    const id = event?.["task_id"];
    if (event === undefined || typeof id !== "string" || !ids.has(id)) continue;
    const later = found.get(id);
    if (later === undefined) found.set(id, standingAfter(event));
    // The reason is in the event before the last one.
    else if (later.state === "failed" && later.reason === "" && typeof event["error"] === "string")
      later.reason = headlineOf(event["error"]);
  }
  for (const [id, standing] of found) known.set(id, standing);
}

/** @param event the latest event of a task that is in no tray */
function standingAfter(event: Record<string, unknown>): TaskStanding {
  if (event["event"] !== "completed") return { state: "lost" };
  if (event["status"] === "failed") return { state: "failed", reason: "" };
  const at = Math.floor((numberIn(event, "t") ?? 0) / 1000);
  return { state: "completed", at, isLandingPending: false };
}
