/** The shapes of the plan: the content of `state/roadmap.yaml` as plain data. Pure. */

import type { TaskBudget } from "./budget.ts";
import type { NodePriority } from "./priority.ts";

/** The type of a node. Epics and milestones only hold other nodes and are never run. */
export type NodeType =
  | "plan"
  | "epic"
  | "milestone"
  | "task"
  | "verify"
  | "integrate"
  | "final_verify";

export const NODE_TYPES: readonly NodeType[] = [
  "plan",
  "epic",
  "milestone",
  "task",
  "verify",
  "integrate",
  "final_verify",
];

/** Items under `epics` are written with `pending` instead of `open`. Both words can be read everywhere. */
export type NodeStatus = "open" | "in_progress" | "blocked" | "needs_human" | "done" | "failed";

export const NODE_STATUSES: readonly NodeStatus[] = [
  "open",
  "in_progress",
  "blocked",
  "needs_human",
  "done",
  "failed",
];

/** How many nodes have each status. Epics and milestones are not counted. */
export type StatusCounts = Record<NodeStatus, number>;

export interface NodeDependency {
  id: string;
  /** `done` (the default): it must have succeeded. `terminal`: it must have ended, even with a failure. */
  required: "done" | "terminal";
}

/** A value of kv that is put into the node's packet. `nodeId` `__run__` is the scope that all nodes share. */
export interface NodeInput {
  nodeId: string;
  key: string;
  as?: string;
}

export interface RoadmapNode {
  id: string;
  type: NodeType;
  title: string;
  status: NodeStatus;
  /** The list in the file that holds the node. */
  section: "nodes" | "epics";
  /** Id of the node it belongs to: a field of items under `nodes`; the milestone or epic around an item under `epics`. */
  parent?: string;
  /** Ids of the epic and milestone around it, used by filters. */
  epic?: string;
  milestone?: string;
  domain?: string;
  /** As it is written: a word, or a number as in a task. */
  priority: NodePriority | number;
  dependencies: NodeDependency[];
  /** `retry_policy.max_attempts`: N means N runs. */
  max_attempts?: number;
  inputs: NodeInput[];
  /** The field `goal` of the file, or `description`. */
  goal?: string;
  prompt?: string;
  acceptance: string[];
  /** Programs, each as argv, that must all exit with 0 before the node is done. */
  verify: string[][];
  /** Files that must exist at its end; see the same field of `Task`. */
  expect_files?: string[];
  /** See the same field of `Task`. */
  keep_background?: boolean;
  exec?: string[];
  agent?: string;
  /** Overrides the agent type that follows from `type`, e.g. researcher, reviewer. */
  role?: string;
  capabilities: string[];
  cwd?: string;
  env?: Record<string, string>;
  timeout_ms?: number;
  payload?: unknown;
  /** How much a coding agent may spend on it, from one launch to the next. */
  budget?: TaskBudget;
  /** How many times a finished escalation was opened again. */
  reopened?: number;
  /** Position in the file, from 0. */
  order: number;
}

/** How much all nodes of the plan together may spend: the keys `name` and `budget` at the top of the file. */
export interface PlanBudget {
  /** A plan of another name has a sum of its own. */
  name: string;
  budget: TaskBudget;
}

/** The name of a plan without one. */
export const UNNAMED_PLAN = "plan";

export function isContainer(node: Pick<RoadmapNode, "type">): boolean {
  return node.type === "epic" || node.type === "milestone";
}

export function isTerminal(status: NodeStatus): boolean {
  return status === "done" || status === "failed";
}

/** The scope in kv for values that belong to no single node. */
export const RUN_SCOPE = "__run__";

/** The fields of a node that its task carries in `metadata.roadmap`. */
export interface NodeBrief {
  id: string;
  type: NodeType;
  title: string;
  parent?: string;
  goal?: string;
  acceptance: string[];
  inputs: NodeInput[];
  /** Questions and answers of earlier checkpoints, which the packet shows. */
  answers?: { question: string; answer: string }[];
}

/** True for a task that was made from this node. A task that only has the same id does not belong to the plan. */
export function isNodeTask(task: unknown, id: string): boolean {
  const metadata = (task as { metadata?: { roadmap?: { id?: unknown } } } | null)?.metadata;
  return metadata?.roadmap?.id === id;
}

/** What to do about failed nodes. A retry runs the text of the launch, so edits of the plan need a reset. */
export function mendNodes(ids: readonly string[]): string {
  const names = ids.join(" ");
  return `mend roadmap.yaml, then: mailchute roadmap reset ${names} --downstream; or the same text again: mailchute retry ${names}`;
}
