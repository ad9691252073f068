/** `roadmap check|show|next|reset`: shows the plan and its faults, and opens nodes that have ended. */

import { type Context, defineCommand, ErrUsage } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { isDebugging } from "../../../cli/shell/found-value.ts";
import { openSettings, shortPath } from "../../../cli/shell/options.ts";
import { compact } from "../../../core/compact.ts";
import { ErrTaskNotFound } from "../../../core/errors.ts";
import { resolveOpenAgent } from "../../../core/matching.ts";
import { NODE_STATUSES, type NodeStatus, type RoadmapNode } from "../../../core/roadmap.ts";
import { type Column, type Paint, paint, safe, table } from "../../../text/render.ts";
import { lookForWork, readUnlanded, recheckLanded, workText } from "../../../view/landing.ts";
import { findNode } from "../read/document.ts";
import { readStatus } from "../read/item.ts";
import { makeFilter, type PlanFilters } from "../rules/filters.ts";
import { planNext } from "../rules/next.ts";
import { linksOf, type Place, placesOf } from "../rules/places.ts";
import { count, lineAt, placeOf, readGoodPlan, readPlan, shownIn } from "./read-plan.ts";

const PAINTS: Readonly<Record<NodeStatus, Paint>> = {
  open: "bold",
  in_progress: "cyan",
  blocked: "yellow",
  needs_human: "yellow",
  done: "green",
  failed: "red",
};

const SEE_HELP = "see `mailchute roadmap --help`";

export const command = defineCommand({
  usage:
    "check | show [ID] | next [--explain] [--epic ID] [--milestone ID] [--domain NAME] [--status WORD] | reset [NODE…] [--failed] [--downstream]",
  args: { min: 0, max: Number.POSITIVE_INFINITY },
  subcommands: {
    check: "each fault of roadmap.yaml with its line and column",
    show: "the plan as a tree with its statuses; with ID, only that node and those under it",
    next: "the nodes that would be launched now, best first; --explain says why the others wait",
    reset:
      "open done and failed nodes again, all in one step: these, or all; --failed: only failed ones",
  },
  details: [
    "`roadmap check` exits with 1 if there are faults, `roadmap next` with 3 if nothing is ready.",
    "`roadmap reset` changes nothing if one of the nodes is in flight. What the earlier runs have left stays, in evidence/NODE/earlier/. Blocked nodes and those that wait for an answer stay as they are.",
    "In the plan, `epics:` is a list of epics. Epics hold milestones and tasks, milestones hold tasks. `nodes:` is a flat list of nodes, where `parent` says where a node belongs.",
  ],
  examples: [
    "roadmap check",
    "roadmap next --explain --epic first",
    "roadmap reset --failed --downstream",
  ],
  options: {
    explain: { type: "flag", help: "next: say why each other node waits" },
    epic: { type: "text", value: "ID", help: "next, show: only what belongs to this epic" },
    milestone: {
      type: "text",
      value: "ID",
      help: "next, show: only what belongs to this milestone",
    },
    domain: { type: "text", value: "NAME", help: "next, show: only nodes of this domain" },
    status: {
      type: "text",
      value: "WORD",
      choices: [...NODE_STATUSES, "pending"],
      help: "next, show: only nodes with this status",
    },
    failed: { type: "flag", help: "reset: only nodes that have failed" },
    downstream: {
      type: "flag",
      help: "reset: also what depends on them, and what depends on that",
    },
  },
  async run(ctx) {
    const { epic, milestone, domain, status, explain, failed, downstream } = ctx.options;
    if (ctx.subcommand === "reset") {
      if (explain || [epic, milestone, domain, status].some((one) => one !== undefined))
        throw new ErrUsage("roadmap reset takes no filters", SEE_HELP);
      const { reset } = await import("./reset.ts");
      return reset(ctx, {
        ...(ctx.positionals.length > 0 ? { ids: ctx.positionals } : {}),
        onlyFailed: failed,
        downstream,
      });
    }
    if (failed || downstream)
      throw new ErrUsage(
        `${failed ? "--failed" : "--downstream"} goes with roadmap reset`,
        SEE_HELP,
      );
    const wanted = status === undefined ? undefined : (readStatus(status) ?? "open");
    const filters: PlanFilters = compact({ epic, milestone, domain, status: wanted });
    const [idsMax, many] = ctx.subcommand === "show" ? [1, "one id"] : [0, "no id"];
    if (ctx.positionals.length > idsMax)
      throw new ErrUsage(
        `roadmap ${ctx.subcommand} takes ${many}`,
        "usage: mailchute roadmap show ID",
      );
    if (ctx.subcommand === "check") return check(ctx);
    if (ctx.subcommand === "show") return show(ctx, filters);
    return next(ctx, filters, explain);
  },
});

async function check(ctx: Context): Promise<number> {
  const { tree, doc, isThere } = await readPlan(ctx);
  const { problems, nodes, warnings = [] } = doc;
  const code = problems.length > 0 ? EXIT.failed : isThere ? EXIT.ok : EXIT.notFound;
  if (ctx.json) {
    const ok = problems.length === 0;
    ctx.out.json({ ok, path: tree.roadmap, nodes: nodes.length, problems, warnings });
    return code;
  }
  for (const problem of [...problems, ...warnings]) {
    const what = problem.code === "no_effect" ? "warning: " : "";
    ctx.out.line(
      `${placeOf(ctx, tree, problem)}: ${what}${safe(problem.message)} (${safe(problem.hint)})`,
    );
    if (isDebugging(ctx.env)) ctx.out.line(`  found: ${safe(lineAt(doc.text, problem))}`);
  }
  const path = shortPath(ctx, tree.roadmap);
  if (problems.length > 0) ctx.out.note(`${path} has ${count(problems.length)}`);
  else if (isThere) ctx.out.line(`${safe(path)}: ${nodes.length} nodes, no problems`);
  else ctx.out.note(`there is no ${path}`);
  return code;
}

async function show(ctx: Context, filters: PlanFilters): Promise<number> {
  const { doc, tree } = await readGoodPlan(ctx);
  const id = ctx.positionals[0];
  const root = id === undefined ? undefined : findNode(doc, id);
  if (id !== undefined && root === undefined)
    throw new ErrTaskNotFound(`the roadmap has no node ${JSON.stringify(id)}`, {
      id,
      phase: "show",
      hint: "see `mailchute roadmap show`",
    });
  const inTree = treeOf(doc.nodes, root, filters);
  const works = await recheckLanded(
    inTree.flatMap(({ node }) =>
      node.status === "done" ? (lookForWork(tree, node.id) ?? []) : [],
    ),
  );
  const workOf = new Map(works.map((work) => [work.task_id, work]));
  const rows = inTree.map((row) => ({ ...row, work: workOf.get(row.node.id) }));
  if (ctx.json) {
    const shown = shownIn(doc);
    ctx.out.json({
      nodes: rows.map(({ node, work }) => ({ ...shown(node), ...(work && { work }) })),
    });
    return EXIT.ok;
  }
  if (rows.length === 0) {
    ctx.out.note(doc.nodes.length === 0 ? "the plan is empty" : "no node fits the filters");
    return EXIT.ok;
  }
  const columns: Column[] = [
    { title: "NODE", ...(ctx.isTerminal ? { min: 16 } : {}) },
    { title: "STATUS", paint: (cell, row) => paintStatus(ctx.colour, cell, rows[row]?.node) },
    { title: "TITLE", min: 5 },
    ...(rows.some(({ work }) => work !== undefined) ? [{ title: "WORK", min: 24 }] : []),
  ];
  const cells = rows.map(({ node, depth, progress, work }) => [
    `${"  ".repeat(depth)}${safe(node.id)}`,
    progress === undefined ? node.status : `${node.status} ${progress}`,
    node.title === node.id ? "" : safe(node.title),
    work === undefined ? "" : safe(workText(work)),
  ]);
  for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
  return EXIT.ok;
}

async function next(ctx: Context, filters: PlanFilters, explains: boolean): Promise<number> {
  const { doc, tree } = await readGoodPlan(ctx);
  const { settings } = await openSettings(ctx);
  const matchAgent = (node: RoadmapNode) => resolveOpenAgent(node, settings.agents);
  const unlanded = readUnlanded(tree);
  const { ready, waiting } = planNext(doc.nodes, { matchAgent, filters, unlanded });
  const code = ready.length > 0 ? EXIT.ok : EXIT.notFound;
  const agentOf = (node: RoadmapNode): string => matchAgent(node).agent?.name ?? "";
  if (ctx.json) {
    const shown = shownIn(doc);
    ctx.out.json({
      ready: ready.map((node) => ({ ...shown(node), agent: agentOf(node) })),
      ...(explains && {
        waiting: waiting.map(({ node: { id, status }, reason }) => ({ id, status, reason })),
      }),
    });
    return code;
  }
  const id: Column = { title: "NODE", ...(ctx.isTerminal ? { min: 16 } : {}) };
  if (ready.length > 0) {
    const columns: Column[] = [
      id,
      { title: "PRIORITY" },
      { title: "TYPE" },
      { title: "AGENT", min: 6 },
      { title: "TITLE", min: 5 },
    ];
    const cells = ready.map((node) => [
      safe(node.id),
      String(node.priority),
      node.type,
      safe(agentOf(node)),
      node.title === node.id ? "" : safe(node.title),
    ]);
    for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
  } else {
    ctx.out.note(
      explains || waiting.length === 0
        ? "nothing is ready"
        : "nothing is ready; --explain says why",
    );
  }
  if (!explains || waiting.length === 0) return code;
  if (ready.length > 0) ctx.out.line();
  const columns: Column[] = [id, { title: "WHY IT WAITS", min: 20 }];
  const cells = waiting.map(({ node, reason }) => [safe(node.id), safe(reason)]);
  for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
  return code;
}

interface TreeRow {
  node: RoadmapNode;
  depth: number;
  /** For containers: how many nodes in it are done, as "2/5". */
  progress: string | undefined;
}

/** The nodes as a tree. With filters only the nodes that fit, and their parents. */
function treeOf(
  nodes: readonly RoadmapNode[],
  root: RoadmapNode | undefined,
  filters: PlanFilters,
): TreeRow[] {
  const places = placesOf(nodes);
  const { children } = linksOf(places);
  const fits = makeFilter(filters);
  const walk = (place: Place, depth: number): { rows: TreeRow[]; done: number; total: number } => {
    const { node, isContainer } = place;
    const below = (children.get(place) ?? []).map((child) => walk(child, depth + 1));
    const sum = (pick: "done" | "total"): number => below.reduce((all, one) => all + one[pick], 0);
    const total = sum("total") + (isContainer ? 0 : 1);
    const done = sum("done") + (!isContainer && node.status === "done" ? 1 : 0);
    const rows = below.flatMap((one) => one.rows);
    const progress = isContainer && total > 0 ? `${done}/${total}` : undefined;
    if (fits === undefined || rows.length > 0 || (fits(node) && !isContainer))
      rows.unshift({ node, depth, progress });
    return { rows, done, total };
  };
  const roots = places.filter(({ node, above }) =>
    root === undefined ? above === undefined : node === root,
  );
  return roots.flatMap((place) => walk(place, 0).rows);
}

function paintStatus(colour: boolean, cell: string, node: RoadmapNode | undefined): string {
  return node === undefined ? cell : paint(colour, PAINTS[node.status], cell);
}
