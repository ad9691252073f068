/**
 * What keeps tasks from starting: the gates of the whole pool, and the gates of parts. The supervisor asks with its live state;
 * everything that explains a wait asks the same functions with the state in the files. A new gate of the pool is one entry here,
 * one of a part is a `ClosedGate` that the part tells. Pure.
 */
import type { ClosedGate, GateFacts, SupervisorDocument } from "./documents.ts";
import { explainShortage, type Shortage } from "./free-space.ts";
import { SESSION_WAIT_MS } from "./limits.ts";
import type { ControlDocument } from "./saved-documents.ts";
import type { Lane, WaitingTask } from "./waiting-task.ts";

/** The waiting tasks that may be chosen. `finishing`: only those that finish other work. `ids` are tasks that are about to begin; only their first run may start. */
export type StartFilter =
  | { kind: "all" | "finishing" }
  | { kind: "planners"; ids: readonly string[] }
  | { kind: "these"; ids: readonly string[] };

/** `none`: never started or its file is gone. `dead`: it died without writing that it stopped. `unknown`: on another host or container. */
export type SupervisorState = SupervisorDocument["status"] | "dead" | "unknown" | "none";

export interface PoolState {
  supervisor: SupervisorState;
  pid: number | undefined;
  control: Pick<ControlDocument, "paused" | "paused_at" | "paused_by"> & {
    /** Tasks that were about to begin at the pause. */
    launched: readonly string[];
  };
  /** How many slots a command has set; null without one. */
  slots: number | null;
  shortage: Shortage | undefined;
  isMailboxOn: boolean;
  /** Whether each file of the inbox was looked at once. */
  isRead: boolean;
  /** For how long the supervisor has run (ms). */
  upMs: number;
  /** Only planners start, and these tasks, which are about to begin. Undefined without a replan. */
  replan: readonly string[] | undefined;
}

/** Why a task does not start now. */
export interface Reason {
  /** A clause that follows "it waits: ". */
  why: string;
  do: string;
  /** The gate opens by itself. */
  goesOn?: true;
  /** The tasks that may start even so. */
  passes?: StartFilter;
}

/** What the gates of accounts begin with. */
export const QUOTA_GATE = "quota-";
/** What the gates of tasks begin with that a person has taken over. */
export const ATTACHED_GATE = "attached-";

/** What the gates of agents begin with whose runs have no room in memory. */
export const MEMORY_GATE = "memory-";

/** The dispatcher waits this long for the first whole look at the inbox, so that a small inbox runs in the right order (ms). */
const FIRST_LOOK_MS = 250;

const NO_SUPERVISOR = reason("no supervisor runs on this state tree", "mailchute run");

type PoolCheck = (pool: PoolState) => Reason | false | undefined;

/** The first gate that is closed counts, so those that let no task pass come first. */
export const POOL_GATES = {
  supervisor: ({ supervisor, pid }) => {
    if (isAttendedIn(supervisor)) return false;
    const died = `the supervisor (pid ${pid}) died without stopping`;
    return supervisor === "dead"
      ? reason(died, "mailchute run; it takes back what was running")
      : NO_SUPERVISOR;
  },
  stopping: ({ supervisor }) =>
    supervisor === "stopping" && reason("the supervisor is stopping", "wait until it has ended"),
  mailbox: ({ isMailboxOn }) =>
    !isMailboxOn &&
    reason(
      "the task mailbox is off (mailbox_enabled: false), and only commands are taken",
      "set mailbox_enabled in config.yaml and restart mailchute run",
    ),
  disk: ({ shortage }) =>
    shortage &&
    reason(
      explainShortage(shortage),
      "make room on the disk; mailchute clean removes what is past its retention. It goes on by itself",
    ),
  reading: ({ isRead, upMs }) =>
    !isRead && upMs <= FIRST_LOOK_MS && reason("the inbox is being read", "wait", { goesOn: true }),
  slots: ({ slots }) =>
    slots === 0 && reason("the number of slots is set to 0", "mailchute set-workers N"),
  // Tasks that a part was about to start may still begin: the work that waits for them would wait for ever.
  pause: ({ supervisor, control: { paused, paused_at: at, paused_by, launched: ids } }) => {
    const by = paused_by === null ? "" : ` by command ${paused_by}`;
    const why = `claiming is paused since ${at ?? "an unknown time"}${by}`;
    const passes = ids.length > 0 && supervisor !== "draining";
    return (
      paused && reason(why, "mailchute resume", passes ? { passes: { kind: "these", ids } } : {})
    );
  },
  draining: ({ supervisor }) =>
    supervisor === "draining" &&
    reason("the supervisor drains: it ends when nothing is left", "wait, or mailchute stop", {
      passes: { kind: "finishing" },
    }),
  replan: ({ replan: ids }) =>
    ids &&
    reason(
      "the plan is made anew: other nodes wait until the planner has ended",
      "wait, or mailchute roadmap next --explain",
      { goesOn: true, passes: { kind: "planners", ids } },
    ),
} satisfies Record<string, PoolCheck>;

function reason(why: string, todo: string, more: Pick<Reason, "goesOn" | "passes"> = {}): Reason {
  return { why, do: todo, ...more };
}

export type PoolGate = keyof typeof POOL_GATES;

/** A closed gate. */
export type ClosedPool = Reason & { code: PoolGate };

/** All gates of the pool that are closed. */
export function closedPoolGates(pool: PoolState): ClosedPool[] {
  return Object.entries<PoolCheck>(POOL_GATES).flatMap(([code, check]) => {
    const closed = check(pool);
    return closed ? { ...closed, code: code as PoolGate } : [];
  });
}

/** The tasks that a choice is about. */
export type ChosenTask = Pick<WaitingTask, "id" | "attempt" | "isPlanner" | "finishing">;

/**
 * The first gate of the pool that is closed. It decides alone which tasks start.
 * @param task left out: for any task
 */
export function closedPool(pool: PoolState, task?: ChosenTask): ClosedPool | undefined {
  const [first] = closedPoolGates(pool);
  const isPassed = task !== undefined && first?.passes && isChosen(first.passes, task);
  return isPassed === true ? undefined : first;
}

function isChosen(which: StartFilter, task: ChosenTask): boolean {
  if ("ids" in which && task.attempt === 1 && which.ids.includes(task.id)) return true;
  if (which.kind === "planners") return task.isPlanner === true;
  return which.kind === "finishing" && task.finishing !== undefined;
}

/** True when a supervisor looks after the tree, as far as can be seen from here. */
export function isAttendedIn(state: SupervisorState): boolean {
  return ["running", "draining", "stopping", "unknown"].includes(state);
}

/** A closed gate of a part. @param more says whose tasks wait */
export function closedGate(
  gate: string,
  why: string,
  todo: string,
  more: Partial<ClosedGate> = {},
): ClosedGate {
  return { gate, agents: [], until_ms: 0, why, do: todo, ...more };
}

/**
 * Whether this gate of a part holds back the tasks of a lane. The starter and all that explain a wait ask this one function.
 */
export function closes(
  { gate, agents, group, owns, limit, groups = [], places, facts }: ClosedGate,
  lane: Lane,
): boolean {
  // Another agent of the task need not wait for this one.
  if (lane.gate === gate)
    return lane.fallbacks.length === 0 || agents.length === 0 || agents.includes(lane.agent);
  // A task in work that waits for its next run has its places.
  if (places === true && lane.hasPlaces) return false;
  return (
    agents.includes(lane.agent) ||
    (group !== undefined && group === lane.group) ||
    (owns !== undefined && owns === lane.owns) ||
    facts?.some((one) => keyOf(one) === keyOf(factsOf(lane))) === true ||
    (limit !== undefined && (lane.limits.includes(limit) || groups.includes(lane.group ?? "")))
  );
}

/**
 * The agent that runs the tasks of a lane now, and what holds them back: the first agent that only waits for a free slot, if at all.
 * Work goes over to another agent when its own is closed, and not when it is busy. Work that waits at the gate of the agent that has
 * begun it stays there when that gate opens soon.
 * @param closedAt all gates that hold back the tasks of one agent
 * @param nowMs epoch ms
 */
export function chooseAgent(
  lane: Lane,
  closedAt: (lane: Lane) => readonly ClosedGate[],
  nowMs: number,
): { lane: Lane; gate: ClosedGate | undefined } {
  const all = lanesOf(lane).map((one) => {
    const closed = closedAt(one);
    return { lane: one, gate: closed.find((gate) => !isBusy(gate)) ?? closed[0] };
  });
  const own = all.find(({ gate }) => gate !== undefined && gate.gate === lane.gate);
  if (own?.gate !== undefined && opensSoon(own.gate, nowMs)) return own;
  const first = all.find(({ gate }) => gate === undefined || isBusy(gate));
  return first ?? all[0] ?? { lane, gate: undefined };
}

/** The lane once for each agent that may run its tasks. */
export function lanesOf(lane: Lane): Lane[] {
  return [lane, ...lane.fallbacks.map((agent) => ({ ...lane, agent }))];
}

/** The gate of an account has no time while runs start one by one. */
function opensSoon({ gate, until_ms: untilMs }: ClosedGate, nowMs: number): boolean {
  return gate.startsWith(QUOTA_GATE) && untilMs - nowMs <= SESSION_WAIT_MS;
}

/** It opens when a task ends. */
function isBusy({ gate, places, is_shut: isShut }: ClosedGate): boolean {
  return gate.startsWith(MEMORY_GATE) || (places === true && isShut !== true);
}

/** The first of these gates that holds back the tasks of a lane. @param nowMs epoch ms */
export function gateAt(
  gates: readonly ClosedGate[],
  lane: Lane,
  nowMs: number,
): ClosedGate | undefined {
  if (lane.fallbacks.length === 0) return gates.find((gate) => closes(gate, lane));
  return chooseAgent(lane, (one) => gates.filter((gate) => closes(gate, one)), nowMs).gate;
}

export function factsOf({ agent, group, limits, hasPlaces }: Lane): GateFacts {
  return { agent, group: group ?? null, limits, has_begun: hasPlaces };
}

/** Each gate once for each reason, with all facts for which it is closed. */
export function joinGates(closed: readonly ClosedGate[]): ClosedGate[] {
  const all = new Map<string, ClosedGate>();
  for (const one of closed) {
    const key = JSON.stringify([one.gate, one.why, one.until_ms]);
    all.set(key, { ...one, facts: [...(all.get(key)?.facts ?? []), ...(one.facts ?? [])] });
  }
  return [...all.values()];
}

function keyOf({ agent, group, limits, has_begun }: GateFacts): string {
  return JSON.stringify([agent, group, limits, has_begun]);
}
