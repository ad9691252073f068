/**
 * Reads from the end of the journal which tasks ended under earlier supervisors. A supervisor keeps only in memory what it changed
 * in the plan. Without these runs, the next one would take an old copy of the plan for a wish to run its nodes again.
 */
import { isDeepStrictEqual } from "node:util";
import { systemCode } from "../../../core/errors.ts";
import { parseObject } from "../../../core/json-object.ts";
import type { NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import type { Task } from "../../../core/task.ts";
import { PIECE_BYTES, searchBack } from "../../../journal/read-back.ts";
import { readSettled, type SettledRecord } from "../../../mailbox/find/settled-record.ts";
import type { Environment } from "../../../supervisor/environment/environment.ts";
import { type Answer, taskOfNode } from "../rules/node-task.ts";
import { readEvidence } from "../run/evidence.ts";

/** How much of the journal is searched: reading it takes some milliseconds. */
const PIECES_MAX = (4 * 1024 * 1024) / PIECE_BYTES;
const WANTED = ["started", "completed", "supervisor_"].map((name) => `"event":"${name}`);

export interface EarlierRun {
  /** The id of a node, or of any other task. */
  id: string;
  isCompleted: boolean;
  /** How long ago its first attempt started (ms). */
  startedAgoMs: number;
  /** How long ago it ended (ms). */
  endedAgoMs: number;
}

export interface EarlierRuns {
  /** Sorted by start, the earliest first. */
  runs: readonly EarlierRun[];
  /** True if the last supervisor died. After an orderly end, a person may have opened nodes since then. */
  wasKilled: boolean;
}

export const NO_EARLIER_RUNS: EarlierRuns = { runs: [], wasKilled: false };

/**
 * @param path the journal of events
 * @param rememberedMs runs that started longer ago are left out
 */
export function readEarlierRuns(path: string, nowMs: number, rememberedMs: number): EarlierRuns {
  const started = new Map<string, EarlierRun>();
  const ended = new Map<string, Pick<EarlierRun, "isCompleted" | "endedAgoMs">>();
  let lastOfSupervisor: unknown;
  try {
    for (const event of lastEvents(path, nowMs - rememberedMs)) {
      const name = event["event"];
      const run = [event["submission"], event["task_id"]].join(" ");
      const agoMs = Math.max(0, nowMs - Number(event["t"]));
      if (name === "completed") {
        const isCompleted = event["status"] === "completed";
        ended.set(run, { isCompleted, endedAgoMs: agoMs });
      } else if (name !== "started") {
        // The journal begins with our own start.
        if (event["pid"] !== process.pid) lastOfSupervisor ??= name;
      } else {
        const [id, end] = [String(event["task_id"]), ended.get(run)];
        // An earlier attempt of the same run replaces a later one.
        if (end !== undefined) started.set(run, { id, ...end, startedAgoMs: agoMs });
      }
    }
  } catch (error) {
    // Without a journal no run is known.
    if (systemCode(error) === "") throw error;
  }
  const runs = [...started.values()].sort((a, b) => b.startedAgoMs - a.startedAgoMs);
  return { runs, wasKilled: lastOfSupervisor !== "supervisor_stopped" };
}

/** The last event first. */
function* lastEvents(path: string, sinceMs: number): Generator<Record<string, unknown>> {
  let pieces = 0;
  for (const { line } of searchBack(path, WANTED)) {
    if (line === undefined && ++pieces >= PIECES_MAX) return;
    const event = line === undefined ? undefined : parseObject(line);
    if (typeof event?.["t"] !== "number") continue;
    if (event["t"] < sinceMs) return;
    yield event;
  }
}

/**
 * The status of a node that an old copy opened and whose last run completed. While its record exists the status is "in_progress":
 * then the changes that follow from the run are written again, because the old copy may lack them, too.
 * @returns undefined when the node has to run: its run asked a question or failed, or its text has changed since
 * @throws a system error if the record cannot be read
 */
export function statusAfterRun(
  { trays, tree }: Pick<Environment, "trays" | "tree">,
  node: RoadmapNode,
): NodeStatus | undefined {
  const record = readSettled(trays, node.id)?.record;
  if (record === undefined)
    return readEvidence(tree.evidence, node.id).status === "done" ? "done" : undefined;
  return isDoneBy(record, node) ? "in_progress" : undefined;
}

/**
 * True if this record ended the node and the plan never said so. The evidence is written before the plan, so it shows this: it does
 * not come from this run. Then no person can have wanted another run. A plan saved during the run may still have the node open.
 * @param openedAtMs when a command last set the node open (wall ms)
 */
export function isEndUntold(
  { evidence }: StateTree,
  node: RoadmapNode,
  record: SettledRecord["record"],
  openedAtMs: number | undefined,
): boolean {
  if (record.status !== "completed" || !isDoneBy(record, node)) return false;
  if (openedAtMs !== undefined && openedAtMs >= record.completed_at * 1000) return false;
  return readEvidence(evidence, node.id).lease !== record.lease;
}

/** True if the record makes the node done, and the text of the node is still the same. */
function isDoneBy(record: SettledRecord["record"], node: RoadmapNode): boolean {
  const isDone = record.status === "completed" && record.verdict !== "checkpoint";
  return isDone && isTaskOf(node, record.task);
}

/** True if the task was made from this text of the node. */
function isTaskOf(node: RoadmapNode, task: unknown): boolean {
  const { agent = "", created_at = 0, metadata } = task as Task;
  const { answers = [] } = (metadata?.["roadmap"] ?? {}) as { answers?: Answer[] };
  const made = taskOfNode(node, agent, created_at, answers);
  return isDeepStrictEqual(JSON.parse(JSON.stringify(made)), task);
}
