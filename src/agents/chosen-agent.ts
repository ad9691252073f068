/**
 * Which of several agents has a task: `sessions/<id>@agents.json`. The supervisor writes it before each run of such a task starts, and
 * the worker reads it. So the choice is the same for all processes, and survives them.
 */
import { type Match, matchAgent } from "../core/matching.ts";
import type { AgentSettings } from "../core/settings.ts";
import { isText, listOf, oneOf, orElse, type Shape, shape } from "../core/shape.ts";
import type { Task } from "../core/task.ts";
import { Documents } from "../host/document-store.ts";

interface ChosenAgent {
  v: 1;
  agent: string;
  /** The agents that had the task before, the first one first. */
  before: string[];
}

const chosen = shape({
  v: oneOf(1),
  agent: isText,
  before: orElse(listOf(isText), []),
}) as Shape<ChosenAgent>;

const chosenIn = (sessionsDir: string): Documents<ChosenAgent> =>
  new Documents(sessionsDir, "", chosen, { depth: 1 });
const nameOf = (id: string): string => `${id}@agents`;

/**
 * Gives the task to an agent.
 * @param isFirst it has not run since it was submitted
 * @throws a system error
 */
export function giveToAgent(
  sessionsDir: string,
  id: string,
  agent: string,
  isFirst: boolean,
): void {
  const all = chosenIn(sessionsDir);
  const last = isFirst ? undefined : all.read(nameOf(id));
  if (last?.agent === agent) return;
  const before = last === undefined ? [] : [...new Set([...last.before, last.agent])];
  all.replace(nameOf(id), { v: 1, agent, before: before.filter((one) => one !== agent) });
}

/** The agent that has the task now; undefined for a task that only one agent may run. */
export function chosenAgent(sessionsDir: string, id: string): string | undefined {
  return chosenIn(sessionsDir).read(nameOf(id))?.agent;
}

/** The agents that had the task before the one that has it now. */
export function agentsBefore(sessionsDir: string, id: string): readonly string[] {
  return chosenIn(sessionsDir).read(nameOf(id))?.before ?? [];
}

/** Like `matchAgent`, but `agent` is the one that has the task now. @member standsInFor the first agent of the task, if that is another one */
export function matchChosen(
  sessionsDir: string,
  task: Pick<Task, "id"> & Parameters<typeof matchAgent>[0],
  agents: readonly AgentSettings[],
): Match & { standsInFor?: AgentSettings } {
  const match = matchAgent(task, agents);
  if (match.agent === undefined || match.fallbacks === undefined) return match;
  const name = chosenAgent(sessionsDir, task.id);
  const agent = match.fallbacks.find((one) => one.name === name);
  return agent === undefined ? match : { ...match, agent, standsInFor: match.agent };
}
