/** The nodes of a plan as objects that know each other, so that nothing is looked up by its id again and again. Pure. */
import { foldId } from "../../../core/names.ts";
import { priorityNumber } from "../../../core/priority.ts";
import { isContainer, type NodeType, type RoadmapNode } from "../../../core/roadmap.ts";
import { ordersOf } from "./belonging.ts";

/** A node among the others of its plan. */
export interface Place {
  node: RoadmapNode;
  /** The node with the lowest rank starts first. */
  rank: number;
  readonly isContainer: boolean;
  above: Place | undefined;
  /** Its dependencies. `on` is undefined if the plan has no such node. */
  needs: { id: string; on: Place | undefined; isTerminalEnough: boolean }[];
  /** For a container: how many nodes are in it, and in which state. Computed when needed. */
  inside: { total: number; done: number; failed: number; ended: number };
}

const TYPES: readonly NodeType[] = ["plan", "task", "verify", "integrate", "final_verify"];
const NOTHING: Place["inside"] = Object.freeze({ total: 0, done: 0, failed: 0, ended: 0 });

export function placesOf(nodes: readonly RoadmapNode[]): Place[] {
  const places = nodes.map(
    (node): Place => ({
      node,
      rank: rankOf(node),
      isContainer: isContainer(node),
      above: undefined,
      needs: [],
      inside: NOTHING,
    }),
  );
  const orders = ordersOf(nodes);
  const find = (id: string): Place | undefined => places[orders.get(foldId(id)) ?? -1];
  for (const place of places) {
    const { parent, dependencies } = place.node;
    place.above = parent === undefined ? undefined : find(parent);
    place.needs = dependencies.map(({ id, required }) => {
      return { id, on: find(id), isTerminalEnough: required === "terminal" };
    });
  }
  return places;
}

export function rankOf({ priority, type }: RoadmapNode): number {
  const byType = TYPES.indexOf(type);
  return Math.max(0, byType) - (priorityNumber(priority) ?? 0) * TYPES.length;
}

/** For each node: those that belong to it, and those that need it. */
export interface Links {
  children: ReadonlyMap<Place, readonly Place[]>;
  users: ReadonlyMap<Place, readonly { user: Place; isTerminalEnough: boolean }[]>;
}

export function linksOf(places: readonly Place[]): Links {
  const children = new Map(places.map((place) => [place, [] as Place[]]));
  const users = new Map(
    places.map((place) => [place, [] as { user: Place; isTerminalEnough: boolean }[]]),
  );
  for (const place of places) {
    if (place.above !== undefined) children.get(place.above)?.push(place);
    for (const { on, isTerminalEnough } of place.needs)
      if (on !== undefined) users.get(on)?.push({ user: place, isTerminalEnough });
  }
  return { children, users };
}
