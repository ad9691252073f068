/** Decides which agent runs a task or a node. Pure. */

import { ErrInvalidTask, type ErrorDetails } from "./errors.ts";
import type { NodeType, RoadmapNode } from "./roadmap.ts";
import { type AgentSettings, isFunction } from "./settings.ts";
import { suggest } from "./suggest.ts";
import type { Task } from "./task.ts";

/** The agent that runs the `exec` of any task. It needs no configuration. */
export const BUILT_IN_EXEC: AgentSettings = { name: "exec", kind: "exec" };

/** Stands for the agent of a batch, because each line of a batch has its own agent. */
export const BATCH_AGENT = "batch";

const AGENT_TYPES: ReadonlySet<string> = new Set([
  "researcher",
  "implementer",
  "reviewer",
  "planner",
  "verifier",
  "integrator",
]);

export type Match =
  /** `fallbacks`: the agents that take the task over, the first one first, while `agent` is closed. Left out when there are none. */
  | { agent: AgentSettings; fallbacks?: readonly AgentSettings[] }
  | { agent: undefined; reason: string };

/**
 * Finds the agent of a task: the built-in one for `exec` unless `agent` sends it to other machines, else the task's `agent`, else an agent whose capabilities and types
 * fit. Default agents come first; others are only taken when the task names a capability or an agent's type.
 */
export function matchAgent(
  task: Pick<Task, "exec" | "agent" | "agents" | "capabilities" | "type">,
  agents: readonly AgentSettings[],
): Match {
  const match = matchFirst(task, agents);
  return match.agent === undefined ? match : withFallbacks(match.agent, namesIn(task), agents);
}

/** The agents that a task names itself. Its file may not have been checked. */
function namesIn({ agents }: Pick<Task, "agents">): string[] | undefined {
  return Array.isArray(agents) ? agents : undefined;
}

/** @param named the agents that the task names itself, in place of those that stand in for its agent in the settings */
function withFallbacks(
  agent: AgentSettings,
  named: readonly string[] | undefined,
  agents: readonly AgentSettings[],
): Match {
  const names = named?.slice(1) ?? agent.fallback;
  if (names === undefined || names.length === 0) return { agent };
  const fault = explainBadNames([agent.name, ...names], agents);
  if (fault !== undefined) return unmatched(`agents: ${fault}`);
  return {
    agent,
    fallbacks: agents
      .filter(({ name }) => names.includes(name))
      .sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name)),
  };
}

/** Why these agents cannot stand in for each other; undefined when they can. @param names of the agents that may run a task, the first one first */
export function explainBadNames(
  names: readonly string[],
  agents: readonly AgentSettings[],
): string | undefined {
  if (names.length < 2) return undefined;
  for (const [index, name] of names.entries()) {
    const agent = agents.find((one) => one.name === name);
    if (agent === undefined) return `${JSON.stringify(name)} is no agent here`;
    if (agent.kind === "remote" || isFunction(agent))
      return `${name} is of kind ${agent.kind}, and only programs of this machine take each other's tasks over`;
    if (names.indexOf(name) < index) return `${name} is named twice`;
  }
  return undefined;
}

/** All agents that may run the task, the first one first. */
export function agentsOf(match: Match): readonly AgentSettings[] {
  return match.agent === undefined ? [] : [match.agent, ...(match.fallbacks ?? [])];
}

/** Parts the names of the agents that may run a task, as in the lane of the task. */
const AGENT_END = "\u0001";

/** The agents that may run the task, as one text: see `readAgentId`. Undefined when none fits. */
export function agentIdOf(match: Match): string | undefined {
  if (match.agent === undefined || match.fallbacks === undefined) return match.agent?.name;
  return agentsOf(match)
    .map(({ name }) => name)
    .join(AGENT_END);
}

/** The same text with this agent at its beginning. */
export function agentFirst(agentId: string | undefined, agent: string): string | undefined {
  if (agentId === undefined) return undefined;
  const names = agentId.split(AGENT_END);
  if (!names.includes(agent)) return agentId;
  return [agent, ...names.filter((name) => name !== agent)].join(AGENT_END);
}

/** The names in a text of `agentIdOf`. */
export function readAgentId(text: string): { agent: string; fallbacks: readonly string[] } {
  if (!text.includes(AGENT_END)) return { agent: text, fallbacks: NO_NAMES };
  const [agent = "", ...fallbacks] = text.split(AGENT_END);
  return { agent, fallbacks };
}

const NO_NAMES: readonly string[] = [];

function matchFirst(
  task: Parameters<typeof matchAgent>[0],
  agents: readonly AgentSettings[],
): Match {
  const named = namedAgent(task, agents);
  if (named !== undefined) return named;
  const fitting = agents.filter((a) => fits(a, task));
  const isPicky = (task.capabilities?.length ?? 0) > 0 || isAgentType(task.type);
  const agent = fitting.find(isDefault) ?? (isPicky ? fitting[0] : undefined);
  if (agent !== undefined) return { agent };
  if (task.capabilities !== undefined && task.capabilities.length > 0)
    return unmatched(`no agent has the capabilities ${task.capabilities.join(", ")}`);
  return unmatched("it has no exec, and no default agent is configured");
}

const ROLES: Readonly<Partial<Record<NodeType, string>>> = {
  plan: "planner",
  task: "implementer",
  verify: "verifier",
  final_verify: "verifier",
  integrate: "integrator",
};

/**
 * Finds the agent of a node of the plan: the built-in one for `exec`, else the node's `agent`, else an agent that has the type
 * of the node's role and all its capabilities, else a default agent that has these capabilities. Default agents come first.
 */
export function resolveAgent(
  node: Pick<RoadmapNode, "type" | "exec" | "agent" | "role" | "capabilities">,
  agents: readonly AgentSettings[],
): Match {
  const match = resolveFirst(node, agents);
  return match.agent === undefined ? match : withFallbacks(match.agent, undefined, agents);
}

function resolveFirst(
  node: Parameters<typeof resolveAgent>[0],
  agents: readonly AgentSettings[],
): Match {
  const named = namedAgent(node, agents);
  if (named !== undefined) return named;
  const able = agents.filter((a) =>
    node.capabilities.every((one) => a.capabilities?.includes(one) === true),
  );
  const type = node.role ?? ROLES[node.type];
  const fitting = able.filter((a) => type !== undefined && a.types?.includes(type) === true);
  const agent = fitting.find(isDefault) ?? fitting[0] ?? able.find(isDefault);
  if (agent !== undefined) return { agent };
  if (node.capabilities.length > 0 && able.length === 0)
    return unmatched(`no agent has the capabilities ${node.capabilities.join(", ")}`);
  return unmatched(
    `it has no exec, and no agent of type ${type ?? node.type} and no default agent is configured`,
  );
}

/** The same, but agents with 0 slots take no node. */
export function resolveOpenAgent(
  node: Parameters<typeof resolveAgent>[0],
  agents: readonly AgentSettings[],
): Match {
  const match = resolveAgent(node, agents);
  if (match.agent === undefined || agentsOf(match).some(({ slots }) => slots !== 0)) return match;
  return unmatched(closedText("agent", match.agent.name));
}

/** Says why no task of a group, an agent or a limit with 0 slots starts, and what to do. */
export function closedText(kind: "group" | "agent" | "limit", name: string): string {
  return `${kind} ${name} has 0 slots: give it some in config.yaml (${kind}s) and restart mailchute run`;
}

type AgentTask = Pick<
  Task,
  "exec" | "agent" | "agents" | "capabilities" | "type" | "verify" | "expect_files"
>;

/**
 * @throws ErrInvalidTask when a task with `exec` names an agent that cannot run it, because mailchute never runs it with another one; when
 *   nothing would judge the work of its agent
 */
export function checkExec(
  task: AgentTask,
  agents: readonly AgentSettings[],
  details: ErrorDetails,
): void {
  const match = task.exec === undefined ? undefined : namedAgent(task, agents);
  if (match === undefined) checkJudged(task, agents, details);
  if (match === undefined || match.agent !== undefined) return;
  const near = suggest(
    task.agent ?? "",
    agents.map(({ name }) => name),
  );
  throw new ErrInvalidTask(match.reason, {
    hint:
      near === undefined || near === task.agent
        ? "leave out agent: a program needs none here"
        : `did you mean ${near}?`,
    ...details,
  });
}

function checkJudged(
  task: AgentTask,
  agents: readonly AgentSettings[],
  details: ErrorDetails,
): void {
  if (!agents.some(({ kind }) => kind === "acp")) return;
  const all = agentsOf(matchAgent(task, agents));
  // The checks of the first agent hold for those that take its tasks over, too.
  const checks = {
    verify: task.verify ?? all[0]?.verify,
    expect_files: task.expect_files ?? all[0]?.expect_files,
  };
  const [why] = all.flatMap((agent) => explainUnjudged(checks, agent) ?? []);
  if (why === undefined) return;
  const hint = `add verify or expect_files to the task or the agent, or trust: end_turn to the agent`;
  throw new ErrInvalidTask(why, { hint, ...details });
}

/** Why the work of this agent on the task could not be judged; undefined when it can. Programs of kind acp say that they are done at a limit, too. */
export function explainUnjudged(
  task: { verify?: readonly unknown[] | undefined; expect_files?: readonly unknown[] | undefined },
  { name, kind, trust, verify, expect_files: files }: AgentSettings,
): string | undefined {
  if (kind !== "acp" || trust === "end_turn") return undefined;
  // `verify: []` in a task means none, whatever the agent has.
  const checks = [task.verify ?? verify, task.expect_files ?? files];
  const isJudged = checks.some((one) => (one?.length ?? 0) > 0);
  return isJudged
    ? undefined
    : `the word of ${name}, of kind acp, is no proof, and nothing checks its work`;
}

/** The agent that `exec` or `agent` names; undefined when neither is given. */
function namedAgent(
  task: Pick<Task, "exec" | "agent" | "agents">,
  agents: readonly AgentSettings[],
): Match | undefined {
  const { exec, agent: name = namesIn(task)?.[0] } = task;
  const isProgram = exec !== undefined;
  if (isProgram && (name === undefined || name === BUILT_IN_EXEC.name))
    return { agent: BUILT_IN_EXEC };
  if (name === undefined) return undefined;
  const agent = agents.find((a) => a.name === name);
  if (agent === undefined) return unmatched(`no agent ${JSON.stringify(name)} is configured`);
  if (!isProgram || agent.kind === "remote") return { agent };
  // The task's own program takes the place of the agent's program.
  if (agent.kind === "exec") return { agent: BUILT_IN_EXEC };
  return unmatched(`agent ${name} is of kind ${agent.kind}, which does not run an exec`);
}

function unmatched(reason: string): Match {
  return { agent: undefined, reason };
}

function isDefault(agent: AgentSettings): boolean {
  return agent.default === true;
}

/** Whether the work makes plans, by the type of the task or of its agent. */
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
