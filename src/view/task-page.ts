/** Reads all that one screen shows of a task, at a bounded cost: names tell where its files are, and no folder is searched. Reads only. */
import fs from "node:fs";
import { basename, join } from "node:path";
import { failedLinesText } from "../core/batch.ts";
import {
  cleanRun,
  type ProcessingName,
  parseRun,
  prefixOf,
  runOf,
  runsFolderOf,
} from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { statOf } from "../host/regular-file.ts";
import { countsOf } from "./batches.ts";
import { lookForTask, type TaskPlace, type TaskState } from "./find-task.ts";
import { eachName, readJsonObject, textOf } from "./scan.ts";
import { programRows } from "./task-program.ts";
import { dependencyIds, describeTask, maxAttemptsIn, numberIn, priorityIn } from "./task-rows.ts";

type JsonObject = Record<string, unknown>;
const TASK_BYTES_MAX = 1024 * 1024;
const RECORD_BYTES_MAX = 8 * 1024 * 1024;
/** How many names of a folder of runs are looked at for an earlier run. */
const NAMES_MAX = 20_000;
/** The files of a run that people read. */
const FILES = [
  "stdout.log",
  "stderr.log",
  "events.jsonl",
  "packet.md",
  "result.json",
  "verify.log",
];

export interface TaskPage {
  id: string;
  state: TaskState;
  path: string;
  title: string;
  /** The number of the current, the last or the next run. */
  attempt: number | null;
  attempts_max: number | null;
  agent: string | null;
  group: string | null;
  priority: number | null;
  /** What it runs: names and texts, without values of variables. */
  program: readonly (readonly [name: string, text: string])[];
  /** What its agent is asked to do; "" for other tasks. */
  prompt: string;
  /** "5 of 9 lines failed", for a completed batch of which lines have failed. */
  failed_lines: string | null;
  /** The tasks that it waits for. */
  after: string[];
  /** How it failed; null when it did not. */
  error: { kind: string; text: string; do: string | null } | null;
  /** The folder of the run that was asked for, else of the current or the last one; null when it is not known. */
  run_dir: string | null;
  files: { name: string; bytes: number }[];
  /** When the run began (epoch ms). */
  began_ms: number | null;
  /** When its file last changed (epoch ms): for a claim its heartbeat, for a record the end of the task. */
  changed_ms: number | null;
}

/** Undefined when no tray has it at this moment. @param run the path of one of its runs below `runs/` */
export function readTaskPage(tree: StateTree, id: string, run = ""): TaskPage | undefined {
  const place = lookForTask(tree, id);
  if (place === undefined) return undefined;
  const isRecord = place.state === "done" || place.state === "failed";
  const file = readJsonObject(place.path, isRecord ? RECORD_BYTES_MAX : TASK_BYTES_MAX);
  const task = (isRecord ? file?.["task"] : file) as JsonObject | undefined;
  const isOwn = cleanRun(run) !== undefined && parseRun(basename(run))?.id === id;
  const runDir = isOwn ? join(tree.runs, run) : runDirOf(tree, place, isRecord ? file : undefined);
  const made = runDir === null ? undefined : statOf(runDir);
  return {
    id,
    state: place.state,
    path: place.path,
    // Its program stands beside it anyway.
    title:
      Array.isArray(task?.["exec"]) && typeof task["title"] !== "string" ? "" : describeTask(task),
    attempt: place.name?.attempt ?? numberIn(isRecord ? file : undefined, "attempts"),
    attempts_max: maxAttemptsIn(task),
    agent: textIn(task, "agent") ?? textIn(isRecord ? file : undefined, "agent"),
    group: textIn(task, "group"),
    priority: priorityIn(task),
    program: programRows(task, true),
    prompt: textOf(task?.["prompt"], ""),
    failed_lines: (place.state === "done" && failedLinesText(countsOf(file))) || null,
    after: dependencyIds(task),
    error: place.state === "failed" ? errorOf(file) : null,
    run_dir: made === undefined ? null : runDir,
    files: runDir === null ? [] : filesOf(runDir),
    began_ms: made === undefined ? null : made.birthtimeMs || made.ctimeMs,
    changed_ms: statOf(place.path)?.mtimeMs ?? null,
  };
}

function errorOf(record: JsonObject | undefined): TaskPage["error"] {
  return {
    kind: textOf(record?.["kind"], "unknown"),
    text: textOf(record?.["error"], "its record does not say why"),
    do: textIn(record, "hint"),
  };
}

function textIn(object: JsonObject | undefined, field: string): string | null {
  const value = object?.[field];
  return typeof value === "string" ? value : null;
}

function runDirOf(tree: StateTree, { name }: TaskPlace, record?: JsonObject): string | null {
  if (name?.stage === "w") return join(tree.runs, runOf(name));
  const said = typeof record?.["run"] === "string" ? cleanRun(record["run"]) : undefined;
  if (said !== undefined) return join(tree.runs, said);
  return name !== undefined && name.attempt > 1 ? earlierRun(tree, name) : null;
}

/** The last run of a task that waits for the next one. */
function earlierRun(tree: StateTree, name: ProcessingName): string | null {
  const folder = join(tree.runs, runsFolderOf(name.submission));
  const found: { dir: string; mtimeMs: number }[] = [];
  let left = NAMES_MAX;
  eachName(folder, (run) => {
    const dir = join(folder, run);
    if (basename(run).startsWith(prefixOf(name)))
      found.push({ dir, mtimeMs: statOf(dir)?.mtimeMs ?? 0 });
    return --left > 0;
  });
  return found.sort((a, b) => a.mtimeMs - b.mtimeMs).at(-1)?.dir ?? null;
}

function filesOf(runDir: string): TaskPage["files"] {
  return FILES.flatMap((name) => {
    const stats = fs.lstatSync(join(runDir, name), { throwIfNoEntry: false });
    return stats?.isFile() === true ? [{ name, bytes: stats.size }] : [];
  });
}
