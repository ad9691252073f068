/** The state of a node for tasks that depend on it and for people who wait for it. Pure. */
import { isContainer, type RoadmapNode } from "../../../core/roadmap.ts";
import type { Standing } from "../../../core/unmet.ts";
import type { FindNode } from "./belonging.ts";
import type { WaitingNode } from "./next.ts";
import { isAllDone } from "./progress.ts";

/** True if a node is done. A container is done when all nodes in it are. */
export function isNodeDone(
  node: RoadmapNode,
  nodes: readonly RoadmapNode[],
  find: FindNode,
): boolean {
  const isInsideDone = isContainer(node) ? isAllDone(node, nodes, find) : undefined;
  return isInsideDone ?? node.status === "done";
}

/** @param waits the node's entry in `waiting` of `planNext`, if it has one */
export function nodeStanding(
  node: RoadmapNode,
  nodes: readonly RoadmapNode[],
  find: FindNode,
  waits: WaitingNode | undefined,
): Standing {
  if (isNodeDone(node, nodes, find)) return { is: "met", how: "is done" };
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
