/** Collects all facts about one task in the state tree, to show them. Reads only. */
import { join } from "node:path";
import { failedLinesText } from "../core/batch.ts";
import { leaseOf, parseLease } from "../core/names.ts";
import { headlineOf } from "../core/outcome.ts";
import type { RemoteRun } from "../core/saved-documents.ts";
import type { StateTree } from "../core/state-tree.ts";
import { judgeOwner, parseOwner } from "../host/identity.ts";
import { timelineOf } from "../journal/timeline.ts";
import { lastOf } from "../mailbox/find/failures.ts";
import { batchBar, countsOf, countsText, readBatchProgress } from "./batches.ts";
import { fieldWarnings } from "./field-warnings.ts";
import {
  findRun,
  findTask,
  isThere,
  listRuns,
  lookBeside,
  lookInAnyCase,
  type TaskPlace,
  traysOf,
} from "./find-task.ts";
import { askForLanding, type LandingView, lookForLanding } from "./landing.ts";
import { readRemoteRuns } from "./remote-runs.ts";
import { readJsonObject } from "./scan.ts";
import { closedGates, gateOf, readSupervisor } from "./supervisor.ts";
import { readTaskProgress, type TaskProgress } from "./task-progress.ts";
import { dependencyIds, numberIn, readWaiting } from "./task-rows.ts";

type JsonObject = Record<string, unknown>;
/** At most so many events are kept, the latest ones. */
const EVENTS_MAX = 200;

export interface Knowledge {
  id: string;
  state: string;
  path: string;
  attempt: number | null;
  lease: string | null;
  owner: { pid: number | null; verdict: string } | null;
  task: JsonObject | null;
  record: JsonObject | null;
  run: string | null;
  runs: string[];
  /** Ids in metadata.dependencies, each with its state, and with the state of its landing if its work lands. */
  dependencies: { id: string; state: string; landing: LandingView | null }[];
  events: JsonObject[];
  /** Why a task is held, or waits for its full group or agent, as the supervisor reports; null for other tasks. */
  held: string | null;
  /** The progress that its run reports; null when it does not run, or reports nothing. */
  progress: TaskProgress | null;
  /** What another machine reports about its run there; null when no other machine has it. */
  elsewhere: RemoteRun | null;
  /** The state of its work's landing; null when its work has no landing. */
  landing: LandingView | null;
  /** A sentence for each field that has no effect, such as a misspelt one. */
  field_warnings: string[];
  /** For a batch: its progress, or the result of its lines. */
  batch: string | null;
  /** For a batch: `5 of 9 lines failed`. */
  failed_lines: string | null;
}

/** All facts; undefined when neither a tray nor the journal knows the task. */
export async function learnTask(tree: StateTree, id: string): Promise<Knowledge | undefined> {
  const { place, record, run } = await lookUp(tree, id);
  const events = latestEvents(tree, id);
  if (place === undefined && events.length === 0) return undefined;
  const isRecord = hasRecord(place);
  const content = place === undefined || isRecord ? undefined : readJsonObject(place.path);
  const task = (isRecord ? record?.["task"] : content) as JsonObject | undefined;
  const owner = place?.name?.stage === "w" ? place.name.token : undefined;
  const { task: _inside, ...bare } = record ?? {};
  const [elsewhere = null] = readRemoteRuns(tree, place ? [place] : [], Date.now()).values();
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
    dependencies: dependencyIds(task).map((one) => {
      const { id: named = one } = lookInAnyCase(tree, one) ?? {};
      // Tasks that depend on a duplicate wait for the task that holds its key.
      const last = lastOf(traysOf(tree), named);
      const { id: found = one, state = "unknown" } = lookInAnyCase(tree, last) ?? {};
      const landing = state === "done" ? (lookForLanding(tree, found) ?? null) : null;
      return { id: one, state, landing };
    }),
    events,
    held: heldText(tree, place),
    progress:
      place?.state === "running" && run !== undefined
        ? (readTaskProgress(run) ?? null)
        : (elsewhere?.progress ?? null),
    elsewhere,
    landing: mayHaveLeft(place) ? ((await askForLanding(tree, id, record)) ?? null) : null,
    field_warnings: fieldWarnings(tree, place, task),
    batch: batchText(place, record, run) ?? null,
    failed_lines: failedLinesText(countsOf(record)) ?? null,
  };
}

/** Whether the task may have left work. A program may also have taken its record away. */
function mayHaveLeft(place: TaskPlace | undefined): boolean {
  return place === undefined || place.state === "done";
}

export interface FoundLog {
  /** The folder of its newest run. */
  run: string | undefined;
  /** Its newest run, if another machine has it or had it. */
  elsewhere: { machine: string; submission: string; attempt: number } | undefined;
  isSettled: boolean;
  isKnown: boolean;
  /** The result of the task in one line; undefined while it has not settled. */
  end: string | undefined;
}

/** Finds a program's output: of a task's newest run or, for `ID#LINE`, of one line of a batch. */
export async function findLog(tree: StateTree, id: string): Promise<FoundLog> {
  const [batch = "", line = ""] = id.split("#");
  const isLine = /^\d+$/.test(line);
  const { place, record, run } = await lookUp(tree, isLine ? batch : id);
  // An earlier run of the batch may have run the line.
  const runs = isLine ? listRuns(tree, batch).map((dir) => join(dir, line)) : [];
  const elsewhere = elsewhereOf(tree, place, record);
  const own = elsewhere === undefined ? run : undefined;
  return {
    run: isLine ? runs.findLast((dir) => isThere(dir)) : own,
    elsewhere,
    isSettled: hasRecord(place),
    isKnown: place !== undefined,
    end: hasRecord(place) ? endText(record) : undefined,
  };
}

function elsewhereOf(
  tree: StateTree,
  place: TaskPlace | undefined,
  record: JsonObject | undefined,
): FoundLog["elsewhere"] {
  const [run] = readRemoteRuns(tree, place === undefined ? [] : [place], Date.now()).values();
  const { machine, lease } = run ?? record ?? {};
  const parsed = typeof lease === "string" ? parseLease(lease) : undefined;
  return typeof machine === "string" && parsed !== undefined ? { machine, ...parsed } : undefined;
}

function endText(record: JsonObject | undefined): string {
  const error = record?.["error"];
  return typeof error === "string" ? `failed: ${headlineOf(error)}` : "completed";
}

async function lookUp(tree: StateTree, id: string) {
  const place = (await findTask(tree, id)) ?? lookBeside(tree, id);
  const record = place !== undefined && hasRecord(place) ? readJsonObject(place.path) : undefined;
  return { place, record, run: findRun(tree, id, place, record) };
}

function hasRecord(place: TaskPlace | undefined): boolean {
  return place?.state === "done" || place?.state === "failed";
}

function heldText(tree: StateTree, place: TaskPlace | undefined): string | null {
  if (place?.state !== "waiting" && place?.state !== "held") return null;
  const gate = gateOf(closedGates(readSupervisor(tree, Date.now())), readWaiting(place, undefined));
  return gate?.why ?? (place.state === "held" ? (place.name?.token ?? null) : null);
}

function batchText(
  place: TaskPlace | undefined,
  record: JsonObject | undefined,
  run: string | undefined,
): string | undefined {
  const counts = countsOf(record);
  if (counts !== undefined) return `batch, ${countsText(counts)}`;
  if (place?.path.endsWith(".ndjson") !== true) return undefined;
  const progress = run === undefined ? undefined : readBatchProgress(run);
  return progress === undefined ? "batch" : `batch ${batchBar(progress)}`;
}

/** The latest events, in order of time. */
function latestEvents(tree: StateTree, id: string): Knowledge["events"] {
  const events: Knowledge["events"] = [];
  let next: string | undefined;
  do {
    const page = timelineOf(tree.events, id, EVENTS_MAX - events.length, next);
    events.push(...page.events);
    next = page.next;
  } while (next !== undefined && events.length < EVENTS_MAX);
  return events.reverse();
}
