/** A waiting task, as the backlog holds it. Makes it from a task file, and decides which of two runs first. Pure. */
import { type Dependency, readDependencies } from "./dependencies.ts";
import { finishingOf } from "./landing.ts";
import { agentIdOf, BATCH_AGENT, isPlannerWork, matchAgent, readAgentId } from "./matching.ts";
import { ownsKeyOf } from "./owned-paths.ts";
import type { AgentSettings } from "./settings.ts";
import type { Task } from "./task.ts";

export interface WaitingTask {
  id: string;
  /** Name of the file in its tray. */
  file: string;
  tray: "inbox" | "processing";
  /** Number of the run that comes next (from 1). */
  attempt: number;
  /** Higher first, before any priority: work that has begun is finished before new work starts. See `finishingOf`. */
  finishing?: 1 | 2 | 3;
  /** Higher first. */
  priority: number;
  /** Unix seconds; older first. */
  createdAt: number;
  /**
   * When its file came into its tray (epoch ms, as exact as the file system stores it). Of tasks created in the same second, the
   * earliest runs first. 0 for a task that was already selected.
   */
  arrivedMs: number;
  /** `sequence_number` of the task: it orders tasks that came at once, as those of a list do. Left out: 0. */
  sequence?: number;
  /** The agents that may run it, as `agentIdOf` writes them; undefined when no agent fits. */
  agentId: string | undefined;
  /** Why no agent fits; only set when none does. */
  reason?: string;
  /** All dependencies. Their results are kept until this task is selected. No two of these ids differ only in case. */
  dependencies?: readonly string[];
  /** The dependencies that had not completed when the task was added. No two of these ids differ only in case. */
  unmet?: string[];
  /** The unmet dependencies that only need to end, not to complete. */
  toEnd?: readonly string[];
  /** Earliest start by the wall clock (epoch ms), from `not_before`. */
  notBeforeMs?: number;
  /** Earliest start by the monotonic clock (ms), after a backoff. */
  dueMs?: number;
  /** Its group, if only some tasks of that group may be in work at once. */
  group?: string | undefined;
  /** The files that it reads and writes: see `ownsKeyOf`. */
  owns?: string | undefined;
  /** Its weight in its group, and the limits that it names: see `needsOf`. */
  needs?: string | undefined;
  /** The gate that it waits for in `processing/`: the token of stage "hold" in its name. */
  gate?: string;
  /** True for a task that makes plans. During a replan no other task starts. */
  isPlanner?: boolean;
  /**
   * Its worker died, and the next run is its last one. That run gets a process of its own, so that no task fails for good
   * because of a task that ran beside it.
   */
  runsAlone?: boolean;
  /** The one of several agents that runs it now. */
  chosenAgent?: string | undefined;
  /** What its event `selected` tells besides its id. Left out when there is nothing. */
  told?: Told;
  /** True when this supervisor has written its `selected` event. */
  isSelected: boolean;
}

export interface Told {
  /** Its group, also one without a limit. */
  group?: string;
  title?: string;
}

/** The part of a title that a journal line has: 80 characters, none of them cut in half. */
const TITLE = /^.{0,80}/su;

/** What the event `selected` tells of a task; undefined for nothing. */
export function toldOf({
  group = "",
  title = "",
}: Pick<Task, "group" | "title">): Told | undefined {
  if (group === "" && title === "") return undefined;
  const told: Told = {};
  if (group !== "") told.group = group;
  if (title !== "") told.title = TITLE.exec(title)?.[0] ?? "";
  return told;
}

/** Separates the fields at the end of a lane: group, owned files, needs. Nothing follows it for a task that already has its slots. */
const LANE_END = "\u0000";

export type LaneFields = Pick<WaitingTask, "agentId"> &
  Partial<Pick<WaitingTask, "gate" | "group" | "owns" | "needs" | "tray">>;

/**
 * The lane of a task: its agent, the gate if it waits at one, its group, what it owns, its weight and limits. Either all tasks of a
 * lane may start, or none of them. A task that waits in `processing/` for its next run keeps its slots.
 */
export function laneOf({
  gate,
  agentId = "",
  group = "",
  owns,
  needs,
  tray = "inbox",
}: LaneFields): string {
  const lane = gate === undefined ? agentId : `~${gate} ${agentId}`;
  if (tray === "processing" && gate === undefined) return lane + LANE_END;
  if (needs !== undefined)
    return lane + LANE_END + group + LANE_END + (owns ?? "") + LANE_END + needs;
  if (owns !== undefined) return lane + LANE_END + group + LANE_END + owns;
  return group === "" ? lane : lane + LANE_END + group;
}

const NO_LIMITS: readonly string[] = [];

/** The weight and the limits of a task as one text; undefined for weight 1 without limits. */
function needsOf(weight = 1, limits: readonly string[] = NO_LIMITS): string | undefined {
  return weight === 1 && limits.length === 0
    ? undefined
    : `${weight} ${[...limits].sort().join(" ")}`;
}

/** What a text of `needsOf` says. The name of a limit has no space. */
export function readNeeds(needs: string | undefined): {
  weight: number;
  limits: readonly string[];
} {
  if (needs === undefined || needs === "") return { weight: 1, limits: NO_LIMITS };
  const [weight, ...limits] = needs.split(" ").filter((part) => part !== "");
  return { weight: Number(weight), limits };
}

/** Removes the group of a task, because the group has no limit. Its weight goes, too. */
export function leaveGroup(task: WaitingTask): void {
  task.group = undefined;
  if (task.needs !== undefined) task.needs = needsOf(1, readNeeds(task.needs).limits);
}

export interface Lane {
  /** The text of `laneOf`. */
  key: string;
  gate?: string | undefined;
  agent: string;
  /** The agents that take its tasks over while `agent` is closed, the first one first. */
  fallbacks: readonly string[];
  group?: string | undefined;
  owns?: string | undefined;
  weight: number;
  /** The limits that its tasks name. */
  limits: readonly string[];
  /** Its tasks are in work already, and only wait for their next run. */
  hasPlaces: boolean;
}

/** The parts of a lane. A gate's name has no space. */
export function readLane(lane: string): Lane {
  const end = lane.indexOf(LANE_END);
  const head = end === -1 ? lane : lane.slice(0, end);
  const [group = "", owns = "", needs] = end === -1 ? [] : lane.slice(end + 1).split(LANE_END);
  const at = head.startsWith("~") ? head.indexOf(" ") : -1;
  const { weight, limits } = readNeeds(needs);
  return {
    key: lane,
    gate: at === -1 ? undefined : head.slice(1, at),
    ...readAgentId(head.slice(at + 1)),
    group: group === "" ? undefined : group,
    owns: owns === "" ? undefined : owns,
    weight,
    limits,
    hasPlaces: end !== -1 && end === lane.length - 1,
  };
}

/** What a task needs besides its agent: its group, the files that it owns, its weight and limits. */
export function limitsOf(
  task: Pick<Task, "group" | "weight" | "limits" | "owns" | "cwd" | "metadata">,
): Pick<WaitingTask, "group" | "owns" | "needs"> {
  const group = task.group === "" ? undefined : task.group;
  return {
    group,
    owns: task.owns === undefined ? undefined : ownsKeyOf(task),
    needs: needsOf(group === undefined ? 1 : task.weight, task.limits),
  };
}

export type WaitingFile = Pick<WaitingTask, "id" | "file" | "tray" | "attempt"> & {
  /** When the file was written, and when it got its name (epoch ms). */
  mtimeMs: number;
  ctimeMs: number;
};

/**
 * Makes the waiting task of a task file.
 * @param isMet whether this dependency has completed, or ended if that is enough
 */
export function waitingTask(
  task: Task,
  { id, file, tray, attempt, mtimeMs, ctimeMs }: WaitingFile,
  agents: readonly AgentSettings[],
  isMet: (dependency: Dependency) => boolean,
): WaitingTask {
  const match = matchAgent(task, agents);
  const { group, owns, needs } = limitsOf(task);
  // Members are added one by one: V8 makes a new hidden class for every object that gets members after a spread (4 µs each).
  const waiting: WaitingTask = {
    id,
    file,
    tray,
    attempt,
    priority: task.priority ?? 0,
    createdAt: task.created_at ?? Math.floor(mtimeMs / 1000),
    arrivedMs: ctimeMs,
    agentId: agentIdOf(match),
    group,
    owns,
    needs,
    isSelected: false,
  };
  // Not 0: a task without it is kept in less memory.
  if (task.sequence_number) waiting.sequence = task.sequence_number;
  if (isPlannerWork(task, match.agent)) waiting.isPlanner = true;
  const told = toldOf(task);
  if (told !== undefined) waiting.told = told;
  const finishing = finishingOf(task);
  if (finishing !== undefined) waiting.finishing = finishing;
  if (match.agent === undefined) waiting.reason = match.reason;
  if (task.not_before !== undefined) waiting.notBeforeMs = task.not_before * 1000;
  const { dependencies = [] } = task.metadata ?? {};
  if (dependencies.length > 0) addDependencies(waiting, readDependencies(dependencies), isMet);
  return waiting;
}

function addDependencies(
  waiting: WaitingTask,
  dependencies: readonly Dependency[],
  isMet: (dependency: Dependency) => boolean,
): void {
  const unmet = dependencies.filter((one) => !isMet(one));
  const toEnd = unmet.filter(({ required }) => required === "terminal");
  waiting.dependencies = dependencies.map(({ id }) => id);
  if (unmet.length > 0) waiting.unmet = unmet.map(({ id }) => id);
  if (toEnd.length > 0) waiting.toEnd = toEnd.map(({ id }) => id);
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

/**
 * Orders tasks for selection: what finishes other work first, then by priority, then created_at, then arrival, then sequence_number, then
 * id. `TaskTable.isBefore` has the same order for the numbers of a row.
 */
export function compareTasks(a: WaitingTask, b: WaitingTask): number {
  return (
    (b.finishing ?? 0) - (a.finishing ?? 0) ||
    b.priority - a.priority ||
    a.createdAt - b.createdAt ||
    a.arrivedMs - b.arrivedMs ||
    (a.sequence ?? 0) - (b.sequence ?? 0) ||
    compareIds(a.id, b.id)
  );
}

/** The shorter id comes first, so that job-2 runs before job-10. File systems give many files of a burst the same time. */
function compareIds(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}
