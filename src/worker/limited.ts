/** The limits of a run: those of its task, its agent and the tree. */
import type { Assignment } from "../agents/agent.ts";
import { nearestLimits } from "../core/run-limits.ts";
import { type AgentSettings, isFunction } from "../core/settings.ts";
import type { Task } from "../core/task.ts";
import type { AttemptTools } from "./runner.ts";

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
