/** Functions for the commands of the plan. They read it, refuse a broken one, and edit it while people and a supervisor may also do so. */
import type { Context } from "../../../cli/shell/command-spec.ts";
import { existingTree, openSettings, shortPath } from "../../../cli/shell/options.ts";
import { ErrInvalidRoadmap } from "../../../core/errors.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { type ChangedPlan, changePlan } from "../change-plan.ts";
import type { RoadmapEdit } from "../edit/edit.ts";
import { RoadmapFile } from "../file/roadmap-file.ts";
import { parseRoadmap, placesIn, type RoadmapDocument } from "../read/document.ts";
import type { RoadmapProblem } from "../read/problem.ts";

type PlanContext = Pick<Context, "stateDir" | "stateFrom" | "env" | "cwd" | "out">;

interface ReadPlan {
  tree: StateTree;
  doc: RoadmapDocument;
  /** False if there is no file, which counts as an empty plan. */
  isThere: boolean;
}

/** Reads the plan even if it has faults. @throws ErrInvalidRoadmap if it is not a text */
export async function readPlan(ctx: PlanContext): Promise<ReadPlan> {
  const tree = existingTree(ctx);
  const { text, stamp } = await new RoadmapFile(tree.roadmap, { durability: "process" }).read();
  return { tree, doc: parseRoadmap(text), isThere: stamp !== undefined };
}

/** Reads a plan without faults. @throws ErrInvalidRoadmap for its first fault */
export async function readGoodPlan(ctx: PlanContext): Promise<ReadPlan> {
  const plan = await readPlan(ctx);
  const [first] = plan.doc.problems;
  if (first !== undefined) throw refusal(plan.tree, plan.doc, first);
  return plan;
}

/**
 * Makes edits in the file, all or none: see `changePlan`.
 * @throws the errors of `applyEdits`; ErrInvalidRoadmap if nothing in the file can be read
 */
export async function editPlan(
  ctx: PlanContext,
  plan: (doc: RoadmapDocument) => readonly RoadmapEdit[] | Promise<readonly RoadmapEdit[]>,
): Promise<ChangedPlan> {
  const tree = existingTree(ctx);
  const { settings } = await openSettings(ctx);
  const changed = await changePlan(tree.roadmap, settings.durability, (doc) => {
    const [first] = doc.problems;
    if (first !== undefined && doc.nodes.length === 0) throw refusal(tree, doc, first);
    return plan(doc);
  });
  tellChanged(ctx, changed);
  return changed;
}

/** Prints on stderr what a person should know about a change of the plan. */
export function tellChanged(
  ctx: Pick<Context, "out">,
  { after, conflicts }: Pick<ChangedPlan, "after" | "conflicts">,
): void {
  for (const path of conflicts)
    ctx.out.note(`two texts of the plan were saved at once; the other one is kept in ${path}`);
  if (after.problems.length > 0)
    ctx.out.note(`the plan has ${count(after.problems.length)}; see \`mailchute roadmap check\``);
}

/** A place in the file in the form that editors and terminals open: `state/roadmap.yaml:12:5`. */
export function placeOf(
  ctx: Pick<Context, "cwd">,
  tree: StateTree,
  { line, col }: Pick<RoadmapProblem, "line" | "col">,
): string {
  return `${shortPath(ctx, tree.roadmap)}:${line}:${col}`;
}

/** Returns a function that makes of a node what `--json` shows: also where its id is in the file. */
export function shownIn(
  doc: RoadmapDocument,
): (node: RoadmapNode | undefined) => object | undefined {
  const placeIn = placesIn(doc);
  return (node) => node && { ...node, ...placeIn(node) };
}

/** "1 problem", "3 problems". */
export function count(problems: number): string {
  return `${problems} problem${problems === 1 ? "" : "s"}`;
}

/** The text of the line with a problem, because the message does not show it. */
export function lineAt(text: string, { line }: Pick<RoadmapProblem, "line">): string | undefined {
  return text.split("\n")[line - 1]?.trim();
}

export function refusal(
  tree: StateTree,
  doc: RoadmapDocument,
  first: RoadmapProblem,
): ErrInvalidRoadmap {
  const total = doc.problems.length;
  const more = total > 1 ? ` (and ${total - 1} more: see \`mailchute roadmap check\`)` : "";
  return new ErrInvalidRoadmap(`line ${first.line}, column ${first.col}: ${first.message}${more}`, {
    path: `${tree.roadmap}:${first.line}:${first.col}`,
    phase: "read",
    hint: first.hint,
    found: lineAt(doc.text, first),
  });
}
