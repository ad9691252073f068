/** The shapes of the plan: what `state/roadmap.yaml` says, as plain data. Pure. */

/** What a node is. Epics and milestones hold others and are never run. */
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

/** `open` is written `pending` in items under `epics`; both are read everywhere. */
export type NodeStatus = "open" | "in_progress" | "blocked" | "needs_human" | "done" | "failed";

export const NODE_STATUSES: readonly NodeStatus[] = [
  "open",
  "in_progress",
  "blocked",
  "needs_human",
  "done",
  "failed",
];

/** Nodes that are run, by status. */
export type StatusCounts = Record<NodeStatus, number>;

/** Best first. */
export const NODE_PRIORITIES = ["critical", "high", "medium", "low"] as const;
export type NodePriority = (typeof NODE_PRIORITIES)[number];

export interface NodeDependency {
  id: string;
  /** `done` (the default) waits for success; `terminal` also takes a failure for an end. */
  required: "done" | "terminal";
}

/** A value that a node wants to see in its packet. `nodeId` `__run__` is the run's own scope. */
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
  /** Which list of the file it stands in. */
  section: "nodes" | "epics";
  /** The node it belongs to: as written under `nodes`; the milestone or epic around it under `epics`. */
  parent?: string;
  /** Ids of the containers around it, for filters. */
  epic?: string;
  milestone?: string;
  domain?: string;
  priority: NodePriority;
  dependencies: NodeDependency[];
  /** `retry_policy.max_attempts`: N means N runs. */
  max_attempts?: number;
  inputs: NodeInput[];
  /** `goal`, or `description`. */
  goal?: string;
  prompt?: string;
  acceptance: string[];
  /** Programs that must all exit 0 for the node to be done; argv each. */
  verify: string[][];
  /** Files that must be there at its end; see the field of a task. */
  expect_files?: string[];
  exec?: string[];
  agent?: string;
  /** Overrides the agent type that follows from `type`, e.g. researcher, reviewer. */
  role?: string;
  capabilities: string[];
  cwd?: string;
  env?: Record<string, string>;
  timeout_ms?: number;
  payload?: unknown;
  /** How often a finished escalation was opened again. */
  reopened?: number;
  /** Place in the file's order, from 0. */
  order: number;
  /** Of the item's id in the file, from 1. */
  line: number;
  col: number;
}

export function isContainer(node: Pick<RoadmapNode, "type">): boolean {
  return node.type === "epic" || node.type === "milestone";
}

export function isTerminal(status: NodeStatus): boolean {
  return status === "done" || status === "failed";
}

/** The scope in kv of what belongs to the run and to no node. */
export const RUN_SCOPE = "__run__";

/** What of a node travels with its task, in `metadata.roadmap`. */
export interface NodeBrief {
  id: string;
  type: NodeType;
  title: string;
  parent?: string;
  goal?: string;
  acceptance: string[];
  inputs: NodeInput[];
  /** Question and answer of an earlier checkpoint, for the Resume Context. */
  answers?: { question: string; answer: string }[];
}

/** True for a task that was made from a node: only such a one is the plan's own. */
export function isNodeTask(task: unknown, id: string): boolean {
  const metadata = (task as { metadata?: { roadmap?: { id?: unknown } } } | null)?.metadata;
  return metadata?.roadmap?.id === id;
}
