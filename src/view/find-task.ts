/** Where a task is, by its id, from names alone. Reads only; a task that is being moved is looked for again. */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemCode } from "../core/errors.ts";
import {
  cleanRun,
  errorName,
  foldId,
  inboxName,
  isId,
  isRunsFolder,
  type ProcessingName,
  parseBesideName,
  parseName,
  parsePlainClaim,
  readInboxName,
  resultName,
  runOf,
} from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { COUNT_MAX, eachName } from "./scan.ts";

export type TaskState = "waiting" | "ready" | "running" | "settling" | "done" | "failed";

export interface TaskPlace {
  id: string;
  state: TaskState;
  path: string;
  /** Its name in `processing/`, when it is there under one of ours. */
  name?: ProcessingName;
  /** True for the plain claim of a foreign worker. */
  isForeign?: boolean;
}

/** A move between two looks can hide a task; it does not hide it twice in a row for long. */
const LOOKS = 4;
const LOOK_AGAIN_MS = 15;

/** Where the task is now, or undefined when no tray has it. A live file wins over a record. */
export async function findTask(tree: StateTree, id: string): Promise<TaskPlace | undefined> {
  for (let look = 1; ; look++) {
    const place = lookForTask(tree, id);
    if (place !== undefined || look >= LOOKS) return place;
    await wait(LOOK_AGAIN_MS);
  }
}

/** One look. May miss a task that moves at that moment. */
export function lookForTask(tree: StateTree, id: string): TaskPlace | undefined {
  // What a person types becomes a path only when it cannot leave its tray.
  if (/[/\0]/.test(id) || id === "") return undefined;
  for (const name of [{ id }, { id, isBatch: true as const }]) {
    const path = join(tree.mailbox, "inbox", inboxName(name));
    if (isThere(path)) return { id, state: "waiting", path };
  }
  return lookInProcessing(tree, id) ?? lookForRecord(tree, id);
}

export function lookForRecord(tree: StateTree, id: string): TaskPlace | undefined {
  const done = join(tree.mailbox, "outbox", resultName(id));
  if (isThere(done)) return { id, state: "done", path: done };
  const failed = join(tree.mailbox, "failed", errorName(id));
  if (isThere(failed)) return { id, state: "failed", path: failed };
  return undefined;
}

/**
 * Its latest record under a name beside the final one: of a file that was refused while another task held the id, or of a task whose
 * final name something else had taken. For an id that is nowhere else: it lists the trays.
 */
export function lookBeside(tree: StateTree, id: string): TaskPlace | undefined {
  let latest: { place: TaskPlace; mtimeMs: number } | undefined;
  for (const [tray, state] of [
    ["outbox", "done"],
    ["failed", "failed"],
  ] as const) {
    const dir = join(tree.mailbox, tray);
    eachName(dir, (name) => {
      if (parseBesideName(name) !== id) return true;
      const path = join(dir, name);
      const mtimeMs = fs.lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
      if (mtimeMs > (latest?.mtimeMs ?? 0)) latest = { place: { id, state, path }, mtimeMs };
      return true;
    });
  }
  return latest?.place;
}

/** The task of this id in any case: lists the trays when no file has this very spelling. */
export function lookInAnyCase(tree: StateTree, id: string): TaskPlace | undefined {
  const place = lookForTask(tree, id);
  if (place !== undefined || !isId(id)) return place;
  const kinds = [
    ["inbox", "waiting", inboxName({ id })],
    ["inbox", "waiting", inboxName({ id, isBatch: true })],
    ["outbox", "done", resultName(id)],
    ["failed", "failed", errorName(id)],
  ] as const;
  for (const [tray, state, wanted] of kinds) {
    const dir = join(tree.mailbox, tray);
    const key = foldId(wanted);
    let found: TaskPlace | undefined;
    eachName(dir, (name) => {
      if (name.length !== key.length || foldId(name) !== key) return true;
      found = { id: name.slice(0, id.length), state, path: join(dir, name) };
      return false;
    });
    if (found !== undefined) return found;
  }
  return undefined;
}

function lookInProcessing(tree: StateTree, id: string): TaskPlace | undefined {
  const wanted = foldId(id);
  for (const place of processingPlaces(tree)) {
    if (foldId(place.id) === wanted && place.name?.stage !== "bad") return place;
  }
  return undefined;
}

/** Every task in `processing/`: a short listing, whatever the backlog. */
export function processingPlaces(tree: StateTree): TaskPlace[] {
  const places: TaskPlace[] = [];
  const dir = join(tree.mailbox, "processing");
  eachName(dir, (file) => {
    const place = readProcessing(dir, file);
    if (place !== undefined) places.push(place);
    return true;
  });
  return places;
}

const STATES: Readonly<Record<ProcessingName["stage"], TaskState>> = {
  ready: "ready",
  w: "running",
  ok: "settling",
  err: "settling",
  bad: "settling",
  again: "waiting",
};

function readProcessing(dir: string, file: string): TaskPlace | undefined {
  const path = join(dir, file);
  const name = parseName(file);
  if (name !== undefined) return { id: name.id, state: STATES[name.stage], path, name };
  const foreign = parsePlainClaim(file);
  return foreign === undefined
    ? undefined
    : { id: foreign, state: "running", path, isForeign: true };
}

/** The directory of the task's newest attempt, or undefined when there is none yet. */
export function findRun(
  tree: StateTree,
  id: string,
  place: TaskPlace | undefined,
  record: Record<string, unknown> | undefined,
): string | undefined {
  if (place?.name?.stage === "w") {
    const run = join(tree.runs, runOf(place.name));
    if (isThere(run)) return run;
  }
  const said = typeof record?.["run"] === "string" ? cleanRun(record["run"]) : undefined;
  if (said !== undefined) {
    const run = join(tree.runs, said);
    if (isThere(run)) return run;
  }
  return listRuns(tree, id).at(-1);
}

/** All attempts' directories of a task, the oldest first. */
export function listRuns(tree: StateTree, id: string): string[] {
  const found: { path: string; mtimeMs: number }[] = [];
  const look = (dir: string, name: string): void => {
    if (!name.startsWith(`${id}@`)) return;
    const path = join(dir, name);
    const stats = fs.statSync(path, { throwIfNoEntry: false });
    if (stats !== undefined) found.push({ path, mtimeMs: stats.birthtimeMs || stats.mtimeMs });
  };
  eachName(tree.runs, (name) => {
    const folder = join(tree.runs, name);
    look(tree.runs, name);
    if (isRunsFolder(name))
      eachName(folder, (run) => {
        look(folder, run);
        return true;
      });
    return true;
  });
  return found.sort((a, b) => a.mtimeMs - b.mtimeMs).map((run) => run.path);
}

/** At most `max` ids in one tray, from names alone; of a very large tray only a part of the names is looked at. */
export function idsIn(
  tree: StateTree,
  tray: "inbox" | "outbox" | "failed",
  max: number = COUNT_MAX,
): string[] {
  const ids: string[] = [];
  let left = COUNT_MAX;
  eachName(join(tree.mailbox, tray), (name) => {
    const id = idOfName(tray, name);
    if (id !== undefined && isId(id)) ids.push(id);
    return ids.length < max && --left > 0;
  });
  return ids;
}

function idOfName(tray: "inbox" | "outbox" | "failed", name: string): string | undefined {
  if (tray === "outbox") return /^([^~]+)_result\.json$/.exec(name)?.[1];
  if (tray === "failed") return /^([^~]+)_error\.json$/.exec(name)?.[1];
  const meaning = readInboxName(name);
  return meaning.kind === "task" ? meaning.id : undefined;
}

/** lstat, because what lies there need not be a file of ours. */
export function isThere(path: string): boolean {
  try {
    return fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENAMETOOLONG" || code === "ENOTDIR") return false;
    throw error;
  }
}
