/** What a node inherits from its parents. Pure, and without recursion: a chain of parents may be as long as the plan. */
import { compact } from "../../../core/compact.ts";
import { foldId } from "../../../core/names.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";

/** Finds the node with an id, without regard to case. If two nodes have it, finds the first. */
export type FindNode = (id: string) => RoadmapNode | undefined;

/** Index of each node by its folded id; of the first one if two have the same id. */
export function ordersOf(nodes: readonly RoadmapNode[]): Map<string, number> {
  const orders = new Map<string, number>();
  for (const [order, { id }] of nodes.entries()) {
    const folded = foldId(id);
    if (!orders.has(folded)) orders.set(folded, order);
  }
  return orders;
}

/** Returns a function that finds the parent of a node. */
export function parentIn(find: FindNode): (node: RoadmapNode) => RoadmapNode | undefined {
  return ({ parent }) => (parent === undefined ? undefined : find(parent));
}

/**
 * Returns a function that computes what a node inherits. It visits each node once, so the time grows only with the plan's length.
 * @param none the value of a node without a parent, or in a circle of parents
 * @param pass computes the value that a node passes to its children, from the value that it inherits itself
 */
export function inheritance<Node, T>(
  above: (node: Node) => Node | undefined,
  none: T,
  pass: (node: Node, fromAbove: T) => T,
): (node: Node) => T {
  const passed = new Map<Node, T>();
  return (node) => {
    let top = above(node);
    // Most nodes have a parent that was visited with another node.
    if (top === undefined || passed.has(top))
      return top === undefined ? none : (passed.get(top) as T);
    const chain = new Set<Node>();
    for (; top !== undefined && !passed.has(top) && !chain.has(top); top = above(top))
      chain.add(top);
    let value = top === undefined ? none : (passed.get(top) ?? none);
    for (const one of [...chain].reverse()) {
      value = pass(one, value);
      passed.set(one, value);
    }
    return value;
  };
}

/** Sets `epic` and `milestone` of nodes from their chain of parents. Changes the nodes of the array. */
export function placeInContainers(nodes: readonly RoadmapNode[], find: FindNode): void {
  const placeOf = inheritance<RoadmapNode, Pick<RoadmapNode, "epic" | "milestone">>(
    parentIn(find),
    {},
    (node, place) => {
      const epic =
        node.type === "epic"
          ? node.id
          : ((node.section === "epics" ? node.epic : undefined) ?? place.epic);
      const milestone = node.type === "milestone" ? node.id : place.milestone;
      return compact({ epic, milestone });
    },
  );
  for (const node of nodes) {
    if (node.section === "epics" || node.parent === undefined) continue;
    const { epic, milestone } = placeOf(node);
    if (epic !== undefined) node.epic ??= epic;
    if (milestone !== undefined) node.milestone ??= milestone;
  }
}
