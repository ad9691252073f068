/** A waiting task as the backlog knows it: how it is made from its file, and which one goes first. Pure. */
import { BATCH_AGENT, isPlannerWork, matchAgent } from "./matching.ts";
import { foldId } from "./names.ts";
import type { AgentSettings } from "./settings.ts";
import type { Task } from "./task.ts";

export interface WaitingTask {
  id: string;
  /** Name of the file in its tray. */
  file: string;
  tray: "inbox" | "processing";
  /** Number of the run that comes next (from 1). */
  attempt: number;
  /** Higher first. */
  priority: number;
  /** Unix seconds; older first. */
  createdAt: number;
  /**
   * When its file came into its tray (epoch ms, with the fraction that the file system knows). Among tasks created in the same
   * second the earliest goes first. 0 for a task that was chosen before.
   */
  arrivedMs: number;
  /** Agent that will run it; undefined when none fits. */
  agentId: string | undefined;
  /** Why it cannot be matched, when it cannot. */
  reason?: string;
  /** Its dependencies, met or not: what they left is needed until it is chosen. No two differ in case only. */
  dependencies?: readonly string[];
  /** Unmet dependencies at the time it was added; no two that differ in case only. */
  unmet?: string[];
  /** Epoch ms (wall clock): set by people in `not_before`. */
  notBeforeMs?: number;
  /** Monotonic ms: set by a backoff. */
  dueMs?: number;
  /** It waits in `processing/` for this gate: the token of stage "hold" in its name. */
  gate?: string;
  /** True for work that makes plans: while a replan is under way, nothing else starts. */
  isPlanner?: boolean;
  /**
   * Its worker died, and the next run is its last one: that run gets a process of its own. So no task fails for good because of
   * a task that ran beside it.
   */
  runsAlone?: boolean;
  /** True when this supervisor has written its `selected` event. */
  isSelected: boolean;
}

/** Tasks of one lane start or wait together: those that wait for one gate, and the others of one agent. */
export function laneOf({ gate, agentId = "" }: Pick<WaitingTask, "gate" | "agentId">): string {
  return gate === undefined ? agentId : `~${gate}`;
}

/** The gate of this lane; undefined: it is that of an agent. */
export function gateOfLane(lane: string): string | undefined {
  return lane.startsWith("~") ? lane.slice(1) : undefined;
}

export type WaitingFile = Pick<WaitingTask, "id" | "file" | "tray" | "attempt"> & {
  /** Of the file (epoch ms): when it was written, and when it was given its name. */
  mtimeMs: number;
  ctimeMs: number;
};

/**
 * Makes the waiting task of a task file.
 * @param isMet whether this dependency has completed
 */
export function waitingTask(
  task: Task,
  { id, file, tray, attempt, mtimeMs, ctimeMs }: WaitingFile,
  agents: readonly AgentSettings[],
  isMet: (dependency: string) => boolean,
): WaitingTask {
  const match = matchAgent(task, agents);
  const spelled = new Map(task.metadata?.dependencies?.map((one) => [foldId(one), one]));
  const dependencies = [...spelled.values()];
  const unmet = dependencies.filter((one) => !isMet(one));
  return {
    id,
    file,
    tray,
    attempt,
    priority: task.priority ?? 0,
    createdAt: task.created_at ?? Math.floor(mtimeMs / 1000),
    arrivedMs: ctimeMs,
    agentId: match.agent?.name,
    isSelected: false,
    ...(isPlannerWork(task, match.agent) ? { isPlanner: true } : {}),
    ...(match.agent === undefined ? { reason: match.reason } : {}),
    ...(dependencies.length > 0 ? { dependencies } : {}),
    ...(unmet.length > 0 ? { unmet } : {}),
    ...(task.not_before === undefined ? {} : { notBeforeMs: task.not_before * 1000 }),
  };
}

/** Makes the waiting task of a batch. Its lines have their own agents, and their priorities do not count. */
export function waitingBatch({ mtimeMs, ctimeMs, ...place }: WaitingFile): WaitingTask {
  return {
    ...place,
    priority: 0,
    createdAt: Math.floor(mtimeMs / 1000),
    arrivedMs: ctimeMs,
    agentId: BATCH_AGENT,
    isSelected: false,
  };
}

/** Order of selection: priority, then created_at, then arrival, then id. */
export function compareTasks(a: WaitingTask, b: WaitingTask): number {
  return (
    b.priority - a.priority ||
    a.createdAt - b.createdAt ||
    a.arrivedMs - b.arrivedMs ||
    compareIds(a.id, b.id)
  );
}

/** The shorter id first, so that job-2 goes before job-10: file systems give many files of a burst the same time. */
function compareIds(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}
