/** `ls`: tasks of one state or all, a bounded number of them. Reads only what it shows. */

import fs from "node:fs";
import { basename, join } from "node:path";
import { bytesText } from "../../core/bytes-text.ts";
import { compact } from "../../core/compact.ts";
import { readInboxName, runOf } from "../../core/names.ts";
import { headlineOf } from "../../core/outcome.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { judgeOwner, parseOwner } from "../../host/identity.ts";
import { ago, countText, safe, table } from "../../text/render.ts";
import {
  batchBar,
  batchesWithFailures,
  countsOf,
  countsText,
  readBatchProgress,
} from "../../view/batches.ts";
import { processingPlaces, type TaskPlace, type TaskState } from "../../view/find-task.ts";
import { findFiles, readJsonObject } from "../../view/scan.ts";
import { type Context, defineCommand, ErrUsage, numberOption } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree, existsTree, treeOf } from "../shell/options.ts";
import { idColumn } from "./status.ts";

const STATES = ["waiting", "ready", "running", "done", "failed"] as const;
type ListedState = (typeof STATES)[number];
type JsonObject = Record<string, unknown>;
/** So many files of a tray are looked at to find the newest or oldest. */
const LOOKED_AT_MAX = 10_000;
const TASK_BYTES_READ_MAX = 1024 * 1024;

interface Row {
  id: string;
  state: string;
  attempt: number | null;
  priority: number | null;
  /** Epoch ms: dropped, due, or settled; null when not known. */
  time_ms: number | null;
  pid: number | null;
  title: string;
  error: string | null;
  /** Of a completed batch. */
  failed_lines: number;
}

export const command = defineCommand({
  usage: "[--state-is STATE] [--limit N]",
  details: [
    "Waiting tasks are listed oldest first, settled ones latest first. In a tray of more than 10,000 files the choice is made among 10,000 of them.",
  ],
  options: {
    "state-is": {
      type: "text",
      value: "STATE",
      choices: STATES,
      alsoCalled: ["status", "is", "filter", "only"],
      help: "only tasks in this state; failed: completed batches with failed lines, too",
    },
    limit: numberOption("N", "at most so many (default 50)", { min: 1, max: 100_000 }),
  },
  async run(ctx) {
    refuseStateAsPlace(ctx);
    const tree = existingTree(ctx);
    const wanted = ctx.options["state-is"] as ListedState | undefined;
    const { rows, hasMore } = chooseRows(tree, wanted, ctx.options.limit ?? 50);
    if (ctx.json) ctx.out.json({ tasks: rows, has_more: hasMore });
    else if (rows.length === 0)
      ctx.out.note(
        wanted === undefined ? "there are no tasks" : `there are no tasks that are ${wanted}`,
      );
    else print(ctx, rows, hasMore);
    return EXIT.ok;
  },
});

function chooseRows(
  tree: StateTree,
  wanted: ListedState | undefined,
  limit: number,
): { rows: Row[]; hasMore: boolean } {
  const rows: Row[] = [];
  let isAll = true;
  for (const state of ["running", "ready", "waiting", "failed", "done"] as const) {
    if (wanted !== undefined && wanted !== state) continue;
    const part = LISTERS[state](tree, limit - rows.length + 1);
    rows.push(...part.rows);
    if (wanted === "failed") rows.push(...failedBatchRows(tree));
    isAll &&= part.isAll;
    if (rows.length > limit) break;
  }
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit || !isAll };
}

function print(ctx: Context, rows: readonly Row[], hasMore: boolean): void {
  const nowMs = Date.now();
  const columns = [
    idColumn(ctx),
    { title: "STATE" },
    { title: "RUN", align: "right" as const },
    { title: "WHEN" },
    { title: "WHAT", min: 10 },
  ];
  const cells = rows.map((row) => [
    safe(row.id),
    row.failed_lines > 0 ? `${row.state}, not all` : row.state,
    row.attempt === null ? "" : String(row.attempt),
    row.time_ms === null ? "" : ago(row.time_ms, nowMs),
    safe(row.error === null ? row.title : headlineOf(row.error)),
  ]);
  for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
  if (hasMore)
    ctx.out.note(`there are more than these ${countText(rows.length)}; see --limit and --state-is`);
}

/** @throws ErrUsage for `ls --state failed`: --state names the tree, and there is none of this name */
function refuseStateAsPlace(ctx: Pick<Context, "stateDir" | "env" | "cwd">): void {
  const word = basename(ctx.stateDir);
  if (!STATES.some((state) => state === word) || existsTree(treeOf(ctx))) return;
  throw new ErrUsage(
    `--state names a directory, and there is no ${JSON.stringify(word)} here`,
    `did you mean --state-is ${word}?`,
  );
}

interface Listed {
  rows: Row[];
  isAll: boolean;
}

const LISTERS: Readonly<Record<ListedState, (tree: StateTree, max: number) => Listed>> = {
  running: (tree, max) => listProcessing(tree, ["running", "settling"], max),
  ready: (tree, max) => listProcessing(tree, ["ready"], max),
  waiting: listInbox,
  failed: (tree, max) => listSettled(tree, "failed", max),
  done: (tree, max) => listSettled(tree, "done", max),
};

function listProcessing(tree: StateTree, states: readonly TaskState[], max: number): Listed {
  const places = processingPlaces(tree).filter(({ state }) => states.includes(state));
  return { rows: places.slice(0, max).map((place) => placeRow(tree, place)), isAll: true };
}

/** The oldest first. */
function listInbox(tree: StateTree, max: number): Listed {
  const isTask = (name: string): boolean => readInboxName(name).kind === "task";
  const { files, isAll } = findFiles(join(tree.mailbox, "inbox"), isTask, LOOKED_AT_MAX);
  files.sort((a, b) => a.mtimeMs - b.mtimeMs || (a.name < b.name ? -1 : 1));
  const rows = files.slice(0, max).map((file) => {
    const task = readJsonObject(file.path, TASK_BYTES_READ_MAX);
    const due = (numberIn(task, "not_before") ?? 0) * 1000;
    return rowOf(file.name.replace(/\.(?:nd)?json$/, ""), "waiting", task, {
      time_ms: Math.round(due > Date.now() ? due : file.mtimeMs),
      ...(file.name.endsWith(".ndjson") ? { title: `batch, ${bytesText(file.size)}` } : {}),
    });
  });
  return { rows, isAll };
}

/** The latest first. */
function listSettled(tree: StateTree, state: "done" | "failed", max: number): Listed {
  const [tray, ending] = state === "done" ? ["outbox", "_result.json"] : ["failed", "_error.json"];
  const dir = join(tree.mailbox, tray);
  const { files, isAll } = findFiles(dir, (name) => name.endsWith(ending), LOOKED_AT_MAX);
  files.sort((a, b) => b.mtimeMs - a.mtimeMs || (a.name < b.name ? -1 : 1));
  const rows = files.slice(0, max).map((file) => {
    const record = readJsonObject(file.path);
    const counts = countsOf(record);
    const task = record?.["task"] as JsonObject | undefined;
    return rowOf(basename(file.name, ending), state, task, {
      attempt: numberIn(record, "attempts"),
      time_ms: Math.round(file.mtimeMs),
      error: typeof record?.["error"] === "string" ? record["error"] : null,
      failed_lines: state === "done" ? (counts?.failures ?? 0) : 0,
      ...compact({ title: counts && `batch, ${countsText(counts)}` }),
    });
  });
  return { rows, isAll };
}

/** A person who asks for what failed asks for the failed lines of batches, too. */
function failedBatchRows(tree: StateTree): Row[] {
  return batchesWithFailures(tree).map(({ id, counts, settledMs }) =>
    rowOf(id, "done", undefined, {
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

function placeRow(tree: StateTree, place: TaskPlace): Row {
  const title = batchTitle(tree, place);
  const task = title === undefined ? readJsonObject(place.path, TASK_BYTES_READ_MAX) : undefined;
  const mtimeMs = fs.statSync(place.path, { throwIfNoEntry: false })?.mtimeMs;
  const isDelayed = place.state === "ready" && mtimeMs !== undefined && mtimeMs > Date.now();
  const owner = place.name?.stage === "w" ? place.name.token : undefined;
  const isOrphan = owner !== undefined && judgeOwner(owner) === "dead";
  const state = isDelayed ? "delayed" : isOrphan ? "orphaned" : place.state;
  return rowOf(place.id, state, task, {
    attempt: place.name?.attempt ?? null,
    // The mtime of a claim is its heartbeat; that of a ready task is the moment it is due.
    time_ms: place.state === "ready" && mtimeMs !== undefined ? Math.round(mtimeMs) : null,
    pid: owner === undefined ? null : (parseOwner(owner)?.pid ?? null),
    ...compact({ title }),
  });
}

function rowOf(id: string, state: string, task: JsonObject | undefined, more: Partial<Row>): Row {
  return {
    id,
    state,
    attempt: null,
    priority: numberIn(task, "priority"),
    time_ms: null,
    pid: null,
    title: describeTask(task),
    error: null,
    failed_lines: 0,
    ...more,
  };
}

export function numberIn(object: JsonObject | null | undefined, field: string): number | null {
  const value = object?.[field];
  return typeof value === "number" ? value : null;
}

/** What a task is about, in one line: its title, its program, or its prompt. */
export function describeTask(task: JsonObject | undefined): string {
  if (typeof task?.["title"] === "string") return task["title"];
  if (Array.isArray(task?.["exec"])) return task["exec"].map(String).join(" ");
  for (const field of ["prompt", "description", "agent"]) {
    const value = task?.[field];
    if (typeof value === "string") return value;
  }
  return "";
}
