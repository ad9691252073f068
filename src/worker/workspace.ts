/** Whether a task works in a worktree of its own, and whose worktree that is. */
import { isId } from "../core/names.ts";
import type { AgentSettings } from "../core/settings.ts";
import type { Task } from "../core/task.ts";

/** The task whose worktree this task uses: itself, or the task that it mends or continues. */
export function worktreeIdOf({ id, metadata }: Pick<Task, "id" | "metadata">): string {
  const other = metadata?.["worktree_of"];
  return typeof other === "string" && isId(other) ? other : id;
}

/** Whether the runs of this task work in a worktree of their own. */
export function wantsWorktree(
  task: Pick<Task, "worktree">,
  agent: Pick<AgentSettings, "worktree">,
): boolean {
  return (task.worktree ?? agent.worktree) === "auto";
}
