/** Decides which nodes a reset opens again. Pure. */
import { foldId } from "../../../core/names.ts";
import { isContainer, isTerminal, type RoadmapNode } from "../../../core/roadmap.ts";
import type { RoadmapEdit } from "../edit/edit.ts";
import { type FindNode, inheritance, parentIn } from "./belonging.ts";
import { isEscalation } from "./escalation.ts";
import { type Links, linksOf, type Place, placesOf } from "./places.ts";

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
  if (downstream) for (const node of dependentsOf(first, nodes)) chosen.add(node);
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
function dependentsOf(first: readonly RoadmapNode[], nodes: readonly RoadmapNode[]): RoadmapNode[] {
  const places = placesOf(nodes);
  const links = linksOf(places);
  /** The loop appends the nodes that wait for a node or for a container around it, and so visits them later. */
  const list = new Set(first.map(({ order }) => places[order] as Place));
  const asked = new Set<Place>();
  for (const place of list)
    for (let at: Place | undefined = place; at !== undefined && !asked.has(at); ) {
      asked.add(at);
      for (const { user } of links.users.get(at) ?? [])
        for (const one of user.isContainer ? inside(user, links) : [user])
          if (!isEscalation(one.node.id)) list.add(one);
      at = at.above?.isContainer === true ? at.above : undefined;
    }
  return Array.from(list, ({ node }) => node);
}

/** The nodes in a container and in the containers in it. */
function inside(container: Place, { children }: Links): Place[] {
  const list = new Set([container]);
  for (const one of list) for (const child of children.get(one) ?? []) list.add(child);
  return [...list].filter((one) => !one.isContainer);
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
