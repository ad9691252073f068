/** What follows for a node from all that it belongs to. Pure, and without recursion: a chain of parents may be as long as the plan. */
import { compact } from "../../../core/compact.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";

/** The node of an id in whatever case; of two the first. */
export type FindNode = (id: string) => RoadmapNode | undefined;

/**
 * Tells for each node what it has from above. Each is asked once, so that all of them take no longer than the plan is long.
 * @param none what a node has that belongs to nothing, or to itself
 * @param pass what a node passes on to those that belong to it, with what it has from above
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

/** Fills in `epic` and `milestone` of nodes that belong to one by their parents. Changes the nodes of the array. */
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
