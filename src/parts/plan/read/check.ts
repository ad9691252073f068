/** Checks the nodes of a plan against each other: unique ids, existing dependencies and parents, no circles. Pure. */
import { foldId } from "../../../core/names.ts";
import { isContainer, type RoadmapNode } from "../../../core/roadmap.ts";
import { suggest } from "../../../core/suggest.ts";
import type { FindNode } from "../rules/belonging.ts";
import { type Place, placesOf } from "../rules/places.ts";
import type { RoadmapProblem } from "./problem.ts";

/** Finds the place of a node's id, of its parent, or of the dependency with that index. */
export type Locate = (node: RoadmapNode, what?: "parent" | number) => { line: number; col: number };

/** No more problems than this are reported: one fault often causes many. */
export const PROBLEMS_MAX = 200;
const SUGGESTIONS_FROM_MAX = 2000;
/** How many circles are reported, and how many nodes of each are named. */
const CIRCLES_MAX = 20;
const CIRCLE_NAMES_MAX = 12;

/** Adds a problem of a node at its place in the file. */
type Say = (
  code: RoadmapProblem["code"],
  node: RoadmapNode,
  what: "parent" | number | undefined,
  message: string,
  hint: string,
) => void;

/** Finds problems between nodes, about `PROBLEMS_MAX` at most. Problems of single values are found when the values are read. */
export function checkPlan(
  nodes: readonly RoadmapNode[],
  find: FindNode,
  locate: Locate,
): RoadmapProblem[] {
  const problems: RoadmapProblem[] = [];
  const say: Say = (code, node, what, message, hint) =>
    void problems.push({ code, message, ...locate(node, what), hint });
  for (const node of nodes) {
    if (problems.length >= PROBLEMS_MAX) break;
    checkId(node, find, locate, say);
    for (const [index, { id }] of node.dependencies.entries())
      if (problems.length < PROBLEMS_MAX && find(id) === undefined) {
        const message = `${node.id} depends on ${id}, which does not exist`;
        say("unknown_dependency", node, index, message, didYouMean(nodes, id));
      }
    checkParent(node, nodes, find, say);
  }
  sayCircles(placesOf(nodes), say);
  return problems;
}

function checkId(node: RoadmapNode, find: FindNode, locate: Locate, say: Say): void {
  const first = find(node.id);
  if (first === node || first === undefined) return;
  const message = `the id ${node.id} is used twice, first in line ${locate(first).line}`;
  const hint = "ids are unique without regard to case: rename one";
  say("duplicate_id", node, undefined, message, hint);
}

function checkParent(
  node: RoadmapNode,
  nodes: readonly RoadmapNode[],
  find: FindNode,
  say: Say,
): void {
  if (node.section === "epics" || node.parent === undefined) return;
  const parent = find(node.parent);
  if (parent === undefined) {
    const message = `the parent ${node.parent} of ${node.id} is not there`;
    say("unknown_parent", node, "parent", message, didYouMean(nodes, node.parent));
  } else if (!isContainer(parent) && parent.type !== "plan") {
    const message = `the parent ${parent.id} of ${node.id} is a ${parent.type}`;
    say("bad_parent", node, "parent", message, "a parent is a plan, an epic or a milestone");
  }
}

function sayCircles(places: readonly Place[], say: Say): void {
  for (const circle of findParentCircles(places)) {
    const message = `a circle of parents: ${circleText(circle)}`;
    say("cycle", circle[0] as RoadmapNode, "parent", message, "a node cannot belong to itself");
  }
  for (const circle of findCircles(places)) {
    const node = circle[0] as RoadmapNode;
    const next = circle[1] ?? node;
    const index = node.dependencies.findIndex((d) => foldId(d.id) === foldId(next.id));
    const message = `a circle of dependencies: ${circleText(circle)}`;
    const hint = "remove one of these dependencies";
    say("cycle", node, index < 0 ? undefined : index, message, hint);
  }
}

function didYouMean(nodes: readonly RoadmapNode[], id: string): string {
  const ids = nodes.length > SUGGESTIONS_FROM_MAX ? [] : nodes.map((node) => node.id);
  const near = suggest(id, ids);
  return near === undefined ? "add it, or remove the reference" : `did you mean "${near}"?`;
}

/** Names only the first nodes of a long circle: they are enough to find it. */
function circleText(circle: readonly RoadmapNode[]): string {
  const names = circle.slice(0, CIRCLE_NAMES_MAX).map(({ id }) => id);
  if (circle.length > CIRCLE_NAMES_MAX) names.push(`… (${circle.length} in all)`);
  return [...names, names[0]].join(" → ");
}

function findParentCircles(places: readonly Place[]): RoadmapNode[][] {
  const seen = new Set<Place>();
  const circles: RoadmapNode[][] = [];
  for (const start of places) {
    const path: Place[] = [];
    let node: Place | undefined = start;
    for (; node !== undefined && !seen.has(node); node = node.above) {
      seen.add(node);
      path.push(node);
    }
    const at = node === undefined ? -1 : path.indexOf(node);
    if (at >= 0) circles.push(path.slice(at).map((one) => one.node));
    if (circles.length === CIRCLES_MAX) break;
  }
  return circles;
}

/**
 * Finds circles of nodes that wait for each other. Each circle comes once, with its nodes in order. The graph has two vertices for
 * each node. Vertex 2i is its end: it waits for the node's dependencies and, for a container, for the ends of all nodes in it. Vertex
 * 2i+1 is the start of a container: all nodes in it wait for that. It does not recurse, because a chain may be as long as the plan.
 */
function findCircles(places: readonly Place[]): RoadmapNode[][] {
  const edges: number[][] = Array.from({ length: places.length * 2 }, () => []);
  for (const { node, isContainer, above, needs } of places) {
    const end = 2 * node.order;
    const from = isContainer ? end + 1 : end;
    if (isContainer) edges[end]?.push(from);
    for (const { on } of needs) if (on !== undefined) edges[from]?.push(2 * on.node.order);
    if (above?.isContainer !== true) continue;
    edges[2 * above.node.order]?.push(end);
    edges[from]?.push(2 * above.node.order + 1);
  }
  const state = new Uint8Array(edges.length);
  const circles: RoadmapNode[][] = [];
  for (let root = 0; root < edges.length; root++) {
    if (state[root] !== 0) continue;
    const path = [root];
    const next = [0];
    state[root] = 1;
    while (path.length > 0) {
      const vertex = path[path.length - 1] as number;
      const to = edges[vertex]?.[next[next.length - 1] as number];
      next[next.length - 1] = (next[next.length - 1] as number) + 1;
      if (to === undefined) {
        state[vertex] = 2;
        path.pop();
        next.pop();
      } else if (state[to] === 0) {
        state[to] = 1;
        path.push(to);
        next.push(0);
      } else if (state[to] === 1) {
        const circle = path.slice(path.indexOf(to)).map((v) => (places[v >> 1] as Place).node);
        const distinct = circle.filter((node, i) => node !== circle[(i || circle.length) - 1]);
        circles.push(distinct.length === 0 ? circle.slice(0, 1) : distinct);
        if (circles.length === CIRCLES_MAX) return circles;
      }
    }
  }
  return circles;
}
