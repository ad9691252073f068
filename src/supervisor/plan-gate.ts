/** What commands need of a plan. */
import { ErrInvalidTransition } from "../core/errors.ts";

export interface Plan {
  /** Resolves when it is known whether there is a plan, and what it says. */
  readonly started: Promise<void>;
  /** Opens the planner node again; resolves when that will survive a crash. False when there is no such node. */
  reopenPlanner(): Promise<boolean>;
  isNode(id: string): boolean;
  isOpen(id: string): boolean;
  /** Takes a node's task that waits in the inbox out again: the node is open. False when it does not wait there. */
  withdraw(id: string): Promise<boolean>;
}

/** @throws ErrInvalidTransition when there is nothing to replan */
export async function reopenPlanner(plan: Plan, commandId: string): Promise<void> {
  if (await plan.reopenPlanner()) return;
  throw new ErrInvalidTransition("there is no node plan-000 to replan", {
    id: commandId,
    hint: "replan needs a roadmap with a planner node plan-000",
  });
}
