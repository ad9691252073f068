/** Which plan a task belongs to, and how much its nodes may spend together. */
import { type PlanBudget, UNNAMED_PLAN } from "../../core/roadmap.ts";
import { having, isText, type Shape, shape } from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import type { Assignment } from "../agent.ts";

const planBudget = shape({ name: isText, budget: having({}) }) as Shape<PlanBudget>;
export const PLAN_BUDGET = "plan-budget";
/** How much the nodes of the current plan may spend, for their runs; missing when the plan does not say. */
export const planBudgets = (stateDir: string): Documents<PlanBudget> =>
  new Documents(stateDir, "analytics", planBudget);

/** Undefined for a task that is no node of the plan. */
export function planOf({
  stateDir,
  task,
}: Pick<Assignment, "stateDir" | "task">): PlanBudget | undefined {
  if (task.metadata?.["roadmap"] === undefined) return undefined;
  return planBudgets(stateDir).read(PLAN_BUDGET) ?? { name: UNNAMED_PLAN, budget: {} };
}
