/** Reads the plan for commands that show it. Reads it again when the file has changed. Writes nothing. */
import { type BackOffByCost, backOffByCost } from "../../core/back-off.ts";
import type { AgentSettings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { DependencyState } from "../../core/unmet.ts";
import { NAMED, statOf, tryReadText } from "../../host/regular-file.ts";
import type { IdReader, MakeIdReader } from "../../view/id-reader.ts";
import { readUnlanded } from "../../view/landing.ts";
import type { RoadmapDocument } from "./read/document.ts";
import type { Planner } from "./rules/next.ts";

const READ_REST: BackOffByCost = { times: 5, mostMs: 10_000 };

class PlanView implements IdReader {
  private stamp = "";
  private againMs = Number.NEGATIVE_INFINITY;
  private doc: RoadmapDocument | undefined;
  private planner: Planner | undefined;
  private unlanded: ReadonlyMap<string, DependencyState> = new Map();
  private code: Code | undefined;

  /** @param agents undefined when the settings cannot be read: then every node counts as having an agent */
  constructor(
    private readonly tree: StateTree,
    private readonly agents: readonly AgentSettings[] | undefined,
  ) {}

  /** Reads the plan if its file exists and has changed. A plan that cannot be read has no nodes. */
  async refresh(): Promise<void> {
    const nowMs = performance.now();
    if (nowMs < this.againMs) return;
    const stats = statOf(this.tree.roadmap);
    const stamp = `${stats?.ino}.${stats?.size}.${stats?.mtimeMs}`;
    const text = stamp === this.stamp ? undefined : tryReadText(this.tree.roadmap, NAMED);
    // There is no plan, or its file is being replaced at this moment.
    if (text === undefined && stamp !== this.stamp) return;
    const unlanded = readUnlanded(this.tree);
    if (text === undefined && isSame(unlanded, this.unlanded)) return;
    this.code ??= await loadCode();
    const { parseRoadmap, resolveOpenAgent } = this.code;
    this.planner ??= new this.code.Planner();
    this.stamp = stamp;
    this.unlanded = unlanded;
    if (text !== undefined) this.doc = parseRoadmap(text);
    const { agents } = this;
    this.planner.next(this.doc?.nodes ?? [], {
      unlanded,
      ...(agents && { matchAgent: (node) => resolveOpenAgent(node, agents) }),
    });
    const endMs = performance.now();
    this.againMs = endMs + backOffByCost(endMs - nowMs, READ_REST);
  }

  ids(): string[] {
    return (this.doc?.nodes ?? []).map(({ id }) => id);
  }

  async membership(): Promise<((id: string) => boolean) | undefined> {
    const { RoadmapFile } = await import("./file/roadmap-file.ts");
    const { findNode, parseRoadmap } = await import("./read/document.ts");
    try {
      const { text } = await new RoadmapFile(this.tree.roadmap, { durability: "process" }).read();
      const doc = parseRoadmap(text);
      return doc.problems.length > 0 ? undefined : (id) => findNode(doc, id) !== undefined;
    } catch {
      return undefined;
    }
  }

  /** Undefined when the plan has no such node. */
  standing(id: string): DependencyState | undefined {
    const { code, doc, planner } = this;
    const node = doc && code?.findNode(doc, id);
    if (node === undefined || code === undefined || planner === undefined) return undefined;
    const standing = planner.standing(node);
    if (node.status !== "open" || planner.waitOf(node) !== undefined) return standing;
    const { agent } = code.resolveAgent(node, this.agents ?? []);
    if (agent === undefined) return standing;
    return { ...standing, agent: agent.name, ...(node.type === "plan" && { isPlanner: true }) };
  }
}

export const planReader: MakeIdReader = (tree, agents) => new PlanView(tree, agents);

function isSame(
  a: ReadonlyMap<string, DependencyState>,
  b: ReadonlyMap<string, DependencyState>,
): boolean {
  return a.size === b.size && [...a].every(([id, { how }]) => b.get(id)?.how === how);
}

type Code = Pick<typeof import("./read/document.ts"), "parseRoadmap" | "findNode"> &
  Pick<typeof import("./rules/next.ts"), "Planner"> &
  Pick<typeof import("../../core/matching.ts"), "resolveAgent" | "resolveOpenAgent">;

/** Loads the YAML code only when it is needed: loading it takes longer than most commands take. */
async function loadCode(): Promise<Code> {
  const { parseRoadmap, findNode } = await import("./read/document.ts");
  const { Planner } = await import("./rules/next.ts");
  const { resolveAgent, resolveOpenAgent } = await import("../../core/matching.ts");
  return { parseRoadmap, findNode, Planner, resolveAgent, resolveOpenAgent };
}
