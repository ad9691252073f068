/** Loads the code of worktrees when the first task wants one. */
import type { AttemptTools } from "../../worker/runner.ts";
import type { Workspaces } from "../../worker/workspace.ts";

export async function worktrees(tools: AttemptTools): Promise<Workspaces> {
  const { TaskWorktrees } = await import("./task-worktrees.ts");
  return new TaskWorktrees(tools);
}
