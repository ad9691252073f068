/** Which agent runs a task. Pure. Rule: `product.md`, "What runs it". */
import type { NodeType, RoadmapNode } from "./roadmap.ts";
import type { AgentSettings } from "./settings.ts";
import type { Task } from "./task.ts";

/** Runs `exec` of any task; needs no configuration. */
export const BUILT_IN_EXEC: AgentSettings = { name: "exec", kind: "exec" };

/** Stands where an agent's name would: a batch has many, one for each line. */
export const BATCH_AGENT = "batch";

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

const ROLES: Readonly<Partial<Record<NodeType, string>>> = {
  plan: "planner",
  task: "implementer",
  verify: "verifier",
  final_verify: "verifier",
  integrate: "integrator",
};

/**
 * Who runs a node of the plan: `exec` if given, else its `agent`, else an agent that advertises the type that follows from
 * the node's role and has all capabilities, else the default agent if it has them; configured defaults first.
 */
export function resolveAgent(
  node: Pick<RoadmapNode, "type" | "exec" | "agent" | "role" | "capabilities">,
  agents: readonly AgentSettings[],
): Match {
  if (node.exec !== undefined) return { agent: BUILT_IN_EXEC };
  if (node.agent !== undefined) {
    const named = agents.find((a) => a.name === node.agent);
    return named === undefined
      ? { agent: undefined, reason: `no agent ${JSON.stringify(node.agent)} is configured` }
      : { agent: named };
  }
  const able = agents.filter((a) =>
    node.capabilities.every((one) => a.capabilities?.includes(one) === true),
  );
  const type = node.role ?? ROLES[node.type];
  const fitting = able.filter((a) => type !== undefined && a.types?.includes(type) === true);
  const isDefault = (a: AgentSettings): boolean => a.default === true;
  const agent = fitting.find(isDefault) ?? fitting[0] ?? able.find(isDefault);
  if (agent !== undefined) return { agent };
  if (node.capabilities.length > 0 && able.length === 0)
    return {
      agent: undefined,
      reason: `no agent has the capabilities ${node.capabilities.join(", ")}`,
    };
  return {
    agent: undefined,
    reason: `it has no exec, and no agent of type ${type ?? node.type} and no default agent is configured`,
  };
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
