/** The port for a part that gives a run a directory of its own. */
import type { AttemptOutcome } from "../core/outcome.ts";
import type { AgentSettings } from "../core/settings.ts";
import type { Task } from "../core/task.ts";
import type { AssignedAgent, AttemptTools } from "./runner.ts";

/** The directory of a run, with what belongs to it. */
export interface Workspace {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /**
   * Called when nothing of the run is left. Never rejects.
   * @param isLast the task ends with this outcome
   */
  finish(outcome: AttemptOutcome, isLast: boolean): Promise<void>;
}

export interface Workspaces {
  /** Makes the directory, or finds that of an earlier run. Never rejects. @returns the outcome of the run when there is none */
  prepare(assigned: AssignedAgent): Promise<Workspace | AttemptOutcome>;
}

/** Called for the first run that wants one, so that other workers do not load the code. */
export type LoadWorkspaces = (tools: AttemptTools) => Promise<Workspaces>;

/** Whether the runs of this task work in a worktree of their own. */
export function wantsWorktree(
  task: Pick<Task, "worktree">,
  agent: Pick<AgentSettings, "worktree">,
): boolean {
  return (task.worktree ?? agent.worktree) === "auto";
}
