/**
 * Escalation: how the plan changes when a node has failed for good. Pure. Rule: a failed task is escalated to its
 * parent plan; if that escalation fails, to the next plan above; if there is none, a person must act.
 */
import { createHash } from "node:crypto";
import { ID_CHARS_MAX } from "../../../core/limits.ts";
import { isTerminal, type RoadmapNode } from "../../../core/roadmap.ts";
import type { RoadmapEdit } from "../edit/edit.ts";
import type { FindNode } from "./belonging.ts";

const PREFIX = "plan-escalate-";
/** How often a finished escalation is opened again for the same subject. After that the escalation itself counts as failed. */
export const REOPENS_MAX = 3;

export type Escalation =
  | { kind: "escalated"; id: string; subject: string; edits: RoadmapEdit[] }
  /** An open or running escalation will deal with the failure, in this run or the next one. */
  | { kind: "pending"; id: string; subject: string; edits: RoadmapEdit[] }
  /** The failed node has no plan above it, so it cannot be escalated. The report of its failure is enough. */
  | { kind: "none"; subject: string; edits: [] }
  /** An escalation failed, too, and there is no further plan above. */
  | { kind: "stopped"; subject: string; why: string; edits: [] };

/** @param failed the node that has just failed for good */
export function escalate(failed: RoadmapNode, find: FindNode): Escalation {
  const plan = planAround(failed, find);
  if (!isEscalation(failed.id))
    return plan === undefined
      ? { kind: "none", subject: failed.id, edits: [] }
      : raise(failed, plan, failed, find);
  if (plan === undefined) return stopped(failed.id, "it stands under no plan");
  return raise(plan, planAround(plan, find), failed, find);
}

export function isEscalation(id: string): boolean {
  return id.startsWith(PREFIX);
}

export function escalationId(subjectId: string): string {
  const id = PREFIX + subjectId;
  if (id.length <= ID_CHARS_MAX) return id;
  const digest = createHash("sha256").update(subjectId).digest("hex").slice(0, 8);
  return `${id.slice(0, ID_CHARS_MAX - digest.length - 1)}-${digest}`;
}

/** The nearest plan among the parents of this node. */
export function planAround(node: RoadmapNode, find: FindNode): RoadmapNode | undefined {
  const seen = new Set([node.id]);
  for (let at = node.parent; at !== undefined && !seen.has(at); ) {
    seen.add(at);
    const parent = find(at);
    if (parent === undefined || parent.type === "plan") return parent;
    at = parent.parent;
  }
  return undefined;
}

/** @param cause the failed node, whose end the escalation waits for */
function raise(
  subject: RoadmapNode,
  plan: RoadmapNode | undefined,
  cause: RoadmapNode,
  find: FindNode,
): Escalation {
  if (plan === undefined) {
    return stopped(
      subject.id,
      subject.type === "plan" ? "it is a root plan" : "it stands under no plan",
    );
  }
  const id = escalationId(subject.id);
  const known = find(id);
  if (known === undefined) {
    return {
      kind: "escalated",
      id,
      subject: subject.id,
      edits: [{ kind: "add", node: newEscalation(id, subject, plan, cause) }],
    };
  }
  if (!isTerminal(known.status)) {
    const inputs = [...known.inputs.filter(({ nodeId }) => nodeId !== cause.id), ...told(cause)];
    return { kind: "pending", id, subject: subject.id, edits: speakOf(known, cause, inputs) };
  }
  const edits = reopen(known, speakOf(known, cause, told(cause)));
  // The failure was resolved several times and came back each time: this planner cannot resolve it.
  if (edits === undefined) return raise(plan, planAround(plan, find), cause, find);
  return { kind: "escalated", id, subject: subject.id, edits };
}

/**
 * Opens a successful escalation again for nodes that failed while it ran; undefined if there are none.
 * @param shown the nodes whose values its run received
 * @param find returns nodes with the changes that the run itself made
 */
export function goOn(
  node: RoadmapNode,
  shown: readonly string[],
  find: FindNode,
): Escalation | undefined {
  if (!isEscalation(node.id)) return undefined;
  const late = node.inputs.filter(
    ({ nodeId }) => !shown.includes(nodeId) && find(nodeId)?.status === "failed",
  );
  const cause = find(late[0]?.nodeId ?? "");
  if (cause === undefined) return undefined;
  const { id } = node;
  const edits = reopen(node, [{ kind: "set", id, field: "inputs", value: late }]);
  if (edits !== undefined) return { kind: "escalated", id, subject: cause.id, edits };
  const plan = planAround(node, find);
  return plan === undefined ? undefined : raise(plan, planAround(plan, find), cause, find);
}

/** @returns undefined if the escalation has been opened again too often */
function reopen(known: RoadmapNode, changes: readonly RoadmapEdit[]): RoadmapEdit[] | undefined {
  const { id } = known;
  const reopened = (known.reopened ?? 0) + 1;
  if (reopened > REOPENS_MAX) return undefined;
  return [
    ...changes,
    { kind: "status", id, status: "open" },
    { kind: "set", id, field: "reopened", value: reopened },
  ];
}

/** The inputs that describe a failure to a planner. */
function told(cause: RoadmapNode): { nodeId: string; key: string }[] {
  return [
    { nodeId: cause.id, key: "err.summary" },
    { nodeId: cause.id, key: "out.last_stdout_path" },
  ];
}

/** Adds another failed node to an existing escalation. */
function speakOf(
  known: RoadmapNode,
  cause: RoadmapNode,
  inputs: ReturnType<typeof told>,
): RoadmapEdit[] {
  const { id } = known;
  const isKnown = known.dependencies.some((dependency) => dependency.id === cause.id);
  const edits: RoadmapEdit[] = [{ kind: "set", id, field: "inputs", value: inputs }];
  if (!isKnown) edits.push({ kind: "add-dep", id, on: cause.id, required: "terminal" });
  return edits;
}

function newEscalation(
  id: string,
  subject: RoadmapNode,
  plan: RoadmapNode,
  cause: RoadmapNode,
): Extract<RoadmapEdit, { kind: "add" }>["node"] {
  return {
    id,
    type: "plan",
    title: `Resolve the failure of ${subject.id}`,
    status: "open",
    parent: plan.id,
    priority: subject.priority,
    dependencies: [{ id: cause.id, required_status: "terminal" }],
    goal:
      `${subject.id} (${subject.title}) has failed for good. Find out why, and change the plan so that its goal is reached: ` +
      "add nodes, or mend what it lacked and set it open again.",
    inputs: told(cause),
  };
}

function stopped(subject: string, why: string): Escalation {
  return { kind: "stopped", subject, why, edits: [] };
}
