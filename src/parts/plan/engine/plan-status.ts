/** Reports the state of the plan to people, and to tasks that depend on nodes. Changes nothing. */
import { compact } from "../../../core/compact.ts";
import type { PlanHolds } from "../../../core/documents.ts";
import { isContainer } from "../../../core/roadmap.ts";
import type { DependencyState } from "../../../core/unmet.ts";
import type {
  DependencySource,
  PartReport,
  StatusSource,
  Unlanded,
} from "../../../supervisor/environment/part.ts";
import { openQuestionOf } from "../answers.ts";
import type { RoadmapDocument } from "../read/document.ts";
import { countStatuses } from "../rules/progress.ts";
import type { EngineParts } from "./engine-parts.ts";
import type { NodeLauncher } from "./launch-nodes.ts";

/** The report names at most this many nodes that ask, and this many that are held. */
const NAMED_MAX = 5;

export class PlanStatus implements StatusSource, DependencySource {
  private versionOf: RoadmapDocument | undefined;
  private unlandedThen: Unlanded | undefined;
  private versionNumber = 0;

  /** @param isMoving true while nodes are in flight, or their results are being written */
  constructor(
    private readonly deps: Pick<EngineParts, "store" | "kv" | "limits">,
    private readonly launcher: NodeLauncher,
    private readonly isMoving: () => boolean,
  ) {}

  /** Changes whenever the plan, a status or the landing of a node's work changes. */
  get version(): number {
    const { doc } = this.deps.store;
    // Each tick asks, and each answer costs a look at the disk. So without a plan it is not asked.
    const unlanded = doc === undefined ? undefined : this.deps.limits.parts.unlanded();
    if (doc !== this.versionOf || unlanded !== this.unlandedThen) {
      this.versionOf = doc;
      this.unlandedThen = unlanded;
      this.versionNumber++;
    }
    return this.versionNumber;
  }

  /** Why the roadmap on disk cannot be used; undefined if it can. */
  get problem(): string | undefined {
    const [first, ...more] = this.deps.store.problems;
    if (first === undefined) return undefined;
    const others = more.length === 0 ? "" : ` (and ${more.length} more)`;
    return `roadmap.yaml:${first.line}:${first.col}: ${first.message}${others}`;
  }

  report(): PartReport {
    const { doc } = this.deps.store;
    return compact({
      roadmap: doc === undefined ? undefined : countStatuses(doc.nodes),
      planHolds: doc === undefined ? undefined : this.holds(),
      roadmapProblem: this.problem,
    });
  }

  /** Nodes that cannot go on by themselves. While other nodes run, a waiting node may only await its turn, so `held` is empty. */
  private holds(): PlanHolds {
    const asking = this.deps.store.nodes
      .filter((node) => node.status === "needs_human" && !isContainer(node))
      .slice(0, NAMED_MAX)
      .map(({ id }) => ({ id, question: openQuestionOf(this.deps.kv, id) }));
    const isGoingOn = this.isMoving() || this.launcher.canLaunch(false);
    const open = isGoingOn ? [] : this.launcher.held().filter(({ node }) => node.status === "open");
    const held = open.slice(0, NAMED_MAX).map(({ node, reason }) => ({ id: node.id, why: reason }));
    return { asking, held, held_count: open.length };
  }

  unmatched(max: number): string[] {
    if (this.deps.store.doc === undefined) return [];
    return this.launcher
      .held()
      .filter((one) => one.isUnmatched === true)
      .slice(0, max)
      .map(({ node, reason }) => `node ${node.id} cannot run: ${reason}`);
  }

  wouldRun(): string[] {
    return this.launcher.launchable().map((node) => node.id);
  }

  isDone(id: string): boolean | undefined {
    const node = this.deps.store.find(id);
    return node && this.launcher.planner().isDone(node);
  }

  hasEnded(id: string): boolean | undefined {
    const node = this.deps.store.find(id);
    return node && this.launcher.planner().hasEnded(node);
  }

  standing(id: string): DependencyState | undefined {
    const node = this.deps.store.find(id);
    return node && this.launcher.planner().standing(node);
  }
}
