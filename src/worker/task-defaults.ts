/** What holds for a run of a task where the task says nothing itself: the checks, limits and worktree of its agent. */
import type { Assignment } from "../agents/agent.ts";
import { readPrograms } from "../codec/task-rules.ts";
import { isId } from "../core/names.ts";
import { nearestLimits } from "../core/run-limits.ts";
import { wallsOf } from "../core/sandbox.ts";
import { type AgentSettings, isFunction } from "../core/settings.ts";
import type { Task } from "../core/task.ts";
import type { AttemptTools } from "./runner.ts";

/** @returns the task itself when its agent has no checks to add */
export function withChecks(task: Task, agent: AgentSettings): Task {
  const { verify, expect_files: files } = agent;
  const isAdded = verify !== undefined && task.verify === undefined;
  const areFilesAdded = files !== undefined && task.expect_files === undefined;
  if (!(isAdded || areFilesAdded)) return task;
  return {
    ...task,
    ...(isAdded ? { verify: readPrograms(verify) } : {}),
    ...(areFilesAdded ? { expect_files: files } : {}),
  };
}

/** Why the limits of this task cannot be enforced; undefined when they can. Limits of the tree apply only to programs. */
export function explainUnlimited(
  tools: Pick<AttemptTools, "settings" | "makeLimiter">,
  task: Task,
  agent: AgentSettings,
): string | undefined {
  if (isFunction(agent)) {
    if (task.run_limits === undefined) return undefined;
    return `run_limits: the agent ${agent.name} is a function, which runs inside a worker process; only programs have limits`;
  }
  const limits = nearestLimits(task.run_limits, agent.run_limits, tools.settings.run_limits);
  if (limits === undefined || tools.makeLimiter !== undefined) return undefined;
  return "run_limits: nothing here limits runs";
}

/** What keeps the programs of a run within its limits. Undefined for a run without limits. */
export function limiterFor(
  { settings, makeLimiter }: Pick<AttemptTools, "settings" | "makeLimiter">,
  task: Task,
  agent: AgentSettings,
): Assignment["limiter"] {
  const limits = nearestLimits(task.run_limits, agent.run_limits, settings.run_limits);
  return limits === undefined ? undefined : makeLimiter?.(limits);
}

/** Puts the programs of a run behind walls; undefined for an agent without them. */
export function wallsFor(
  { settings, makeWalls }: Pick<AttemptTools, "settings" | "makeWalls">,
  agent: AgentSettings,
): Assignment["walls"] {
  const walls = wallsOf(agent, settings);
  return walls === undefined ? undefined : makeWalls?.(walls, agent);
}

/** Makes the meter of a run; undefined for an agent without one. */
export function meterFor(
  { makeMeter }: Pick<AttemptTools, "makeMeter">,
  { meter }: AgentSettings,
): Assignment["makeMeter"] {
  return meter === undefined ? undefined : makeMeter;
}

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
