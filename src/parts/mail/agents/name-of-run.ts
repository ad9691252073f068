/** Finds the name under which a run sends mail. */
import { matchAgent } from "../../../core/matching.ts";
import type { AgentSettings, Settings } from "../../../core/settings.ts";
import type { Task } from "../../../core/task.ts";
import { explainBadName, HUMAN } from "../scope/scope.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { readAgent } from "./agents.ts";

/**
 * The agent that runs a task: the agent of the settings that the task is matched to, or one that was spawned from that agent. A task
 * names a spawned agent with `MAILCHUTE_AGENT`. The name counts only if the record of that agent agrees.
 * @returns its name in lower case; "" when no agent fits
 */
export function agentOfTask(
  folder: MailFolder,
  task: Task,
  agents: readonly AgentSettings[],
): string {
  const matched = matchAgent(task, agents).agent?.name.toLowerCase() ?? "";
  const told = task.env?.["MAILCHUTE_AGENT"]?.toLowerCase() ?? matched;
  if (told === matched || matched === "") return matched;
  return readAgent(folder, told)?.from === matched ? told : matched;
}

/** The agent of the run's task, in lower case. @returns `fault`: why the run has no name */
export function nameOfRun(
  folder: MailFolder,
  task: Task,
  { agents }: Pick<Settings, "agents">,
): { name: string } | { fault: string } {
  const name = agentOfTask(folder, task, agents);
  const fault = name === HUMAN ? `${HUMAN} is the name of a person` : explainBadName(name);
  return fault === undefined ? { name } : { fault };
}
