/** The name under which a run speaks. Pure. */
import { matchAgent } from "../../../core/matching.ts";
import type { Settings } from "../../../core/settings.ts";
import type { Task } from "../../../core/task.ts";
import { explainBadName, HUMAN } from "../scope/scope.ts";

/** The agent of its task, in lower case. @returns why it has no name to speak under, when it has none */
export function nameOfRun(
  task: Task,
  { agents }: Pick<Settings, "agents">,
): { name: string } | { fault: string } {
  const name = matchAgent(task, agents).agent?.name.toLowerCase() ?? "";
  const fault = name === HUMAN ? `${HUMAN} is the name of a person` : explainBadName(name);
  return fault === undefined ? { name } : { fault };
}
