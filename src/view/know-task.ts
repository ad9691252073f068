/** What the state tree knows of one task, put together: for those who show it. Reads only. */
import { failedLinesText } from "../core/batch.ts";
import { leaseOf } from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { judgeOwner, parseOwner } from "../host/identity.ts";
import { batchBar, countsOf, countsText, readBatchProgress } from "./batches.ts";
import {
  findRun,
  findTask,
  listRuns,
  lookBeside,
  lookInAnyCase,
  type TaskPlace,
} from "./find-task.ts";
import { readJsonObject } from "./scan.ts";
import { numberIn } from "./task-rows.ts";
import { timelineOf } from "./timeline.ts";

/** Of a task with very many events the latest are kept. */
const EVENTS_MAX = 200;

export interface Knowledge {
  id: string;
  state: string;
  path: string;
  attempt: number | null;
  lease: string | null;
  owner: { pid: number | null; verdict: string } | null;
  task: Record<string, unknown> | null;
  record: Record<string, unknown> | null;
  run: string | null;
  runs: string[];
  /** Ids in metadata.dependencies and how they stand. */
  dependencies: { id: string; state: string }[];
  events: Record<string, unknown>[];
  /** Of a batch: how far it has come, or what its lines came to. */
  batch: string | null;
  /** Of a batch: `5 of 9 lines failed`. */
  failed_lines: string | null;
}

/** All of it; undefined when neither a tray nor the journal knows the task. */
export async function learnTask(tree: StateTree, id: string): Promise<Knowledge | undefined> {
  const place = (await findTask(tree, id)) ?? lookBeside(tree, id);
  const events = latestEvents(tree, id);
  if (place === undefined && events.length === 0) return undefined;
  const isRecord = place?.state === "done" || place?.state === "failed";
  const content = place === undefined ? undefined : readJsonObject(place.path);
  const record = isRecord ? content : undefined;
  const task = (isRecord ? content?.["task"] : content) as Record<string, unknown> | undefined;
  const owner = place?.name?.stage === "w" ? place.name.token : undefined;
  const { task: _inside, ...bare } = record ?? {};
  const run = findRun(tree, id, place, record);
  return {
    id,
    state: place?.state ?? "gone",
    path: place?.path ?? "",
    attempt: place?.name?.attempt ?? numberIn(record, "attempts"),
    lease: place?.name === undefined ? null : leaseOf(place.name),
    owner:
      owner === undefined
        ? null
        : { pid: parseOwner(owner)?.pid ?? null, verdict: judgeOwner(owner) },
    task: task ?? null,
    record: record === undefined ? null : bare,
    run: run ?? null,
    runs: listRuns(tree, id),
    dependencies: dependenciesOf(tree, task),
    events,
    batch: batchText(place, record, run) ?? null,
    failed_lines: failedLinesText(countsOf(record)) ?? null,
  };
}

function batchText(
  place: TaskPlace | undefined,
  record: Record<string, unknown> | undefined,
  run: string | undefined,
): string | undefined {
  const counts = countsOf(record);
  if (counts !== undefined) return `batch, ${countsText(counts)}`;
  if (place?.path.endsWith(".ndjson") !== true) return undefined;
  const progress = run === undefined ? undefined : readBatchProgress(run);
  return progress === undefined ? "batch" : `batch ${batchBar(progress)}`;
}

function dependenciesOf(
  tree: StateTree,
  task: Record<string, unknown> | undefined,
): Knowledge["dependencies"] {
  const ids = (task?.["metadata"] as { dependencies?: unknown } | undefined)?.dependencies;
  if (!Array.isArray(ids)) return [];
  return ids.map((one) => ({
    id: String(one),
    state: (lookInAnyCase(tree, String(one)) as TaskPlace | undefined)?.state ?? "unknown",
  }));
}

/** The oldest of them first. */
function latestEvents(tree: StateTree, id: string): Knowledge["events"] {
  const events: Knowledge["events"] = [];
  let next: string | undefined;
  do {
    const page = timelineOf(tree, id, EVENTS_MAX - events.length, next);
    events.push(...page.events);
    next = page.next;
  } while (next !== undefined && events.length < EVENTS_MAX);
  return events.reverse();
}
