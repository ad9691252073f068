/** Writes the budget of the plan into the file that the runs of its nodes read. So a change also counts for runs in progress. */

import { NODES_OF_PLAN } from "../../../agents/budget/limits.ts";
import { messageOf } from "../../../core/errors.ts";
import { planBudgetOf } from "../../../core/state-tree.ts";
import { loadDocument, removeDocument, replaceInTree } from "../../../host/documents.ts";
import { QuestionStore } from "../../../questions/question-store.ts";
import type { PlanParts } from "./engine-parts.ts";

export function tellBudget({ env, store }: Pick<PlanParts, "env" | "store">): void {
  const path = planBudgetOf(env.tree);
  const budget = store.doc?.budget;
  try {
    const told = loadDocument<object>(path);
    const now = budget === undefined ? undefined : { v: 1, ...budget };
    if (JSON.stringify(told) === JSON.stringify(now)) return;
    if (now === undefined) removeDocument(path);
    else replaceInTree(env.tree.dir, path, now);
    // The new budget may be enough, so open questions about it are closed. If it is not enough, the next run asks again.
    const questions = new QuestionStore(env.tree.dir);
    for (const { id, who } of questions.open(env.trays.clock.wallMs()))
      if (who === NODES_OF_PLAN) questions.close(id);
  } catch (error) {
    env.alerts.report("plan-budget", `cannot write the budget of the plan: ${messageOf(error)}`);
  }
}
