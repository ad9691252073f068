/** What follows for the plan from a node's settled run: one list of edits, to be made together or not at all. Pure. */
import type { Envelope, EnvelopeNode } from "../core/envelope.ts";
import { foldId } from "../core/names.ts";
import { isContainer, type NodeStatus, type RoadmapNode } from "../core/roadmap.ts";
import type { NewNode, RoadmapEdit } from "./edit.ts";
import { escalate, type FindNode } from "./escalation.ts";

/** A settled run, as its record tells it. */
export type SettledRun =
  | { ended: "success"; next: NextSteps | undefined }
  | { ended: "checkpoint"; next: NextSteps | undefined; question: string }
  | { ended: "failed"; kind: string; error: string };

type NextSteps = Envelope["next"];

export interface FollowUp {
  edits: RoadmapEdit[];
  /** The node's own new status; undefined when a person has decided otherwise meanwhile. */
  status: NodeStatus | undefined;
  /** Why a run that ended well has failed all the same. */
  error?: string;
  escalation?: { id: string; subject: string };
  /** For people: what should be looked at. */
  alerts: { kind: string; message: string }[];
}

/**
 * @param node as it stands in the plan now
 * @param check says why these edits cannot be made, if they cannot
 */
export function followUp(
  node: RoadmapNode,
  run: SettledRun,
  find: FindNode,
  check: (edits: RoadmapEdit[]) => string | undefined,
): FollowUp {
  // Somebody has marked it done, failed or blocked while it ran: that stands.
  if (node.status !== "in_progress") return { edits: [], status: undefined, alerts: [] };
  if (run.ended === "failed") return failure(node, run.kind, run.error, find);
  const { edits, alerts } = stepsOf(node, run.next, find);
  const status = run.ended === "success" ? "done" : "needs_human";
  const own: RoadmapEdit = { kind: "status", id: node.id, status };
  const refused =
    explainRefused(edits) ?? (edits.length === 0 ? undefined : check([...edits, own]));
  if (refused !== undefined) {
    const error = `what it wants next is not possible: ${refused}`;
    return { ...failure(node, "invalid_result", error, find), error };
  }
  if (run.ended === "checkpoint")
    alerts.push({
      kind: "needs_human",
      message: `${node.id} asks: ${run.question} (answer with: mailchute answer ${node.id} TEXT)`,
    });
  return { edits: [...edits, own], status, alerts };
}

/** A node that nobody has launched would seem to run. */
function explainRefused(edits: readonly RoadmapEdit[]): string | undefined {
  for (const edit of edits) {
    const said = edit.kind === "add" ? edit.node : edit;
    if ("status" in said && said.status === "in_progress")
      return `${said.id} cannot be set to in_progress, that is the supervisor's word`;
  }
  return undefined;
}

function failure(node: RoadmapNode, kind: string, error: string, find: FindNode): FollowUp {
  const own: RoadmapEdit = { kind: "status", id: node.id, status: "failed" };
  const alerts = [{ kind: "node_failed", message: `${node.id} failed for good: ${error}` }];
  // Whoever cancels knows about it.
  if (kind === "cancelled") return { edits: [own], status: "failed", alerts: [] };
  const escalation = escalate(node, find);
  if (escalation.kind === "stopped") {
    alerts.push({
      kind: "escalation_stopped",
      message: `nobody is left to resolve the failure of ${node.id}: ${escalation.subject} cannot be escalated, ${escalation.why}`,
    });
    return { edits: [own], status: "failed", alerts };
  }
  const { id, subject, edits } = escalation;
  if (escalation.kind === "pending" && escalation.isLate)
    alerts.push({
      kind: "escalation_pending",
      message: `${id} began before ${node.id} failed, and may not know of it: look whether its plan deals with ${node.id}`,
    });
  return {
    edits: [own, ...edits],
    status: "failed",
    alerts,
    ...(escalation.kind === "escalated" ? { escalation: { id, subject } } : {}),
  };
}

/** A planner that plans again names what is there already: known nodes stay as they are. */
function stepsOf(
  node: RoadmapNode,
  next: NextSteps | undefined,
  find: FindNode,
): { edits: RoadmapEdit[]; alerts: FollowUp["alerts"] } {
  const edits: RoadmapEdit[] = [];
  const alerts: FollowUp["alerts"] = [];
  const parent = node.type === "plan" ? node.id : node.parent;
  for (const added of next?.addNodes ?? [])
    if (find(added.id) === undefined) edits.push({ kind: "add", node: newNode(added, parent) });
  for (const { id, status } of next?.setStatus ?? []) {
    const target = find(id);
    if (foldId(id) === foldId(node.id)) continue;
    if (target !== undefined && (target.status === "in_progress" || isContainer(target))) {
      alerts.push({
        kind: "status_refused",
        message: `${node.id} wants ${id} to be ${status}, but it ${isContainer(target) ? "is no node that is run" : "is running"}`,
      });
      continue;
    }
    if (target?.status !== status) edits.push({ kind: "status", id, status });
  }
  return { edits, alerts };
}

/** What it leaves out is left out in the file, too. */
function newNode(added: EnvelopeNode, parent: string | undefined): NewNode {
  const fields = Object.entries(added).filter(
    ([, value]) => !(Array.isArray(value) && value.length === 0),
  );
  return {
    ...(parent === undefined ? {} : { parent }),
    ...Object.fromEntries(fields),
    id: added.id,
    status: added.status ?? "open",
  };
}
