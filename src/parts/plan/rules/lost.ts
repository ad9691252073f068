/** Finds the nodes that can never start, because a node that they need has failed for good. Pure. */

/** A plan as arrays: see `Planner`. Indexes are those of its nodes, -1 for none. */
export interface PlanGraph {
  parents: Int32Array;
  containers: Uint8Array;
  firsts: Int32Array;
  targets: Int32Array;
  /** 1 for a dependency that only has to end. */
  terminal: Uint8Array;
  isOpen(i: number): boolean;
  isEscalation(i: number): boolean;
  isEnded(i: number): boolean;
  /** It has failed, or only a person can land its work. */
  isFailed(i: number): boolean;
}

/** A failed node counts only when no open escalation deals with it. */
export function findLost(graph: PlanGraph): ReadonlySet<number> {
  const { parents, containers } = graph;
  const count = parents.length;
  const lost = new Set<number>();
  const mended = beingMended(graph);
  const bad: number[] = [];
  for (let i = 0; i < count; i++) if (graph.isFailed(i) && !mended.has(i)) bad.push(i);
  if (bad.length === 0) return lost;
  const users: number[][] = Array.from({ length: count }, () => []);
  const children: number[][] = Array.from({ length: count }, () => []);
  for (let i = 0; i < count; i++) {
    children[parents[i] as number]?.push(i);
    for (const { on, isTerminal } of dependenciesOf(graph, i)) if (!isTerminal) users[on]?.push(i);
  }
  const failedContainers = new Set<number>();
  const lose = (first: number): void => {
    // What is under a container that cannot start cannot start either.
    const below = [first];
    for (let i = below.pop(); i !== undefined; i = below.pop()) {
      if (containers[i] === 1 || i !== first) below.push(...(children[i] as number[]));
      if (containers[i] === 1 || !graph.isOpen(i) || lost.has(i)) continue;
      lost.add(i);
      bad.push(i);
    }
  };
  for (let i = bad.pop(); i !== undefined; i = bad.pop()) {
    for (const user of users[i] as number[]) lose(user);
    for (let above = parents[i] as number; above >= 0; above = parents[above] as number) {
      // Those above it were seen with it. This ends a circle of parents, too.
      if (failedContainers.has(above)) break;
      failedContainers.add(above);
      if (containers[above] === 1) for (const user of users[above] as number[]) lose(user);
    }
  }
  return lost;
}

/** The nodes that an open escalation deals with: its own cause, and the one before that in a chain of failed escalations. */
function beingMended(graph: PlanGraph): ReadonlySet<number> {
  const found = new Set<number>();
  const left: number[] = [];
  for (let i = 0; i < graph.parents.length; i++)
    if (graph.isEscalation(i) && !graph.isEnded(i)) left.push(i);
  for (let i = left.pop(); i !== undefined; i = left.pop())
    for (const { on, isTerminal } of dependenciesOf(graph, i)) {
      if (!isTerminal || on < 0 || found.has(on)) continue;
      found.add(on);
      if (graph.isEscalation(on)) left.push(on);
    }
  return found;
}

function* dependenciesOf(
  { firsts, targets, terminal }: PlanGraph,
  i: number,
): Generator<{ on: number; isTerminal: boolean }> {
  const end = firsts[i + 1] as number;
  for (let at = firsts[i] as number; at < end; at++)
    yield { on: targets[at] as number, isTerminal: terminal[at] === 1 };
}
