/** What the supervisor needs of a plan: the planner can be reopened, and while it plans nothing else is launched. */
import { ErrInvalidTransition } from "../core/errors.ts";

export interface Plan {
  /** Reopens the planner node `plan-000` (attempts and locks cleared). False when there is no such node. */
  reopenPlanner(): boolean;
  /** True while `plan-000` is open or in progress. */
  isPlanning(): boolean;
}

/** A state tree without a roadmap engine. */
export const NO_PLAN: Plan = { reopenPlanner: () => false, isPlanning: () => false };

/** @throws ErrInvalidTransition when there is nothing to replan */
export function reopenPlanner(plan: Plan, commandId: string): void {
  if (plan.reopenPlanner()) return;
  throw new ErrInvalidTransition("there is no node plan-000 to replan", {
    id: commandId,
    hint: "replan needs a roadmap with a planner node plan-000",
  });
}
