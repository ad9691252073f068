/** Which plan a task belongs to, and how much its nodes may spend together. */
import { type PlanBudget, UNNAMED_PLAN } from "../../core/roadmap.ts";
import { planBudgetOf } from "../../core/state-tree.ts";
import { readDocument } from "../../host/documents.ts";
import type { Assignment } from "../agent.ts";

/** Undefined for a task that is no node of the plan. */
export function planOf({
  stateDir,
  task,
}: Pick<Assignment, "stateDir" | "task">): PlanBudget | undefined {
  if (task.metadata?.["roadmap"] === undefined) return undefined;
  const found = readDocument<PlanBudget>(planBudgetOf({ dir: stateDir }));
  const isOne = typeof found?.name === "string" && typeof found.budget === "object";
  return isOne ? found : { name: UNNAMED_PLAN, budget: {} };
}
