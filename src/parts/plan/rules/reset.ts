/** Decides which nodes a reset opens again. Pure. */
import { foldId } from "../../../core/names.ts";
import { isContainer, isTerminal, type RoadmapNode } from "../../../core/roadmap.ts";
import type { RoadmapEdit } from "../edit/edit.ts";
import { type FindNode, inheritance, parentIn } from "./belonging.ts";
import { isEscalation } from "./escalation.ts";

/** Which nodes a person wants to open again. */
export interface ResetChoice {
  /** An epic or milestone stands for all nodes in it. Left out: all nodes except escalations, which belong to earlier failures. */
  ids?: readonly string[];
  /** Only the failed ones of these nodes. */
  onlyFailed?: boolean;
  /** Also the nodes that depend on one of them, directly or through others. */
  downstream?: boolean;
}

export interface Reset {
  /** The nodes to open, in the order of the file. */
  open: readonly RoadmapNode[];
  /** The chosen nodes that are in progress. If there are any, no node is opened. */
  inFlight: readonly RoadmapNode[];
  /** The chosen nodes that are not opened, because they wait for a person's decision. */
  left: readonly RoadmapNode[];
  edits: readonly RoadmapEdit[];
}

/** @param find knows all ids of the choice */
export function chooseReset(
  nodes: readonly RoadmapNode[],
  find: FindNode,
  { ids, onlyFailed = false, downstream = false }: ResetChoice,
): Reset {
  const named = new Set((ids ?? []).map(foldId));
  const isNamed = ({ id }: RoadmapNode): boolean => named.has(foldId(id));
  const isInNamed = inheritance(
    parentIn(find),
    false,
    (node: RoadmapNode, fromAbove) => fromAbove || (isContainer(node) && isNamed(node)),
  );
  const isMeant = (node: RoadmapNode): boolean =>
    ids === undefined
      ? !isEscalation(node.id) || node.status === "in_progress"
      : isNamed(node) || (isInNamed(node) && !isEscalation(node.id));
  const first = nodes.filter(
    (node) => !isContainer(node) && isMeant(node) && (!onlyFailed || node.status === "failed"),
  );
  const chosen = new Set(first);
  if (downstream) for (const node of dependentsOf(first, nodes, find)) chosen.add(node);
  const inOrder = nodes.filter((node) => chosen.has(node));
  const open = inOrder.filter(({ status }) => isTerminal(status));
  return {
    open,
    inFlight: inOrder.filter(({ status }) => status === "in_progress"),
    left: inOrder.filter(({ status }) => status === "blocked" || status === "needs_human"),
    edits: openingEdits(open, nodes, find, ids === undefined && !onlyFailed),
  };
}

/** The nodes that depend on one of these, directly or through others, without escalations. A node in an epic also has its dependencies. */
function dependentsOf(
  first: readonly RoadmapNode[],
  nodes: readonly RoadmapNode[],
  find: FindNode,
): RoadmapNode[] {
  const waiters = new Map<string, RoadmapNode[]>();
  const children = new Map<string, RoadmapNode[]>();
  const add = (map: Map<string, RoadmapNode[]>, id: string, node: RoadmapNode): void => {
    const known = map.get(foldId(id));
    if (known === undefined) map.set(foldId(id), [node]);
    else known.push(node);
  };
  for (const node of nodes) {
    for (const { id } of node.dependencies) add(waiters, id, node);
    if (node.parent !== undefined) add(children, node.parent, node);
  }
  const found = new Set<RoadmapNode>();
  /** The loop appends the nodes that wait for a node or for a container around it, and so visits them later. */
  const list = [...first];
  const seen = new Set<RoadmapNode>(first);
  const asked = new Set<string>();
  for (const node of list) {
    for (let at: RoadmapNode | undefined = node; at !== undefined; ) {
      if (asked.has(foldId(at.id))) break;
      asked.add(foldId(at.id));
      for (const waiter of waiters.get(foldId(at.id)) ?? [])
        for (const one of isContainer(waiter) ? inside(waiter, children) : [waiter]) {
          if (isEscalation(one.id) || seen.has(one)) continue;
          seen.add(one);
          found.add(one);
          list.push(one);
        }
      const above: RoadmapNode | undefined = at.parent === undefined ? undefined : find(at.parent);
      at = above !== undefined && isContainer(above) ? above : undefined;
    }
  }
  return [...found];
}

/** The nodes in a container and in the containers in it. */
function inside(
  container: RoadmapNode,
  children: ReadonlyMap<string, readonly RoadmapNode[]>,
): RoadmapNode[] {
  const list = [container];
  const seen = new Set(list);
  for (const one of list)
    for (const child of children.get(foldId(one.id)) ?? [])
      if (!seen.has(child)) {
        seen.add(child);
        list.push(child);
      }
  return list.filter((node) => !isContainer(node));
}

/** @param isWhole true if the whole plan runs once more: then the count of each escalation starts again at 0 */
function openingEdits(
  open: readonly RoadmapNode[],
  nodes: readonly RoadmapNode[],
  find: FindNode,
  isWhole: boolean,
): RoadmapEdit[] {
  const around = new Set<RoadmapNode>();
  for (const node of open)
    for (let at = node.parent; at !== undefined; ) {
      const parent = find(at);
      if (parent === undefined || around.has(parent)) break;
      around.add(parent);
      at = parent.parent;
    }
  const ended = nodes.filter(
    (node) => isContainer(node) && isTerminal(node.status) && around.has(node),
  );
  const counted = isWhole ? nodes.filter((node) => (node.reopened ?? 0) > 0) : [];
  return [
    ...[...open, ...ended].map(({ id }): RoadmapEdit => ({ kind: "status", id, status: "open" })),
    ...counted.map(({ id }): RoadmapEdit => ({ kind: "set", id, field: "reopened", value: 0 })),
  ];
}
