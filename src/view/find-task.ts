/** Finds the place of a task by its id, from names alone. Reads only. While a task is being moved, it looks again. */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { ErrTaskNotFound, systemCode } from "../core/errors.ts";
import {
  cleanRun,
  errorName,
  foldId,
  inboxName,
  isId,
  isRunsFolder,
  type ProcessingName,
  parseBesideName,
  parseErrorName,
  readInboxName,
  resultName,
  runOf,
} from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { statOf } from "../host/regular-file.ts";
import { nodeStorage } from "../mailbox/files/node-storage.ts";
import type { FileFacts, Storage } from "../mailbox/files/storage.ts";
import { type Trays, traysAt } from "../mailbox/files/trays.ts";
import { findRecord, listLive, locate, type Place } from "../mailbox/find/locate.ts";
import { COUNT_MAX, eachName, namesIn, readJsonObject } from "./scan.ts";

export type TaskState = "waiting" | "ready" | "held" | "running" | "settling" | "done" | "failed";

export interface TaskPlace {
  id: string;
  state: TaskState;
  path: string;
  /** Its parsed name in `processing/`; undefined elsewhere, and for a name that is not ours. */
  name: ProcessingName | undefined;
}

/** How often to look: a move between two looks can hide a task, but hardly several times in a row. */
const LOOKS = 4;
const LOOK_AGAIN_MS = 15;

/** The error of a verb when no tray has this id. @param phase the verb */
export function noSuchTask(
  id: string,
  phase: string,
  hint = "`mailchute ls` lists tasks",
): ErrTaskNotFound {
  return new ErrTaskNotFound(`no tray has a task ${JSON.stringify(id)}`, { id, phase, hint });
}

/** Where the task is now, or undefined when no tray has it. A task that waits or runs comes before a record. */
export async function findTask(tree: StateTree, id: string): Promise<TaskPlace | undefined> {
  for (let look = 1; ; look++) {
    const place = lookForTask(tree, id);
    if (place !== undefined || look >= LOOKS) return place;
    await wait(LOOK_AGAIN_MS);
  }
}

/** Looks once. May miss a task that moves at that moment. */
export function lookForTask(tree: StateTree, id: string): TaskPlace | undefined {
  // Typed text is used in a path only when it cannot lead out of the tray.
  if (/[/\0]/.test(id) || id === "") return undefined;
  return shown(locate(traysOf(tree), id));
}

export function lookForRecord(tree: StateTree, id: string): TaskPlace | undefined {
  return shown(findRecord(traysOf(tree), id));
}

/** The record of an ended task; undefined when it has none. */
export function readRecord(tree: StateTree, id: string, bytesMax?: number) {
  const place = lookForRecord(tree, id);
  return place === undefined ? undefined : readJsonObject(place.path, bytesMax);
}

/** For reading only: a missing tray counts as empty, and a name that is too long as a missing file. */
const storage: Storage = { ...nodeStorage, list: (dir) => [...namesIn(dir)], look: lookAt };

export function traysOf(tree: StateTree): Trays {
  return traysAt(tree.mailbox, { storage });
}

/**
 * The latest record of this id with a longer name. It is about a file that was refused while another task had the id, or about a
 * task whose final name was in use. Call it only for an id found nowhere else, because it lists the trays.
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

/** The task of this id, ignoring case: lists the trays when no file has exactly this spelling. */
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

/** Every task in `processing/`. The listing is short however long the backlog is. */
export function processingPlaces(tree: StateTree): TaskPlace[] {
  return listLive(traysOf(tree)).map((place) => shown(place));
}

/** A file in `processing/` without a name of ours is the plain claim of a foreign worker. */
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

/** The directories of all attempts of a task, the oldest first. */
export function listRuns(tree: StateTree, id: string): string[] {
  const found: { path: string; mtimeMs: number }[] = [];
  const look = (dir: string, name: string): void => {
    if (!name.startsWith(`${id}@`)) return;
    const path = join(dir, name);
    const stats = statOf(path);
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

/** At most `max` ids in one tray, from names alone. In a very large tray only some of the names are looked at. */
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
  if (tray === "failed") return parseErrorName(name);
  const meaning = readInboxName(name);
  return meaning.kind === "task" ? meaning.id : undefined;
}

/** Uses lstat, because the file need not be one of ours. */
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
