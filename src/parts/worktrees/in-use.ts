/** Whether the worktree of a task, or its saves, are still in use. */
import { landingIdOf } from "../../core/landing.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { lookForLanding } from "../../view/landing.ts";
import { readLanding } from "../../worker/landing-files.ts";
import { isUnfinished } from "./worktree-user.ts";

export function isInUse(tree: StateTree, trays: Trays, id: string): boolean {
  const { fix } = readLanding(tree.dir, id, "state") ?? {};
  // Its landing and an agent that mends its work use the worktree, too.
  const users = [id, landingIdOf(id), ...(fix ? [fix.id] : [])];
  return (
    users.some((one) => isUnfinished(trays, one)) || lookForLanding(tree, id)?.state === "open"
  );
}
