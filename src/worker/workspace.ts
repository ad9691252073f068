/** The port for a part that gives a run a directory of its own. */
import type { KeptWork, WorkFacts } from "../core/landing.ts";
import { isId } from "../core/names.ts";
import type { AttemptOutcome } from "../core/outcome.ts";
import type { AgentSettings } from "../core/settings.ts";
import type { Task } from "../core/task.ts";
import type { Base } from "./base-check.ts";
import type { LandingOrder } from "./landing-files.ts";
import type { AssignedAgent, AttemptTools } from "./runner.ts";

/** The directory of a run, and the environment that belongs to it. */
export interface Workspace {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The commit at which its work began, for a check that is red; undefined: the check alone counts. */
  readonly base?: (() => Promise<Base | undefined>) | undefined;
  /** Called when no process of the run is left. Never rejects. @param isLast the task ends with this outcome */
  finish(outcome: AttemptOutcome, isLast: boolean): Promise<Finished>;
}

export interface Finished {
  /** The given outcome. If the work of a completed run could not be saved: an outcome that lets the task run again. */
  outcome: AttemptOutcome;
  /** The facts about its work for the record of a completed task. */
  work?: WorkFacts;
  /** Where its work is that its branch lacks, for the record. */
  kept?: KeptWork;
}

export interface Workspaces {
  /** Makes the directory, or finds that of an earlier run. Never rejects. @returns the outcome of the run if it gets no directory */
  prepare(assigned: AssignedAgent): Promise<Workspace | AttemptOutcome>;
  /** What the repository of this directory holds, to tell whether it has changed; undefined when there is none. Never rejects. */
  stampOf(dir: string): Promise<string | undefined>;
  /**
   * Removes the directory of a task whose work is elsewhere now, unless it holds anything else worth keeping.
   * @param landed the branch is removed, too, if it is at this commit; left out: the branch stays
   * @returns why it stays; an empty list: it is gone
   */
  release(order: LandingOrder, landed?: string): Promise<string[]>;
}

/** Called for the first run that wants one, so that other workers do not load the code. */
export type LoadWorkspaces = (tools: AttemptTools) => Promise<Workspaces>;

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
