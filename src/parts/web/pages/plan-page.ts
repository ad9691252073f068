/** The page of the plan: its graph, its nodes as a table, and one node. Made of the output of `roadmap show`. */
import type { NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import { isContainer } from "../../../core/roadmap.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { countText, describeCounts } from "../../../text/render.ts";
import { lookForTask } from "../../../view/find-task.ts";
import { stampOf } from "../../../view/kept.ts";
import { nodeQuestions, readSupervisor } from "../../../view/supervisor.ts";
import { actsOnTask, answersTo } from "../buttons.ts";
import { edgePaths } from "../graph/edge-path.ts";
import { BOX, type Layout, layOut } from "../graph/layout.ts";
import {
  actsBlock,
  type Block,
  factsOf,
  type Link,
  linkToTask,
  type Page,
  pathWith,
  say,
  shown,
  table,
} from "../page.ts";
import type { VerbReader } from "../verb-reader.ts";

const NODES_MAX = 2000;
const ROWS_MAX = 200;
const LABEL_CHARS_MAX = 22;
const TEXT_CHARS_MAX = 4000;
const AGAIN_MS = 300;

/** The colour of a node by name, and a sign. With the sign no state is shown by a colour alone. */
const LOOKS: Readonly<Record<NodeStatus, { look: string; sign: string }>> = {
  open: { look: "none", sign: "○" },
  in_progress: { look: "run", sign: "▶" },
  blocked: { look: "warn", sign: "‖" },
  needs_human: { look: "other", sign: "?" },
  done: { look: "good", sign: "✓" },
  failed: { look: "bad", sign: "✗" },
};

export class PlanPage {
  /** The last layout. It changes only when the nodes or their dependencies change. */
  private kept: { key: string; layout: Layout; paths: string[] } | undefined;

  constructor(
    private readonly tree: StateTree,
    private readonly verbs: VerbReader,
  ) {}

  /** @param query its `node` is the open node */
  async make(query: URLSearchParams): Promise<Page> {
    const nodes = await readNodes(this.tree, this.verbs);
    const id = query.get("node");
    const node = id === null ? undefined : nodes.find((one) => one.id === id);
    const work = nodes.filter((one) => !isContainer(one));
    return {
      title: "Plan",
      command: node === undefined ? "mailchute roadmap show" : `mailchute roadmap show ${node.id}`,
      blocks: [
        countFacts(work),
        ...(node === undefined ? [] : this.nodeBlocks(node, nodes)),
        ...(id !== null && node === undefined
          ? [say(`the plan has no node ${JSON.stringify(shown(id))}`, true)]
          : []),
        ...this.graphBlocks(work, id),
        tableOf(work),
      ],
    };
  }

  private graphBlocks(work: readonly RoadmapNode[], openId: string | null): Block[] {
    if (work.length === 0) return [];
    const drawn = work.length <= NODES_MAX ? work : work.filter(({ status }) => status !== "done");
    const some = drawn.slice(0, NODES_MAX);
    const { layout, paths } = this.layoutOf(some);
    const { width, height, places } = layout;
    const left = work.length - some.length;
    const blocks: Block[] = [
      {
        kind: "graph",
        title: "Nodes, each after those that it waits for",
        size: [width, height],
        box: [BOX.width, BOX.height],
        nodes: some.map((one) => {
          const { x = 0, y = 0 } = places.get(one.id) ?? {};
          const { look, sign } = LOOKS[one.status];
          return {
            text: `${sign} ${cutId(shown(one.id))}`,
            tip: `${shown(one.id)}: ${one.status}${one.title === one.id ? "" : `. ${shown(one.title)}`}`,
            look,
            at: [x, y],
            to: nodePath(one.id),
            is_here: one.id === openId,
          };
        }),
        edges: paths,
      },
    ];
    if (left > 0)
      blocks.push(say(`${countText(left)} nodes are not drawn: they are done, or too many.`));
    return blocks;
  }

  private layoutOf(nodes: readonly RoadmapNode[]): { layout: Layout; paths: string[] } {
    const drawn = nodes.map(({ id, dependencies }) => ({
      id,
      after: dependencies.map((one) => one.id),
    }));
    const key = JSON.stringify(drawn);
    if (this.kept?.key !== key) {
      const layout = layOut(drawn);
      this.kept = { key, layout, paths: edgePaths(layout) };
    }
    return this.kept;
  }

  private nodeBlocks(node: RoadmapNode, nodes: readonly RoadmapNode[]): Block[] {
    const { id, status, title, type, agent, priority, dependencies, acceptance } = node;
    const place = lookForTask(this.tree, id);
    const facts = factsOf([
      ["node", shown(id)],
      ["status", `${LOOKS[status].sign} ${status}`],
      ["type", type],
      ["priority", String(priority)],
      ["agent", agent === undefined ? null : shown(agent)],
      ["its task", place === undefined ? null : linkToTask(id)],
    ]);
    const acts = [
      ...(place === undefined ? [] : actsOnTask(id, place.state)),
      ...(status === "needs_human" ? answersTo(node, "text") : []),
    ];
    const text = node.prompt ?? node.goal ?? "";
    const statusOf = (one: string): string =>
      nodes.find((other) => other.id === one)?.status ?? "not in the plan";
    const blocks: Block[] = [facts];
    if (title !== id) blocks.push(say(shown(title)));
    if (status === "needs_human") {
      const question = nodeQuestions(readSupervisor(this.tree, Date.now())).get(id);
      if (question) blocks.push(say(shown(`It asks: ${question}`)));
    }
    blocks.push(...actsBlock("this node", acts));
    if (text !== "") blocks.push(say(shown(text.slice(0, TEXT_CHARS_MAX))));
    const done = acceptance.slice(0, ROWS_MAX).map((one) => [shown(one)]);
    const waits = dependencies.slice(0, ROWS_MAX).map(({ id: on }) => [nodeLink(on), statusOf(on)]);
    if (done.length > 0) blocks.push(table("It is done when", ["what"], done));
    if (waits.length > 0) blocks.push(table("It waits for", ["node", "status"], waits));
    return blocks;
  }
}

/** The nodes of the plan; none when there is no plan. @throws when the plan cannot be read */
export async function readNodes(tree: StateTree, verbs: VerbReader): Promise<RoadmapNode[]> {
  const stamp = stampOf(tree.roadmap);
  const asked = { verb: "roadmap", subcommand: "show", againMs: AGAIN_MS, stamp };
  const found = await verbs.read(asked);
  return (found?.["nodes"] ?? []) as RoadmapNode[];
}

function countFacts(nodes: readonly RoadmapNode[]): Block {
  const counts: Partial<Record<NodeStatus, number>> = {};
  for (const { status } of nodes) counts[status] = (counts[status] ?? 0) + 1;
  const sorted = Object.fromEntries(
    (Object.keys(LOOKS) as NodeStatus[]).map((status) => [status, counts[status] ?? 0]),
  );
  return factsOf([
    ["nodes", countText(nodes.length)],
    ["of these", describeCounts(sorted)],
  ]);
}

/** Nodes that wait for a person or have failed come first. */
function tableOf(nodes: readonly RoadmapNode[]): Block {
  const order: NodeStatus[] = ["needs_human", "failed", "blocked", "in_progress", "open", "done"];
  const sorted = nodes.toSorted((a, b) => order.indexOf(a.status) - order.indexOf(b.status));
  const some =
    nodes.length > ROWS_MAX
      ? ` (${countText(ROWS_MAX)} of ${countText(nodes.length)}; those that need a look come first)`
      : "";
  const rows = sorted.slice(0, ROWS_MAX).map(({ id, title, status, dependencies }) => {
    const on = dependencies.map((one) => one.id).join(" ");
    return [
      { ...linkToTask(id, title), to: nodePath(id) },
      `${LOOKS[status].sign} ${status}`,
      shown(on.slice(0, 200)),
    ];
  });
  return table(`Nodes${some}`, ["node", "status", "waits for"], rows, "the plan is empty");
}

function nodePath(id: string): string {
  return pathWith("/plan", { node: id });
}

function nodeLink(id: string): Link {
  return { text: shown(id), to: nodePath(id) };
}

function cutId(id: string): string {
  return id.length <= LABEL_CHARS_MAX ? id : `${id.slice(0, LABEL_CHARS_MAX - 1)}…`;
}
