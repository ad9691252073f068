/** Loads the code of worktrees when the first task wants one. */
import type { AttemptTools, Workspaces } from "../../worker/runner.ts";

export async function worktrees(tools: AttemptTools): Promise<Workspaces> {
  const { TaskWorktrees } = await import("./task-worktrees.ts");
  return new TaskWorktrees(tools);
}
