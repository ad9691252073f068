/** Which agent runs a task. Pure. Rule: `product.md`, "What runs it". */
import type { AgentSettings } from "./settings.ts";
import type { Task } from "./task.ts";

/** Runs `exec` of any task; needs no configuration. */
export const BUILT_IN_EXEC: AgentSettings = { name: "exec", kind: "exec" };

const AGENT_TYPES: ReadonlySet<string> = new Set([
  "researcher",
  "implementer",
  "reviewer",
  "planner",
  "verifier",
  "integrator",
]);

export type Match = { agent: AgentSettings } | { agent: undefined; reason: string };

/**
 * `exec` if given, else the task's `agent`, else an agent whose capabilities and types fit: configured defaults first;
 * others only when the task says what it needs.
 */
export function matchAgent(
  task: Pick<Task, "exec" | "agent" | "capabilities" | "type">,
  agents: readonly AgentSettings[],
): Match {
  if (task.exec !== undefined) return { agent: BUILT_IN_EXEC };
  if (task.agent !== undefined) {
    const named = agents.find((a) => a.name === task.agent);
    return named === undefined
      ? { agent: undefined, reason: `no agent ${JSON.stringify(task.agent)} is configured` }
      : { agent: named };
  }
  const fitting = agents.filter((a) => fits(a, task));
  const isPicky = (task.capabilities?.length ?? 0) > 0 || isAgentType(task.type);
  const agent = fitting.find((a) => a.default === true) ?? (isPicky ? fitting[0] : undefined);
  if (agent !== undefined) return { agent };
  if (task.capabilities !== undefined && task.capabilities.length > 0) {
    return {
      agent: undefined,
      reason: `no agent has the capabilities ${task.capabilities.join(", ")}`,
    };
  }
  return { agent: undefined, reason: "it has no exec, and no default agent is configured" };
}

/** Work that makes plans: the task says so, or the agent is one for planning. */
export function isPlannerWork(task: Pick<Task, "type">, agent: AgentSettings | undefined): boolean {
  return (
    task.type === "plan" || task.type === "planner" || agent?.types?.includes("planner") === true
  );
}

function fits(agent: AgentSettings, task: Pick<Task, "capabilities" | "type">): boolean {
  if (task.capabilities?.some((c) => !(agent.capabilities ?? []).includes(c))) return false;
  return !isAgentType(task.type) || (agent.types ?? []).includes(task.type);
}

function isAgentType(type: string | undefined): type is string {
  return type !== undefined && AGENT_TYPES.has(type);
}
