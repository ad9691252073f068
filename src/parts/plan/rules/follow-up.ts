/** Decides how a settled run of a node changes the plan: one list of edits, made together or not at all. Pure. */
import type { Envelope, EnvelopeNode } from "../../../core/envelope.ts";
import { foldId } from "../../../core/names.ts";
import { headlineOf } from "../../../core/outcome.ts";
import { isContainer, type NodeStatus, type RoadmapNode } from "../../../core/roadmap.ts";
import type { NewNode, RoadmapEdit } from "../edit/edit.ts";
import type { FindNode } from "./belonging.ts";
import { type Escalation, escalate, goOn } from "./escalation.ts";

/** A settled run, as its record describes it. */
export type SettledRun =
  /** `shown`: the nodes whose values the run received. */
  | { ended: "success"; next: NextSteps | undefined; shown?: readonly string[] }
  | { ended: "checkpoint"; next: NextSteps | undefined; question: string }
  | { ended: "failed"; kind: string; error: string };

type NextSteps = Envelope["next"];

/** The current plan. */
interface Plan {
  find: FindNode;
  /** Why edits cannot be made; undefined if they can. */
  explainRefused(edits: readonly RoadmapEdit[]): string | undefined;
}

export interface FollowUp {
  edits: RoadmapEdit[];
  /** The node's new status; undefined if a person set another one while the node ran. */
  status: NodeStatus | undefined;
  /** Why a successful run still counts as failed. */
  error?: string;
  escalation?: { id: string; subject: string };
  /** Messages for people who should look at the node. */
  alerts: { kind: string; message: string }[];
}

/** @param node the node in the current plan */
export function followUp(node: RoadmapNode, run: SettledRun, plan: Plan): FollowUp {
  // A person marked the node done, failed or blocked while it ran: that status stays.
  if (node.status !== "in_progress") return { edits: [], status: undefined, alerts: [] };
  if (run.ended === "failed") return failure(node, run.kind, run.error, plan);
  const { edits, alerts } = stepsOf(node, run.next, plan);
  const status = run.ended === "success" ? "done" : "needs_human";
  const own: RoadmapEdit = { kind: "status", id: node.id, status };
  const more =
    run.ended === "success" && run.shown !== undefined
      ? goOn(node, run.shown, (id) => findAfter(edits, id, plan))
      : undefined;
  const all = [...edits, own, ...(more?.edits ?? [])];
  const refused =
    explainInProgress(edits) ?? (all.length === 1 ? undefined : plan.explainRefused(all));
  if (refused !== undefined) {
    const error = `what it wants next is not possible: ${refused}`;
    return { ...failure(node, "invalid_result", error, plan), error };
  }
  if (run.ended === "checkpoint")
    alerts.push({
      kind: "needs_human",
      message: `${node.id} asks: ${run.question} (answer with: mailchute answer ${node.id} TEXT)`,
    });
  if (more === undefined) return { edits: all, status, alerts };
  const said = saidOf(more, more.subject);
  return { ...said, edits: all, status, alerts: [...alerts, ...said.alerts] };
}

/** Finds a node, with the status that the edits give it. */
function findAfter(edits: readonly RoadmapEdit[], id: string, plan: Plan): RoadmapNode | undefined {
  const node = plan.find(id);
  const last = edits.findLast((edit) => edit.kind === "status" && foldId(edit.id) === foldId(id));
  return node !== undefined && last?.kind === "status" ? { ...node, status: last.status } : node;
}

/** Refuses the status `in_progress`: a node that was not launched would seem to run. */
function explainInProgress(edits: readonly RoadmapEdit[]): string | undefined {
  for (const edit of edits) {
    const said = edit.kind === "add" ? edit.node : edit;
    if ("status" in said && said.status === "in_progress")
      return `${said.id} cannot be set to in_progress: only the supervisor sets that`;
  }
  return undefined;
}

function failure(node: RoadmapNode, kind: string, error: string, plan: Plan): FollowUp {
  const own: RoadmapEdit = { kind: "status", id: node.id, status: "failed" };
  // A person cancelled the node, so it needs no alert and no escalation.
  if (kind === "cancelled") return { edits: [own], status: "failed", alerts: [] };
  const escalation = possible(
    escalate(node, (id) => plan.find(id)),
    own,
    plan,
  );
  const said = saidOf(escalation, node.id);
  const alert = {
    kind: "node_failed",
    message: `${node.id} failed for good: ${headlineOf(error)}`,
  };
  return {
    ...said,
    edits: [own, ...escalation.edits],
    status: "failed",
    alerts: [alert, ...said.alerts],
  };
}

/** Limits an escalation to edits that are possible. A new one can always be added, but editing an existing one may be refused. */
function possible(escalation: Escalation, own: RoadmapEdit, plan: Plan): Escalation {
  const { edits } = escalation;
  if (escalation.kind === "stopped" || escalation.kind === "none") return escalation;
  if (edits.every((edit) => edit.kind === "add")) return escalation;
  if (plan.explainRefused([own, ...edits]) === undefined) return escalation;
  // The failed node may depend on this very escalation. Then the new dependency would make a circle and is left out.
  const withoutCircle = edits.filter((edit) => edit.kind !== "add-dep");
  const refused = plan.explainRefused([own, ...withoutCircle]);
  if (refused === undefined) return { ...escalation, edits: withoutCircle };
  const why = `${escalation.id} cannot be changed: ${refused}`;
  return { kind: "stopped", subject: escalation.subject, why, edits: [] };
}

/** What an escalation means for people: a planner that looks after the failure, or an alert. */
function saidOf(escalation: Escalation, failedId: string): Pick<FollowUp, "escalation" | "alerts"> {
  const { kind, subject } = escalation;
  if (kind === "escalated") return { escalation: { id: escalation.id, subject }, alerts: [] };
  if (kind !== "stopped") return { alerts: [] };
  const message = `no planner is left to resolve the failure of ${failedId}: ${subject} cannot be escalated, because ${escalation.why}`;
  return { alerts: [{ kind: "escalation_stopped", message }] };
}

/** The edits for a run's `next`. A planner that plans again also names existing nodes: those are not changed. */
function stepsOf(
  node: RoadmapNode,
  next: NextSteps | undefined,
  plan: Plan,
): { edits: RoadmapEdit[]; alerts: FollowUp["alerts"] } {
  const edits: RoadmapEdit[] = [];
  const alerts: FollowUp["alerts"] = [];
  const parent = node.type === "plan" ? node.id : node.parent;
  for (const added of next?.addNodes ?? [])
    if (plan.find(added.id) === undefined)
      edits.push({ kind: "add", node: newNode(added, parent) });
  for (const { id, status } of next?.setStatus ?? []) {
    const target = plan.find(id);
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

/** The node to add. Fields that the envelope leaves out are also left out in the file. */
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
