/** Decides which nodes may be launched now, in which order, and why the others wait. Deterministic; reads no files. */
import type { Match } from "../../../core/matching.ts";
import { foldId } from "../../../core/names.ts";
import { priorityNumber } from "../../../core/priority.ts";
import {
  isContainer,
  NODE_STATUSES,
  type NodeType,
  type RoadmapNode,
} from "../../../core/roadmap.ts";
import type { Standing } from "../../../core/unmet.ts";
import { isEscalation } from "./escalation.ts";
import { makeFilter, type PlanFilters } from "./filters.ts";
import { findLost } from "./lost.ts";

export interface PlanNextOptions {
  /** Finds the agent for a node. Called only for nodes that lack nothing else. Left out: every node has an agent. */
  matchAgent?: (node: RoadmapNode) => Match;
  filters?: PlanFilters;
  /** Done nodes whose work has not landed, by folded id. Their dependents wait until it lands. */
  unlanded?: ReadonlyMap<string, Standing>;
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

const TYPES: readonly NodeType[] = ["plan", "task", "verify", "integrate", "final_verify"];
const [OPEN, IN_PROGRESS, BLOCKED, NEEDS_HUMAN, DONE, FAILED] = [0, 1, 2, 3, 4, 5];

/** Decides again and again for a plan. Each call computes only what has changed since the last one. */
export class Planner {
  private nodes: readonly RoadmapNode[] = [];
  private statuses = new Uint8Array();
  private ranks = new Float64Array();
  private containers = new Uint8Array();
  /** Index of the parent of each node, or -1. */
  private parents = new Int32Array();
  /** Where the dependencies of node i begin; they end where those of node i + 1 begin. */
  private firsts = new Int32Array();
  /** Index of each dependency, or -1 when it is not in the plan. */
  private targets = new Int32Array();
  private terminal = new Uint8Array();
  /** For each container: how many nodes are in it, and how many of them are done or failed. Computed when needed. */
  private progress: { total: Int32Array; done: Int32Array; failed: Int32Array } | undefined;
  private fromAbove: (string | null | undefined)[] = [];
  /** The nodes that can never start. Computed when needed. */
  private lost: ReadonlySet<number> | undefined;
  /** The standing of each done node whose work has not landed, by index. */
  private unlanded: ReadonlyMap<number, Standing> = new Map();

  next(nodes: readonly RoadmapNode[], options: PlanNextOptions = {}): PlanNext {
    this.follow(nodes);
    this.progress = undefined;
    this.fromAbove = [];
    this.lost = undefined;
    this.unlanded = this.indexUnlanded(options.unlanded);
    const { matchAgent } = options;
    const passes = makeFilter(options.filters);
    const buckets = new Map<number, RoadmapNode[]>();
    const waiting: WaitingNode[] = [];
    for (let i = 0; i < nodes.length; i++) {
      const status = this.statuses[i];
      if (status === DONE || status === FAILED || status === IN_PROGRESS) continue;
      if (this.containers[i] === 1) continue;
      const node = nodes[i] as RoadmapNode;
      if (passes !== undefined && !passes(node)) continue;
      const reason = this.explainWait(i);
      const match = reason === undefined ? matchAgent?.(node) : undefined;
      if (reason !== undefined) waiting.push({ node, reason });
      else if (match !== undefined && match.agent === undefined)
        waiting.push({ node, reason: match.reason, isUnmatched: true });
      else {
        const rank = this.ranks[i] as number;
        const bucket = buckets.get(rank);
        if (bucket === undefined) buckets.set(rank, [node]);
        else bucket.push(node);
      }
    }
    const inOrder = [...buckets].sort(([a], [b]) => a - b);
    return { ready: inOrder.flatMap(([, ready]) => ready), waiting };
  }

  /** Updates the arrays. Nodes are never changed in place, so the same object means an unchanged node. */
  private follow(nodes: readonly RoadmapNode[]): void {
    const before = this.nodes;
    if (nodes === before) return;
    this.nodes = nodes;
    if (nodes.length !== before.length) {
      this.index();
      return;
    }
    for (let i = 0; i < nodes.length; i++) {
      const old = before[i] as RoadmapNode;
      const node = nodes[i] as RoadmapNode;
      if (old === node) continue;
      const isAlike =
        old.id === node.id &&
        old.type === node.type &&
        old.parent === node.parent &&
        old.dependencies === node.dependencies;
      if (!isAlike) {
        this.index();
        return;
      }
      this.statuses[i] = NODE_STATUSES.indexOf(node.status);
      this.ranks[i] = rankOf(node);
    }
  }

  private index(): void {
    const { nodes } = this;
    const exact = new Map<string, number>();
    for (let i = nodes.length - 1; i >= 0; i--) exact.set((nodes[i] as RoadmapNode).id, i);
    // Created when an id is first written in another case than that of its node.
    let folded: Map<string, number> | undefined;
    const find = (id: string): number => {
      const found = exact.get(id);
      if (found !== undefined) return found;
      folded ??= new Map([...exact].map(([one, i]) => [foldId(one), i]));
      return folded.get(foldId(id)) ?? -1;
    };
    this.statuses = Uint8Array.from(nodes, (node) => NODE_STATUSES.indexOf(node.status));
    this.ranks = Float64Array.from(nodes, rankOf);
    this.containers = Uint8Array.from(nodes, (node) => (isContainer(node) ? 1 : 0));
    this.parents = Int32Array.from(nodes, (node) =>
      node.parent === undefined ? -1 : find(node.parent),
    );
    const targets: number[] = [];
    const terminal: number[] = [];
    this.firsts = new Int32Array(nodes.length + 1);
    for (let i = 0; i < nodes.length; i++) {
      for (const { id, required } of (nodes[i] as RoadmapNode).dependencies) {
        targets.push(find(id));
        terminal.push(required === "terminal" ? 1 : 0);
      }
      this.firsts[i + 1] = targets.length;
    }
    this.targets = Int32Array.from(targets);
    this.terminal = Uint8Array.from(terminal);
  }

  private indexUnlanded(by: PlanNextOptions["unlanded"]): ReadonlyMap<number, Standing> {
    const found = new Map<number, Standing>();
    if (by === undefined || by.size === 0) return found;
    for (let i = 0; i < this.nodes.length; i++) {
      const standing = this.statuses[i] === DONE ? by.get(foldId(this.idOf(i))) : undefined;
      if (standing !== undefined) found.set(i, standing);
    }
    return found;
  }

  private idOf(i: number): string {
    return (this.nodes[i] as RoadmapNode).id;
  }

  /** Why the plan does not let an open, blocked or asking node run; undefined if it may run. */
  private explainWait(i: number): string | undefined {
    if (this.statuses[i] === BLOCKED) return "is blocked";
    if (this.statuses[i] === NEEDS_HUMAN) return "needs an answer";
    const reason = this.explainUnmet(i);
    if (reason !== undefined) return reason;
    const parent = this.parents[i] as number;
    return parent < 0 ? undefined : (this.explainFromAbove(parent) ?? undefined);
  }

  private explainUnmet(i: number): string | undefined {
    const first = this.firsts[i] as number;
    const end = this.firsts[i + 1] as number;
    for (let at = first; at < end; at++) {
      const on = this.targets[at] as number;
      if (this.containers[on] !== 1 && this.isDone(on)) continue;
      const id = this.nodes[i]?.dependencies[at - first]?.id ?? "";
      const isTerminalEnough = this.terminal[at] === 1;
      if (on < 0) return `waits for ${id}, which is not in the plan`;
      const reason =
        this.containers[on] === 1
          ? this.explainContainer(on, isTerminalEnough)
          : this.explainNode(on, isTerminalEnough);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  private isDone(i: number): boolean {
    return this.statuses[i] === DONE && !this.unlanded.has(i);
  }

  private explainNode(on: number, isTerminalEnough: boolean): string | undefined {
    const { id, status } = this.nodes[on] as RoadmapNode;
    const unlanded = this.unlanded.get(on);
    if (unlanded !== undefined) {
      // If only a person can land the work, the node counts as ended.
      if (isTerminalEnough && unlanded.is === "stuck") return undefined;
      return `waits for ${id}, which ${unlanded.how}`;
    }
    if (status === "done" || (isTerminalEnough && status === "failed")) return undefined;
    if (isTerminalEnough && this.findLost().has(on)) return undefined;
    return status === "failed" ? `cannot start: ${id} failed` : `waits for ${id} (${status})`;
  }

  /** For a dependency that is `terminal` such a node has ended, as a skipped task has. */
  private findLost(): ReadonlySet<number> {
    const isEnded = (i: number): boolean =>
      this.statuses[i] === DONE || this.statuses[i] === FAILED;
    this.lost ??= findLost({
      parents: this.parents,
      containers: this.containers,
      firsts: this.firsts,
      targets: this.targets,
      terminal: this.terminal,
      isOpen: (i) => this.statuses[i] === OPEN,
      isEscalation: (i) => isEscalation(this.idOf(i)),
      isEnded,
      isFailed: (i) => this.statuses[i] === FAILED || this.unlanded.get(i)?.is === "stuck",
    });
    return this.lost;
  }

  private countLost(container: number): number {
    const isIn = (i: number): boolean => {
      let above = this.parents[i] as number;
      for (let depth = 0; above >= 0 && above !== container && depth < this.nodes.length; depth++)
        above = this.parents[above] as number;
      return above === container;
    };
    return [...this.findLost()].filter(isIn).length;
  }

  /** Why a dependency on a container is not met. An empty container counts by its own status. */
  private explainContainer(on: number, isTerminalEnough: boolean): string | undefined {
    this.progress ??= this.countProgress();
    const total = this.progress.total[on] as number;
    if (total === 0) return this.explainNode(on, isTerminalEnough);
    const done = this.progress.done[on] as number;
    const failed = this.progress.failed[on] as number;
    const { id } = this.nodes[on] as RoadmapNode;
    if (done + (isTerminalEnough ? failed : 0) === total) return undefined;
    if (isTerminalEnough) {
      const ended = done + failed + this.countLost(on);
      return ended === total ? undefined : `waits for ${id} (${ended} of ${total} ended)`;
    }
    return failed > 0
      ? `cannot start: ${failed} of ${total} in ${id} failed${this.unlanded.size > 0 ? " or did not land" : ""}`
      : `waits for ${id} (${done} of ${total} done)`;
  }

  /** Why no node under this one may run; null if they may. The answer is kept, because thousands of nodes may be under it. */
  private explainFromAbove(i: number): string | null {
    const known = this.fromAbove[i];
    if (known !== undefined) return known;
    // A plan with a circle of parents is refused elsewhere. This line makes sure that the recursion ends.
    this.fromAbove[i] = null;
    const { id } = this.nodes[i] as RoadmapNode;
    let reason: string | null = null;
    if (this.statuses[i] === BLOCKED) reason = `is in ${id}, which is blocked`;
    else if (this.containers[i] === 1) {
      const unmet = this.explainUnmet(i);
      if (unmet !== undefined) reason = `is in ${id}, which ${unmet}`;
    }
    const parent = this.parents[i] as number;
    if (reason === null && parent >= 0) reason = this.explainFromAbove(parent);
    this.fromAbove[i] = reason;
    return reason;
  }

  private countProgress(): NonNullable<Planner["progress"]> {
    const { length } = this.nodes;
    const total = new Int32Array(length);
    const done = new Int32Array(length);
    const failed = new Int32Array(length);
    for (let i = 0; i < length; i++) {
      if (this.containers[i] === 1) continue;
      const isDone = this.isDone(i);
      const isFailed = this.statuses[i] === FAILED || this.unlanded.get(i)?.is === "stuck";
      // The limit ends the loop for a plan with a circle of parents.
      let above = this.parents[i] as number;
      for (let depth = 0; above >= 0 && depth < length; depth++) {
        total[above] = (total[above] as number) + 1;
        if (isDone) done[above] = (done[above] as number) + 1;
        if (isFailed) failed[above] = (failed[above] as number) + 1;
        above = this.parents[above] as number;
      }
    }
    return { total, done, failed };
  }
}

function rankOf({ priority, type }: RoadmapNode): number {
  const byType = TYPES.indexOf(type);
  return Math.max(0, byType) - (priorityNumber(priority) ?? 0) * TYPES.length;
}

if (NODE_STATUSES.join() !== "open,in_progress,blocked,needs_human,done,failed" || OPEN !== 0)
  throw new RangeError("the codes of statuses follow NODE_STATUSES");
