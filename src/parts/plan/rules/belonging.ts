/** What a node inherits from its parents. Pure, and without recursion: a chain of parents may be as long as the plan. */
import { compact } from "../../../core/compact.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";

/** Finds the node with an id, without regard to case. If two nodes have it, finds the first. */
export type FindNode = (id: string) => RoadmapNode | undefined;

/**
 * Returns a function that computes what a node inherits. It visits each node once, so the time grows only with the plan's length.
 * @param none the value of a node without a parent, or in a circle of parents
 * @param pass computes the value that a node passes to its children, from the value that it inherits itself
 */
export function inheritance<T>(
  find: FindNode,
  none: T,
  pass: (node: RoadmapNode, fromAbove: T) => T,
): (node: RoadmapNode) => T {
  const known = new Map<RoadmapNode, T>();
  const above = (node: RoadmapNode): RoadmapNode | undefined =>
    node.parent === undefined ? undefined : find(node.parent);
  return (node) => {
    const chain = new Set<RoadmapNode>();
    let top: RoadmapNode | undefined = node;
    for (; top !== undefined && !known.has(top) && !chain.has(top); top = above(top))
      chain.add(top);
    let value = top === undefined ? none : (known.get(top) ?? none);
    for (const one of [...chain].reverse()) {
      if (top !== undefined) value = pass(top, value);
      known.set(one, value);
      top = one;
    }
    return value;
  };
}

/** Sets `epic` and `milestone` of nodes from their chain of parents. Changes the nodes of the array. */
export function placeInContainers(nodes: readonly RoadmapNode[], find: FindNode): void {
  const placeOf = inheritance<Pick<RoadmapNode, "epic" | "milestone">>(find, {}, (node, place) => {
    const epic =
      node.type === "epic"
        ? node.id
        : ((node.section === "epics" ? node.epic : undefined) ?? place.epic);
    const milestone = node.type === "milestone" ? node.id : place.milestone;
    return compact({ epic, milestone });
  });
  for (const node of nodes) {
    if (node.section === "epics" || node.parent === undefined) continue;
    const { epic, milestone } = placeOf(node);
    if (epic !== undefined) node.epic ??= epic;
    if (milestone !== undefined) node.milestone ??= milestone;
  }
}
