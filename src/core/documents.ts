/** The small JSON documents of a state tree that are replaced as a whole. Shapes only. */

import type { LastWord } from "./command.ts";
import type { Shortage } from "./free-space.ts";
import type { NodeStatus } from "./roadmap.ts";

/** `supervisor.json`: who runs this state tree. */
export interface SupervisorDocument {
  pid: number;
  /** Host, boot and pid namespace: see `host/identity`. */
  place: string;
  start_ticks: number;
  /** The state tree that this was written into: see `host/tree-id`. */
  tree: string | null;
  host: string;
  /** Random, made at start: the process whose nonce stands here is the supervisor. */
  nonce: string;
  version: string;
  /** ISO 8601. */
  started_at: string;
  heartbeat_at: string;
  status: "running" | "draining" | "stopping" | "stopped";
  workers: number;
  processes: number;
  /** How it learns of new files. */
  watching: "events" | "polling";
  /** Why nothing new starts: the disk has too little room; null: it may. Missing in documents of earlier versions. */
  intake_stopped?: ({ reason: "disk" } & Shortage) | null;
  /** Tasks known to wait in the inbox, and why they do. */
  waiting: WaitingCounts;
  /** Nodes of the plan by status; null without a plan. */
  roadmap: Record<NodeStatus, number> | null;
  /** Missing in documents of earlier versions; null without a plan. */
  plan_holds?: PlanHolds | null;
  /** What is wrong with `roadmap.yaml`: the last good plan stays in force. */
  roadmap_problem: string | null;
  /** What the machine refuses just now; missing in documents of earlier versions. */
  troubles?: Trouble[];
  /** Why tasks of some agents do not start; missing in documents of earlier versions. */
  gates?: ClosedGate[];
}

/** What tasks wait for together, such as the quota of an account. */
export interface ClosedGate {
  /** As in the names of held tasks: `quota-default`. */
  gate: string;
  /** Whose tasks it holds back. */
  agents: string[];
  /** Epoch ms. */
  until_ms: number;
  /** Reads after "it waits: ". */
  why: string;
  do: string;
}

/** Something that is short, and what a person can do about it. */
export interface Trouble {
  what: string;
  do: string;
}

export interface WaitingCounts {
  /** Could run now. */
  runnable: number;
  /** `not_before` or a backoff is in the future. */
  delayed: number;
  /** Unmet `metadata.dependencies`. */
  blocked: number;
  /** No configured agent fits. */
  unmatched: number;
  /** Files that are still being written, or are about to be refused. */
  unsettled: number;
  /** Files that can be neither read nor moved; missing in documents of earlier versions. */
  unreadable?: number;
  /** False until every file in the inbox was looked at once. */
  is_complete: boolean;
  /** Some of the last three, of each at most five; missing in documents of earlier versions. */
  held?: HeldTask[];
}

/** A task that does not start, and why: "no agent "a" is configured". */
export interface HeldTask {
  id: string;
  state: "blocked" | "unmatched" | "unreadable";
  why: string;
  /** Of a blocked one: some of what it waits for, and how that stands. Missing in documents of earlier versions. */
  on?: HeldOn[];
  /** How much it waits for in all. */
  on_count?: number;
}

/** What a blocked task waits for. */
export interface HeldOn {
  id: string;
  /** As it reads after its name and "which". */
  how: string;
  /** The plan says whether it is done, and no record does. */
  is_node?: boolean;
  /** There is no task and no node of this id. */
  is_unknown?: boolean;
}

/** What of the plan does not go on by itself; of each list the first five, in the order of the file. */
export interface PlanHolds {
  /** Nodes that wait for an answer, and the question; null when they have asked none. */
  asking: { id: string; question: string | null }[];
  /** Open nodes that do not start, and why, as it reads after the name: "cannot start: a failed". */
  held: { id: string; why: string }[];
  held_count: number;
}

/** `workers/<id>.json`: a worker process. The file's mtime is its heartbeat. */
export interface WorkerDocument {
  id: string;
  pid: number;
  place: string;
  start_ticks: number;
  /** As in `supervisor.json`. */
  tree: string | null;
  host: string;
  slots: number;
  /** pid of the supervisor that started it; null when started by hand. */
  supervisor_pid: number | null;
  /** Of its settings: see `worker/settings-digest`. */
  settings: string;
  started_at: string;
}

/** `control.json`: what steers the pool; survives a restart. Workers read `paused` and their `slots` here before each claim. */
export interface ControlDocument {
  paused: boolean;
  /** ISO 8601 and the id of the command, when paused. */
  paused_at: string | null;
  paused_by: string | null;
  /** Nodes that were in progress when the pause came and whose run had not begun: it begins in spite of the pause. */
  launched: string[];
  replan_paused: boolean;
  /** Overrides the `workers` setting; null = the setting holds. */
  max_workers: number | null;
  max_workers_by: string | null;
  /** The `workers` setting that it overrode; null when it overrides none, or was written by an earlier version. */
  max_workers_over: number | null;
  /** Slots of each worker process by worker id; a worker that is not listed uses its own number. */
  slots: Record<string, number>;
  /** Commands whose effect stands here already and which are not acknowledged yet, by their nonces. */
  applied: string[];
  /** By subject, the last command that overtook others of it: those that came before it change nothing any more. */
  last_words: Record<string, LastWord>;
}

export const INITIAL_CONTROL: ControlDocument = {
  paused: false,
  paused_at: null,
  paused_by: null,
  launched: [],
  replan_paused: false,
  max_workers: null,
  max_workers_by: null,
  max_workers_over: null,
  slots: {},
  applied: [],
  last_words: {},
};
