/** The state of a node for tasks that depend on it and for people who wait for it. Pure. */
import { foldId } from "../../../core/names.ts";
import { isContainer, type RoadmapNode } from "../../../core/roadmap.ts";
import type { Standing } from "../../../core/unmet.ts";
import type { FindNode } from "./belonging.ts";
import type { WaitingNode } from "./next.ts";
import { isAllDone } from "./progress.ts";

/** The plan around a node, and the done nodes whose work has not landed. */
export interface Surroundings {
  nodes: readonly RoadmapNode[];
  find: FindNode;
  /** See `PlanNextOptions`. */
  unlanded: ReadonlyMap<string, Standing>;
}

/** True if a node is done and its work, if it has any, has landed. True for a container if it is true for all nodes in it. */
export function isNodeDone(node: RoadmapNode, { nodes, find, unlanded }: Surroundings): boolean {
  const isDone = ({ status, id }: RoadmapNode): boolean =>
    status === "done" && !unlanded.has(foldId(id));
  const isInsideDone = isContainer(node) ? isAllDone(node, nodes, find, isDone) : undefined;
  return isInsideDone ?? isDone(node);
}

/** True if a node is done or has failed. True for a container if it is true for all nodes in it. */
export function hasNodeEnded(
  node: RoadmapNode,
  { nodes, find }: Pick<Surroundings, "nodes" | "find">,
): boolean {
  const hasEnded = ({ status }: RoadmapNode): boolean => status === "done" || status === "failed";
  const isInside = isContainer(node) ? isAllDone(node, nodes, find, hasEnded) : undefined;
  return isInside ?? hasEnded(node);
}

/** @param waits the node's entry in `waiting` of `planNext`, if it has one */
export function nodeStanding(
  node: RoadmapNode,
  around: Surroundings,
  waits: WaitingNode | undefined,
): Standing {
  if (isNodeDone(node, around)) return { is: "met", how: "is done" };
  const { find, unlanded } = around;
  const landing = node.status === "done" ? unlanded.get(foldId(node.id)) : undefined;
  if (landing !== undefined) return landing;
  switch (node.status) {
    case "failed":
      return { is: "stuck", how: "failed" };
    case "blocked":
      return { is: "stuck", how: "is blocked" };
    case "needs_human":
      return { is: "stuck", how: "waits for an answer" };
    case "in_progress":
      return { is: "moving", how: "runs" };
    default:
  }
  if (isContainer(node)) return { is: "moving", how: "is not done" };
  if (waits === undefined) return { is: "moving", how: "waits its turn" };
  if (waits.isUnmatched === true) return { is: "stuck", how: `cannot run: ${waits.reason}` };
  const on = node.dependencies
    .filter(({ id, required }) => required === "done" || find(id)?.status !== "failed")
    .map(({ id }) => id);
  return { is: "moving", how: waits.reason, on };
}
