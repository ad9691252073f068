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
  readInboxName,
  resultName,
  runOf,
} from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { findRecord, listLive, locate, type Place } from "../mailbox/locate.ts";
import { nodeStorage } from "../mailbox/node-storage.ts";
import type { FileFacts, Storage } from "../mailbox/storage.ts";
import { type Trays, traysAt } from "../mailbox/trays.ts";
import { COUNT_MAX, eachName, namesIn } from "./scan.ts";

export type TaskState = "waiting" | "ready" | "held" | "running" | "settling" | "done" | "failed";

export interface TaskPlace {
  id: string;
  state: TaskState;
  path: string;
  /** Its name in `processing/`, when it is there under one of ours. */
  name: ProcessingName | undefined;
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
  return shown(locate(traysOf(tree), id));
}

export function lookForRecord(tree: StateTree, id: string): TaskPlace | undefined {
  return shown(findRecord(traysOf(tree), id));
}

/** For looking only: a missing tray is empty, and no file has a name that is too long. */
const storage: Storage = { ...nodeStorage, list: (dir) => [...namesIn(dir)], look: lookAt };

export function traysOf(tree: StateTree): Trays {
  return traysAt(tree.mailbox, { storage });
}

/**
 * Its latest record under a name beside the final one: of a file that was refused while another task held the id, or of a task whose
 * final name something else had taken. For an id that is nowhere else: it lists the trays.
 */
export function lookBeside(tree: StateTree, id: string): TaskPlace | undefined {
  let latest: { place: TaskPlace; mtimeMs: number } | undefined;
  for (const tray of ["outbox", "failed"] as const) {
    const dir = join(tree.mailbox, tray);
    eachName(dir, (name) => {
      if (parseBesideName(name) !== id) return true;
      const path = join(dir, name);
      const mtimeMs = fs.lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
      if (mtimeMs > (latest?.mtimeMs ?? 0)) latest = { place: shown({ tray, id, path }), mtimeMs };
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
    ["inbox", inboxName({ id })],
    ["inbox", inboxName({ id, isBatch: true })],
    ["outbox", resultName(id)],
    ["failed", errorName(id)],
  ] as const;
  for (const [tray, wanted] of kinds) {
    const dir = join(tree.mailbox, tray);
    const key = foldId(wanted);
    let found: TaskPlace | undefined;
    eachName(dir, (name) => {
      if (name.length !== key.length || foldId(name) !== key) return true;
      found = shown({ tray, id: name.slice(0, id.length), path: join(dir, name) });
      return false;
    });
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Every task in `processing/`: a short listing, whatever the backlog. */
export function processingPlaces(tree: StateTree): TaskPlace[] {
  return listLive(traysOf(tree)).map((place) => shown(place));
}

/** What is in `processing/` without a name of ours is the plain claim of a foreign worker. */
const TRAY_STATES: Readonly<Record<Place["tray"], TaskState>> = {
  inbox: "waiting",
  processing: "running",
  outbox: "done",
  failed: "failed",
};

const STATES: Readonly<Record<ProcessingName["stage"], TaskState>> = {
  ready: "ready",
  hold: "held",
  w: "running",
  ok: "settling",
  err: "settling",
  bad: "settling",
  again: "waiting",
};

function shown(place: Place): TaskPlace;
function shown(place: Place | undefined): TaskPlace | undefined;
function shown(place: Place | undefined): TaskPlace | undefined {
  if (place === undefined) return undefined;
  const { id, path, name } = place;
  return {
    id,
    state: name === undefined ? TRAY_STATES[place.tray] : STATES[name.stage],
    path,
    name,
  };
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
  return lookAt(path) !== undefined;
}

function lookAt(path: string | Buffer): FileFacts | undefined {
  try {
    return nodeStorage.look(path);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENAMETOOLONG" || code === "ENOTDIR") return undefined;
    throw error;
  }
}
