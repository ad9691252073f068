/** What the verbs of the plan share: reading it, refusing a broken one, and changing it beside people and a supervisor. */
import type { Context } from "../../../cli/shell/command-spec.ts";
import { existingTree, openSettings, shortPath } from "../../../cli/shell/options.ts";
import { ErrInvalidRoadmap } from "../../../core/errors.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { applyEdits, type RoadmapEdit } from "../edit/edit.ts";
import { withRoadmapLock } from "../file/lock.ts";
import type { Settled } from "../file/replaced-files.ts";
import { RoadmapFile } from "../file/roadmap-file.ts";
import { parseRoadmap, type RoadmapDocument } from "../read/document.ts";
import type { RoadmapProblem } from "../read/problem.ts";

type PlanContext = Pick<Context, "stateDir" | "stateFrom" | "env" | "cwd" | "out">;

interface ReadPlan {
  tree: StateTree;
  doc: RoadmapDocument;
  /** False: there is no file, which is an empty plan. */
  isThere: boolean;
}

/** The plan as it is now, whatever is wrong with it. @throws ErrInvalidRoadmap when it is no text */
export async function readPlan(ctx: PlanContext): Promise<ReadPlan> {
  const tree = existingTree(ctx);
  const { text, stamp } = await new RoadmapFile(tree.roadmap, { durability: "process" }).read();
  return { tree, doc: parseRoadmap(text), isThere: stamp !== undefined };
}

/** Like `readPlan`. @throws ErrInvalidRoadmap for the first fault of a plan that has some */
export async function readGoodPlan(ctx: PlanContext): Promise<ReadPlan> {
  const plan = await readPlan(ctx);
  const [first] = plan.doc.problems;
  if (first !== undefined) throw refusal(plan.tree, plan.doc, first);
  return plan;
}

/**
 * Applies edits to the file: all or none, on whatever text a person may have just saved.
 * @param plan the edits for a text; called again when a person saved in between
 * @throws what `applyEdits` throws; ErrInvalidRoadmap when nothing of the file can be read
 */
export async function editPlan(
  ctx: PlanContext,
  plan: (doc: RoadmapDocument) => readonly RoadmapEdit[] | Promise<readonly RoadmapEdit[]>,
): Promise<{ before: RoadmapDocument; after: RoadmapDocument }> {
  const tree = existingTree(ctx);
  const { settings } = await openSettings(ctx);
  const file = new RoadmapFile(tree.roadmap, { durability: settings.durability });
  return withRoadmapLock(tree.roadmap, async () => {
    tellConflicts(ctx, file.recoverLeftovers());
    let before = parseRoadmap("");
    let after = before;
    await file.update(async (text) => {
      before = parseRoadmap(text);
      const [first] = before.problems;
      if (first !== undefined && before.nodes.length === 0) throw refusal(tree, before, first);
      after = applyEdits(before, await plan(before));
      return after.text;
    });
    tellConflicts(ctx, await file.settle());
    if (after.problems.length > 0)
      ctx.out.note(`the plan has ${count(after.problems.length)}; see \`mailchute roadmap check\``);
    return { before, after };
  });
}

/** `state/roadmap.yaml:12:5`, as editors and terminals take it. */
export function placeOf(
  ctx: Pick<Context, "cwd">,
  tree: StateTree,
  { line, col }: Pick<RoadmapProblem, "line" | "col">,
): string {
  return `${shortPath(ctx, tree.roadmap)}:${line}:${col}`;
}

/** "1 problem", "3 problems". */
export function count(problems: number): string {
  return `${problems} problem${problems === 1 ? "" : "s"}`;
}

/** The line of the plan that a problem stands in: the message about it does not say what is there. */
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

function tellConflicts(ctx: PlanContext, { conflicts }: Settled): void {
  for (const path of conflicts)
    ctx.out.note(`two texts of the plan were saved at once; the other one is kept in ${path}`);
}
