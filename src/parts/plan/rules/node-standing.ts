/** How a node of the plan stands, for tasks that depend on it and for people who wait for it. Pure. */
import { isContainer, type RoadmapNode } from "../../../core/roadmap.ts";
import type { Standing } from "../../../core/unmet.ts";
import type { FindNode } from "./belonging.ts";
import type { WaitingNode } from "./next.ts";
import { isAllDone } from "./progress.ts";

/** Whether a node is done: a container when all that is in it is. */
export function isNodeDone(
  node: RoadmapNode,
  nodes: readonly RoadmapNode[],
  find: FindNode,
): boolean {
  const isInsideDone = isContainer(node) ? isAllDone(node, nodes, find) : undefined;
  return isInsideDone ?? node.status === "done";
}

/** @param waits what `planNext` says of it when it cannot be launched now */
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
