/** Decides which nodes may be launched now, in which order, and why the others wait. Deterministic; reads no files. */
import type { Match } from "../../../core/matching.ts";
import { foldId } from "../../../core/names.ts";
import { isTerminal, type NodeStatus, type RoadmapNode } from "../../../core/roadmap.ts";
import type { DependencyState } from "../../../core/unmet.ts";
import { inheritance } from "./belonging.ts";
import { makeFilter, type PlanFilters } from "./filters.ts";
import { findLost } from "./lost.ts";
import { type Place, placesOf, rankOf } from "./places.ts";

export interface PlanNextOptions {
  /** Finds the agent for a node. Called only for nodes that lack nothing else. Left out: every node has an agent. */
  matchAgent?: (node: RoadmapNode) => Match;
  filters?: PlanFilters;
  /** Done nodes whose work has not landed, by folded id. Their dependents wait until it lands. */
  unlanded?: ReadonlyMap<string, DependencyState>;
}

export interface WaitingNode {
  node: RoadmapNode;
  /** Text that follows the node's id: "waits for T-1 (in_progress)", "is blocked". */
  reason: string;
  /** True if only an agent is missing. */
  isUnmatched?: true;
}

export interface PlanNext {
  /** Best first: by priority, then by type (plan, task, verify, integrate, final_verify), then by the order of the file. */
  ready: RoadmapNode[];
  /** Nodes that are not ready, do not run and have not ended, in the order of the file. */
  waiting: WaitingNode[];
}

/** Decides once. For repeated calls keep a `Planner`. */
export function planNext(nodes: readonly RoadmapNode[], options: PlanNextOptions = {}): PlanNext {
  return new Planner().next(nodes, options);
}

/** How nodes stand that no agent and no other node holds back. */
const STANDINGS: Readonly<Partial<Record<NodeStatus, DependencyState>>> = {
  failed: { is: "stuck", how: "failed" },
  blocked: { is: "stuck", how: "is blocked" },
  needs_human: { is: "stuck", how: "waits for an answer" },
  in_progress: { is: "moving", how: "runs" },
};

/** Decides again and again for a plan. The places are made anew only when nodes or dependencies change. */
export class Planner {
  private nodes: readonly RoadmapNode[] = [];
  private places: readonly Place[] = [];
  private unlanded: ReadonlyMap<string, DependencyState> = new Map();
  private waiting: readonly WaitingNode[] = [];
  /** The waiting nodes by node. Made when needed. */
  private byNode: ReadonlyMap<RoadmapNode, WaitingNode> | undefined;
  /** Why no node under this one may run. */
  private fromAbove: (place: Place) => string | undefined = () => undefined;
  private isCounted = false;
  /** The nodes that can never start. Computed when needed. */
  private lost: ReadonlySet<Place> | undefined;

  next(
    nodes: readonly RoadmapNode[],
    { matchAgent, filters, unlanded = new Map() }: PlanNextOptions = {},
  ): PlanNext {
    this.follow(nodes);
    this.unlanded = unlanded;
    this.isCounted = false;
    this.lost = undefined;
    this.fromAbove = inheritance<Place, string | undefined>(
      ({ above }) => above,
      undefined,
      (place, fromAbove) => this.explainHold(place) ?? fromAbove,
    );
    const passes = makeFilter(filters);
    const ready: Place[] = [];
    const waiting: WaitingNode[] = [];
    for (const place of this.places) {
      const { node } = place;
      if (place.isContainer || isTerminal(node.status) || node.status === "in_progress") continue;
      if (passes?.(node) === false) continue;
      const reason = this.explainWait(place);
      const match = reason === undefined ? matchAgent?.(node) : undefined;
      if (reason !== undefined) waiting.push({ node, reason });
      else if (match !== undefined && match.agent === undefined)
        waiting.push({ node, reason: match.reason, isUnmatched: true });
      else ready.push(place);
    }
    this.waiting = waiting;
    this.byNode = undefined;
    ready.sort((a, b) => a.rank - b.rank);
    return { ready: ready.map(({ node }) => node), waiting };
  }

  /** What the last decision says of a node that waits. */
  waitOf(node: RoadmapNode): WaitingNode | undefined {
    this.byNode ??= new Map(this.waiting.map((one) => [one.node, one]));
    return this.byNode.get(node);
  }

  /** True if a node is done and its work, if it has any, has landed. True for a container if it is true for all nodes in it. */
  isDone(node: RoadmapNode): boolean {
    const place = this.placeOf(node);
    const { total, done } = this.insideOf(place);
    return total > 0 ? done === total : this.isDoneItself(place);
  }

  /** True if a node is done or has failed. True for a container if it is true for all nodes in it. */
  hasEnded(node: RoadmapNode): boolean {
    const { total, ended } = this.insideOf(this.placeOf(node));
    return total > 0 ? ended === total : isTerminal(node.status);
  }

  /** The state of a node for tasks that depend on it, and for people who wait for it. */
  standing(node: RoadmapNode): DependencyState {
    if (this.isDone(node)) return { is: "met", how: "is done" };
    const place = this.placeOf(node);
    const known = this.unlandedOf(place) ?? STANDINGS[node.status];
    if (known !== undefined) return known;
    if (place.isContainer) return { is: "moving", how: "is not done" };
    const waits = this.waitOf(node);
    if (waits === undefined) return { is: "moving", how: "waits its turn" };
    if (waits.isUnmatched === true) return { is: "stuck", how: `cannot run: ${waits.reason}` };
    const on = place.needs
      .filter((one) => !one.isTerminalEnough || one.on?.node.status !== "failed")
      .map(({ id }) => id);
    return { is: "moving", how: waits.reason, on };
  }

  /** Nodes are never changed in place, so the same object means an unchanged node. */
  private follow(nodes: readonly RoadmapNode[]): void {
    if (nodes === this.nodes) return;
    this.nodes = nodes;
    const { places } = this;
    const isAlike = (node: RoadmapNode, i: number): boolean => {
      const old = (places[i] as Place).node;
      return (
        old === node ||
        (old.id === node.id &&
          old.type === node.type &&
          old.parent === node.parent &&
          old.dependencies === node.dependencies)
      );
    };
    if (nodes.length !== places.length || !nodes.every(isAlike)) this.places = placesOf(nodes);
    for (const [i, node] of nodes.entries()) {
      const place = this.places[i] as Place;
      if (place.node === node) continue;
      place.node = node;
      place.rank = rankOf(node);
    }
  }

  private placeOf({ order }: RoadmapNode): Place {
    return this.places[order] as Place;
  }

  /** Why the plan does not let an open, blocked or asking node run; undefined if it may run. */
  private explainWait(place: Place): string | undefined {
    const { status } = place.node;
    if (status === "blocked") return "is blocked";
    if (status === "needs_human") return "needs an answer";
    return this.explainUnmet(place) ?? this.fromAbove(place);
  }

  /** Why this node does not let the nodes under it run. */
  private explainHold(place: Place): string | undefined {
    const { id, status } = place.node;
    if (status === "blocked") return `is in ${id}, which is blocked`;
    const unmet = place.isContainer ? this.explainUnmet(place) : undefined;
    return unmet === undefined ? undefined : `is in ${id}, which ${unmet}`;
  }

  private explainUnmet({ needs }: Place): string | undefined {
    for (const { id, on, isTerminalEnough } of needs) {
      if (on === undefined) return `waits for ${id}, which is not in the plan`;
      const isFull = on.isContainer && this.insideOf(on).total > 0;
      const reason = isFull
        ? this.explainContainer(on, isTerminalEnough)
        : this.explainNode(on, isTerminalEnough);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  /** Why a dependency on a node is not met. An empty container counts by its own status. */
  private explainNode(on: Place, isTerminalEnough: boolean): string | undefined {
    const { id, status } = on.node;
    const unlanded = this.unlandedOf(on);
    if (unlanded !== undefined) {
      // If only a person can land the work, the node counts as ended.
      if (isTerminalEnough && unlanded.is === "stuck") return undefined;
      return `waits for ${id}, which ${unlanded.how}`;
    }
    if (status === "done" || (isTerminalEnough && status === "failed")) return undefined;
    if (isTerminalEnough && this.findLost().has(on)) return undefined;
    return status === "failed" ? `cannot start: ${id} failed` : `waits for ${id} (${status})`;
  }

  private explainContainer(on: Place, isTerminalEnough: boolean): string | undefined {
    const { total, done, failed } = on.inside;
    const { id } = on.node;
    if (done + (isTerminalEnough ? failed : 0) === total) return undefined;
    if (isTerminalEnough) {
      const ended = done + failed + this.countLost(on);
      return ended === total ? undefined : `waits for ${id} (${ended} of ${total} ended)`;
    }
    return failed > 0
      ? `cannot start: ${failed} of ${total} in ${id} failed${this.hasUnlanded ? " or did not land" : ""}`
      : `waits for ${id} (${done} of ${total} done)`;
  }

  private isDoneItself(place: Place): boolean {
    return place.node.status === "done" && this.unlandedOf(place) === undefined;
  }

  private hasFailed(place: Place): boolean {
    return place.node.status === "failed" || this.unlandedOf(place)?.is === "stuck";
  }

  private unlandedOf({ node }: Place): DependencyState | undefined {
    if (this.unlanded.size === 0 || node.status !== "done") return undefined;
    return this.unlanded.get(foldId(node.id));
  }

  private get hasUnlanded(): boolean {
    return this.places.some((place) => this.unlandedOf(place) !== undefined);
  }

  /** For a dependency that is `terminal` such a node has ended, as a skipped task has. */
  private findLost(): ReadonlySet<Place> {
    this.lost ??= findLost(this.places, (place) => this.hasFailed(place));
    return this.lost;
  }

  private countLost(container: Place): number {
    const isIn = ({ above }: Place): boolean => {
      let at = above;
      for (
        let depth = 0;
        at !== undefined && at !== container && depth < this.places.length;
        depth++
      )
        at = at.above;
      return at === container;
    };
    return [...this.findLost()].filter(isIn).length;
  }

  private insideOf(place: Place): Place["inside"] {
    if (!this.isCounted && place.isContainer) this.count();
    return place.inside;
  }

  private count(): void {
    const { places } = this;
    this.isCounted = true;
    for (const place of places)
      if (place.isContainer) place.inside = { total: 0, done: 0, failed: 0, ended: 0 };
    for (const place of places) {
      if (place.isContainer) continue;
      const isDone = this.isDoneItself(place);
      const hasFailed = this.hasFailed(place);
      const hasEnded = isTerminal(place.node.status);
      // The limit ends the loop for a plan with a circle of parents.
      let { above } = place;
      for (let depth = 0; above !== undefined && depth < places.length; depth++) {
        if (above.isContainer) {
          above.inside.total++;
          if (isDone) above.inside.done++;
          if (hasFailed) above.inside.failed++;
          if (hasEnded) above.inside.ended++;
        }
        ({ above } = above);
      }
    }
  }
}
