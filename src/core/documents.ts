/** The shapes of the small JSON documents of a state tree. A writer always replaces a whole document. */

import type { Shortage } from "./free-space.ts";
import type { NodeStatus } from "./roadmap.ts";

/** `supervisor.json`: the supervisor of this state tree, and its state. */
export interface SupervisorDocument {
  pid: number;
  /** Host, boot and pid namespace: see `host/identity`. */
  place: string;
  start_ticks: number;
  /** The identity of the state tree, so that a copied tree is recognized: see `host/tree-id`. */
  tree: string | null;
  host: string;
  /** A random value made at start. The process whose nonce is written here is the supervisor. */
  nonce: string;
  version: string;
  /** ISO 8601. */
  started_at: string;
  heartbeat_at: string;
  /** The heartbeat on the monotonic clock of the machine (ms). It means something only to processes of the same `place`. Missing in documents of earlier versions. */
  heartbeat_mono_ms?: number;
  status: "running" | "draining" | "stopping" | "stopped";
  workers: number;
  processes: number;
  /** How the supervisor notices new files. */
  watching: "events" | "polling";
  /** Set while no new task starts because the disk has too little room; else null. Missing in documents of earlier versions. */
  intake_stopped?: ({ reason: "disk" } & Shortage) | null;
  /** How many tasks wait in the inbox, by the reason why they wait. */
  waiting: WaitingCounts;
  /** How many nodes of the plan have each status; null without a plan. */
  roadmap: Record<NodeStatus, number> | null;
  /** Missing in documents of earlier versions; null without a plan. */
  plan_holds?: PlanHolds | null;
  /** What is wrong with `roadmap.yaml`. Until a person mends it, the supervisor uses the last valid plan. */
  roadmap_problem: string | null;
  /** What the operating system refuses at the moment. Missing in documents of earlier versions. */
  troubles?: Trouble[];
  /** Fields of dropped tasks that have no effect. Missing in documents of earlier versions. */
  field_warnings?: Trouble[];
  /** Why tasks of some agents do not start. Missing in documents of earlier versions. */
  gates?: ClosedGate[];
  /** How many tasks of each group and limit of `config.yaml` wait, and how many of its places are taken, by `limitKey`. Missing in documents of earlier versions. */
  limits?: Record<string, { waiting: number; in_work: number }>;
  /** Agents that are functions of the program that runs this supervisor. Those of config.yaml are not listed. Missing without any. */
  handlers?: string[];
  /** Only in a document of a supervisor that takes no tasks from the inbox. */
  mailbox_enabled?: false;
  /** Only planners start. Missing when that is not so, and in documents of earlier versions. */
  replans?: true;
}

/** What a gate of a plugin is asked about. All waiting tasks with the same facts start, or wait. */
export interface GateFacts {
  agent: string;
  /** Of a task that has begun, group and limits are not known: it has its places. */
  group: string | null;
  limits: readonly string[];
  /** The task has begun, and waits for its next run. */
  has_begun: boolean;
}

/** A gate that keeps tasks from starting, such as the quota of an account that is used up. */
export interface ClosedGate {
  /** Its name, as in the file names of held tasks: `quota-default`. */
  gate: string;
  /** The agents whose tasks do not start. */
  agents: string[];
  /** The group whose tasks do not start. */
  group?: string;
  /** Tasks that own these files do not start: see `ownsKeyOf`. */
  owns?: string;
  /** Tasks of this limit do not start. `groups` are the groups that it applies to. */
  limit?: string;
  groups?: string[];
  /** Tasks with exactly these facts do not start. */
  facts?: GateFacts[];
  /** True for a gate of a plugin that gave no answer. */
  is_broken?: true;
  /** Epoch ms. */
  until_ms: number;
  /** The reason, as a text that follows "it waits: ". */
  why: string;
  /** For some held tasks, by id, the reason why this task waits. */
  tasks?: Readonly<Record<string, string>>;
  do: string;
  /** True when nothing is wrong: its tasks are in work, so people are not told. */
  is_well?: boolean;
  /** True when it does not open while this supervisor runs, unless a person opens it. */
  is_shut?: true;
  /** True when places are short there: tasks in work have theirs. */
  places?: true;
}

/** Something that the machine lacks, and what a person can do about it. */
export interface Trouble {
  what: string;
  do: string;
}

export interface WaitingCounts {
  /** Tasks that could run now. */
  runnable: number;
  /** Tasks whose `not_before` or backoff has not passed. */
  delayed: number;
  /** Tasks with a dependency that has not completed. */
  blocked: number;
  /** Tasks that no configured agent can run. */
  unmatched: number;
  /** Files that are still being written, or are about to be refused. */
  unsettled: number;
  /** Files that can be neither read nor moved. Missing in documents of earlier versions. */
  unreadable?: number;
  /** False until the supervisor has looked once at every file in the inbox. */
  is_complete: boolean;
  /** Some blocked, unmatched and unreadable tasks, at most five of each. Missing in documents of earlier versions. */
  held?: HeldTask[];
}

/** A task that does not start, and why: "no agent "a" is configured". */
export interface HeldTask {
  id: string;
  /** `closed`: its group or its agent has 0 slots. */
  state: "blocked" | "unmatched" | "unreadable" | "closed";
  why: string;
  /** Some dependencies that a blocked task waits for. Missing in documents of earlier versions. */
  on?: HeldOn[];
  /** How many dependencies it waits for in all. */
  on_count?: number;
}

/** A dependency that a blocked task waits for. */
export interface HeldOn {
  id: string;
  /** Its state, as a text that follows its name and "which": "failed". */
  how: string;
  /** The dependency is a node of the plan, so the plan says whether it is done. */
  is_node?: boolean;
  /** No task and no node has this id. */
  is_unknown?: boolean;
}

/** Nodes of the plan that wait for a person. Each list holds the first five, in the order of the file. */
export interface PlanHolds {
  /** Nodes with status `needs_human`, and their question; null when they asked no question. */
  asking: { id: string; question: string | null }[];
  /** Open nodes that do not start. `why` is a text that follows the name: "cannot start: a failed". */
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
  /** Process id of the supervisor that started this worker; null when a person started it. */
  supervisor_pid: number | null;
  /** A digest of the settings that the worker uses: see `worker/settings-digest`. */
  settings: string;
  started_at: string;
}
