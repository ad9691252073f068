/** Makes one row for each task, for lists. It reads only the part of a file that the row needs. */
import { basename, join } from "node:path";
import { bytesText } from "../core/bytes-text.ts";
import { compact } from "../core/compact.ts";
import { dependencyFieldsOf, readDependencies } from "../core/dependencies.ts";
import { isLandingGate } from "../core/landing.ts";
import { runOf } from "../core/names.ts";
import { readMaxAttempts } from "../core/outcome.ts";
import { priorityNumber } from "../core/priority.ts";
import type { AgentSettings } from "../core/settings.ts";
import { failedStateOf } from "../core/skipped.ts";
import type { StateTree } from "../core/state-tree.ts";
import type { Task } from "../core/task.ts";
import { type WaitingTask, waitingBatch, waitingTask } from "../core/waiting-task.ts";
import { judgeOwner, parseOwner } from "../host/identity.ts";
import { statOf } from "../host/regular-file.ts";
import {
  batchBar,
  batchesWithFailures,
  countsOf,
  countsText,
  readBatchProgress,
} from "./batches.ts";
import type { ChosenFile } from "./choose-files.ts";
import type { TaskPlace } from "./find-task.ts";
import { readJsonObject, textOf } from "./scan.ts";

type JsonObject = Record<string, unknown>;
/** A larger task file is not read (bytes). */
const TASK_BYTES_READ_MAX = 1024 * 1024;

export interface TaskRow {
  id: string;
  state: string;
  attempt: number | null;
  priority: number | null;
  /** When it was dropped, is due, or settled (epoch ms); null when not known. */
  time_ms: number | null;
  pid: number | null;
  title: string;
  error: string | null;
  /** Only for a completed batch. */
  failed_lines: number;
  /** The gate at which a held task waits, such as `quota-default`. */
  gate: string | null;
  /** The fields `group` and `agent` of the task. */
  group: string | null;
  agent: string | null;
}

/** The state as one word, so that `awk` finds the columns of a list. Not safe for a terminal: a gate is a part of a file name. */
export function stateWord({ state, failed_lines: failedLines, gate }: TaskRow): string {
  if (gate !== null) return `${state}:${isLandingGate(gate) ? "waits-to-land" : gate}`;
  return failedLines > 0 ? `${state}-not-all` : state;
}

/** The row of a task that waits in the inbox. */
export function waitingRow(file: ChosenFile, task = readTask(file.path)): TaskRow {
  const due = (numberIn(task, "not_before") ?? 0) * 1000;
  return rowOf(file.id, "waiting", task, {
    time_ms: Math.round(due > Date.now() ? due : file.mtimeMs),
    ...(file.name.endsWith(".ndjson") ? { title: `batch, ${bytesText(file.size)}` } : {}),
  });
}

/** The row of a task that has ended, from its record. */
export function settledRow(
  file: ChosenFile,
  state: "done" | "failed",
  record = readJsonObject(file.path),
): TaskRow {
  const counts = countsOf(record);
  const task = record?.["task"] as JsonObject | undefined;
  const label = state === "done" ? state : failedStateOf(record?.["kind"]);
  return rowOf(file.id, label, task, {
    attempt: numberIn(record, "attempts"),
    time_ms: Math.round(file.mtimeMs),
    error: typeof record?.["error"] === "string" ? record["error"] : null,
    failed_lines: state === "done" ? (counts?.failures ?? 0) : 0,
    ...compact({ title: counts && `batch, ${countsText(counts)}` }),
  });
}

/** A person who asks for failed tasks also wants the failed lines of batches. */
export function failedBatchRows(tree: StateTree): TaskRow[] {
  return batchesWithFailures(tree).map(({ id, counts, attempts, settledMs }) =>
    rowOf(id, "done", undefined, {
      attempt: attempts,
      title: `batch, ${countsText(counts)}`,
      time_ms: Math.round(settledMs),
      failed_lines: counts.failures,
    }),
  );
}

/** The title of an accepted batch; undefined for a task. */
function batchTitle(tree: StateTree, { name }: TaskPlace): string | undefined {
  if (name?.isBatch !== true) return undefined;
  const progress = name.stage === "w" ? readBatchProgress(join(tree.runs, runOf(name))) : undefined;
  return progress === undefined ? "batch" : batchBar(progress);
}

/** The row of an accepted task, from its place in `processing/`. */
export function placeRow(tree: StateTree, place: TaskPlace, task = readTask(place.path)): TaskRow {
  const title = batchTitle(tree, place);
  const mtimeMs = statOf(place.path)?.mtimeMs;
  const isDelayed = place.state === "ready" && mtimeMs !== undefined && mtimeMs > Date.now();
  const owner = place.name?.stage === "w" ? place.name.token : undefined;
  const isOrphan = owner !== undefined && judgeOwner(owner) === "dead";
  const state = isDelayed ? "delayed" : isOrphan ? "orphaned" : place.state;
  return rowOf(place.id, state, task, {
    attempt: place.name?.attempt ?? null,
    // The mtime of a claim is its heartbeat; that of a ready task is the time when it is due.
    time_ms: place.state === "ready" && mtimeMs !== undefined ? Math.round(mtimeMs) : null,
    pid: owner === undefined ? null : (parseOwner(owner)?.pid ?? null),
    gate: place.name?.stage === "hold" ? place.name.token : null,
    ...compact({ title }),
  });
}

function rowOf(
  id: string,
  state: string,
  task: JsonObject | undefined,
  more: Partial<TaskRow>,
): TaskRow {
  return {
    id,
    state,
    attempt: null,
    priority: priorityIn(task),
    time_ms: null,
    pid: null,
    title: describeTask(task),
    error: null,
    failed_lines: 0,
    gate: null,
    group: typeof task?.["group"] === "string" ? task["group"] : null,
    agent: typeof task?.["agent"] === "string" ? task["agent"] : null,
    ...more,
  };
}

/** Undefined for a batch, and for a file that holds no task. */
export function readTask(path: string): JsonObject | undefined {
  return path.endsWith(".ndjson") ? undefined : readJsonObject(path, TASK_BYTES_READ_MAX);
}

/**
 * A waiting task, as the queue of a supervisor holds it. None of its dependencies counts as met. Of a file that holds no valid task
 * only the name counts.
 * @param agents undefined when they are not known: then the task's own word for its agent counts
 */
export function readWaiting(
  { id, path, name }: TaskPlace,
  agents: readonly AgentSettings[] | undefined,
): WaitingTask {
  const stage = name?.stage;
  const isAccepted = stage !== undefined && stage !== "again";
  const tray = isAccepted ? "processing" : "inbox";
  const file = { id, file: basename(path), tray, attempt: name?.attempt ?? 1 } as const;
  const at = { ...file, mtimeMs: 0, ctimeMs: 0 };
  const gate = name !== undefined && stage === "hold" ? { gate: name.token } : {};
  if (path.endsWith(".ndjson")) return { ...waitingBatch(at), ...gate };
  try {
    const task = readTask(path) ?? {};
    const { metadata } = task;
    const dependencies = isAccepted ? [] : dependencyFieldsOf(task);
    const read = { ...task, metadata: { ...(metadata as object | undefined), dependencies } };
    const found = waitingTask(read as unknown as Task, at, agents ?? [], () => false);
    if (isAccepted) delete found.notBeforeMs;
    if (agents === undefined) found.agentId ??= textOf(task["agent"], "");
    return { ...found, ...gate };
  } catch {
    return { ...waitingBatch(at), agentId: "", ...gate };
  }
}

/** The ids that a task waits for. */
export function dependencyIds(task: JsonObject | undefined): string[] {
  return readDependencies(dependencyFieldsOf(task ?? {})).map(({ id }) => id);
}

/** The priority as a number; null when the task has none. */
export function priorityIn(task: JsonObject | undefined): number | null {
  return priorityNumber(task?.["priority"]) ?? null;
}

/** How often the task may run; null when it does not say so. */
export function maxAttemptsIn(task: JsonObject | null | undefined): number | null {
  return readMaxAttempts(task ?? {}) ?? null;
}

export function numberIn(object: JsonObject | null | undefined, field: string): number | null {
  const value = object?.[field];
  return typeof value === "number" ? value : null;
}

/** What a person may remember of a task: its id, title, program and prompt, and its error. In small letters. */
export function wordsOf({ id, title, error }: TaskRow, task: JsonObject | undefined): string {
  const { exec } = task ?? {};
  const texts = [task?.["prompt"], task?.["description"]].filter((one) => typeof one === "string");
  const program = Array.isArray(exec) ? exec.map(String).join(" ") : "";
  return [id, title, program, ...texts, error ?? ""].join("\n").toLowerCase();
}

export function titleOfRecord(record: JsonObject | undefined): string {
  return describeTask(record?.["task"] as JsonObject | undefined);
}

/** Describes a task in one line: by its title, its program, or its prompt. */
export function describeTask(task: JsonObject | undefined): string {
  if (typeof task?.["title"] === "string") return task["title"];
  if (Array.isArray(task?.["exec"])) return task["exec"].map(String).join(" ");
  for (const field of ["prompt", "description", "agent"]) {
    const value = task?.[field];
    if (typeof value === "string") return value;
  }
  return "";
}
