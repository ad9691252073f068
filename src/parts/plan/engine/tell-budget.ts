/** Writes the budget of the plan into the file that the runs of its nodes read. So a change also counts for runs in progress. */

import { NODES_OF_PLAN } from "../../../agents/budget/limits.ts";
import { PLAN_BUDGET, planBudgets } from "../../../agents/budget/plan-of.ts";
import { messageOf } from "../../../core/errors.ts";
import { QuestionStore } from "../../../questions/question-store.ts";
import type { EngineParts } from "./engine-parts.ts";

export function tellBudget({ env, store }: Pick<EngineParts, "env" | "store">): void {
  const told = planBudgets(env.tree.dir);
  const budget = store.doc?.budget;
  try {
    const now = budget && { v: 1, ...budget };
    if (JSON.stringify(told.load(PLAN_BUDGET)) === JSON.stringify(now)) return;
    if (now === undefined) told.remove(PLAN_BUDGET);
    else told.replace(PLAN_BUDGET, now);
    // The new budget may be enough, so open questions about it are closed. If it is not enough, the next run asks again.
    const questions = new QuestionStore(env.tree.dir);
    for (const { id, who } of questions.open(env.trays.clock.wallMs()))
      if (who === NODES_OF_PLAN) questions.close(id);
  } catch (error) {
    env.alerts.report("plan-budget", `cannot write the budget of the plan: ${messageOf(error)}`);
  }
}
