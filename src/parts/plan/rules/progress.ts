/** Counts the statuses of a plan, and finds finished epics and milestones. Pure. */

import {
  isContainer,
  isTerminal,
  NODE_STATUSES,
  type RoadmapNode,
  type StatusCounts,
} from "../../../core/roadmap.ts";

export function countStatuses(nodes: readonly RoadmapNode[]): StatusCounts {
  const counts = Object.fromEntries(NODE_STATUSES.map((status) => [status, 0])) as StatusCounts;
  for (const node of nodes) if (!isContainer(node)) counts[node.status]++;
  return counts;
}

/** Epics and milestones that are not marked as done, although all nodes in them are done. */
export function finishedContainers(nodes: readonly RoadmapNode[]): RoadmapNode[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const unfinished = new Set<string>();
  const filled = new Set<string>();
  for (const node of nodes) {
    if (isContainer(node)) continue;
    const marks = node.status === "done" ? [filled] : [filled, unfinished];
    // If an item is marked, all its parents are marked already.
    for (const mark of marks)
      for (let at = node.parent; at !== undefined && !mark.has(at); at = byId.get(at)?.parent)
        mark.add(at);
  }
  return nodes.filter(
    (node) =>
      isContainer(node) &&
      !isTerminal(node.status) &&
      node.status !== "blocked" &&
      filled.has(node.id) &&
      !unfinished.has(node.id),
  );
}
