/** Texts for an agent or a person that say why work does not land, and what to do. Pure. */
import { dirname } from "node:path";
import type { LandingOrder } from "../../worker/landing-files.ts";

export function noRoomText(order: LandingOrder | undefined, text: string): string {
  if (order === undefined) return text;
  const { repository, worktree } = order;
  return `no room on the disk of ${repository}, or of ${dirname(worktree)}: make room, it is tried again by itself (${text})`;
}

export function conflictText(
  { task_id, branch, target }: LandingOrder,
  files: readonly string[],
): string {
  return `The work of ${task_id} on ${branch} does not fit ${target}, which has moved on: conflict in ${files.join(", ")}. Bring ${target} into ${branch} in this worktree (git rebase ${target}, or git merge ${target}), solve the conflicts so that both changes hold, and commit.`;
}

export function redText({ task_id, branch, target }: LandingOrder, message: string): string {
  return `The work of ${task_id} on ${branch} was brought together with ${target}, and its check failed there: ${message}. Bring ${target} into ${branch} in this worktree (git rebase ${target}, or git merge ${target}), mend it so that the check passes, and commit.`;
}
