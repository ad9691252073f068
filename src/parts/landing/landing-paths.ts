/** Where the checkouts of landings and of reviewers are: beside the worktrees of tasks, in a folder that is no worktree. Pure. */
import { dirname, join } from "node:path";
import type { LandingOrder } from "../../worker/landing-files.ts";

export function landingPathOf({ worktree, task_id }: LandingOrder): string {
  return join(dirname(worktree), ".landing", task_id);
}

/** @param reviewId the id of the reviewing task */
export function reviewPathOf({ worktree }: LandingOrder, reviewId: string): string {
  return join(dirname(worktree), ".review", reviewId);
}
