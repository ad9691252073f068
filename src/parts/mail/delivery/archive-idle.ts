/**
 * Archives spawned agents that have had nothing to do for long, so that others may be spawned. An agent with a task, mail or an open
 * question stays.
 */
import type { Environment } from "../../../supervisor/environment/environment.ts";
import { type AgentRecord, changeAgent, listAgents, livesElsewhere } from "../agents/agents.ts";
import { askedIn } from "../requests/asked.ts";
import { sameScope } from "../scope/scope.ts";
import { firstUnreadOf } from "../store/inbox.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { AgentTasks } from "./agent-tasks.ts";
import { readOffer } from "./offers.ts";
import { wakePrefixOf } from "./wake-rules.ts";

/** @throws a system error: the next call tries again */
export async function archiveIdle(
  env: Pick<Environment, "settings" | "trays" | "tree">,
  folder: MailFolder,
): Promise<void> {
  const { settings, trays, tree } = env;
  const idleMs = settings.spawn.archive_ms;
  if (idleMs === 0) return;
  const wallMs = trays.clock.wallMs();
  const due = listAgents(folder).filter(
    (one) => isAtRest(folder, one, tree.dir) && one.updated_at * 1000 <= wallMs - idleMs,
  );
  if (due.length === 0) return;
  const tasks = new AgentTasks(env, folder);
  const asked = askedIn(tree.dir)
    .readAll()
    .filter(([, one]) => sameScope(one, folder.scope) || sameScope(one, folder.reference));
  for (const agent of due) {
    const { name } = agent;
    const isAsking = asked.some(([, one]) => one.agent === name);
    if (!isAsking && !hasTask(tasks, folder, agent) && !hasMail(folder, name))
      await archive(folder, agent, wallMs);
  }
}

/** True if its first task was submitted, and no run of the agent is known to be active. */
function isAtRest(folder: MailFolder, agent: AgentRecord, stateDir: string): boolean {
  const { spawned, status } = agent;
  const isSubmitted = spawned !== null && spawned.task === null;
  return isSubmitted && status !== "busy" && !livesElsewhere(folder, agent, stateDir);
}

function hasTask(
  tasks: AgentTasks,
  { scope }: MailFolder,
  { inc, name, spawned }: AgentRecord,
): boolean {
  if (tasks.isLive(spawned?.task_id ?? "") || tasks.runOf(name) !== undefined) return true;
  return tasks.findUnclaimed(wakePrefixOf({ ...scope, name }, inc)) !== undefined;
}

function hasMail(folder: MailFolder, name: string): boolean {
  return readOffer(folder, name) !== undefined || firstUnreadOf(folder, name) !== undefined;
}

async function archive(folder: MailFolder, agent: AgentRecord, wallMs: number): Promise<void> {
  const { inc, name } = agent;
  const at = Math.floor(wallMs / 1000);
  const isSame = (one: AgentRecord): boolean =>
    one.inc === inc && one.archived_at === null && one.updated_at === agent.updated_at;
  await changeAgent(folder, name, (one) => (isSame(one) ? { archived_at: at } : undefined), wallMs);
  // An agent that wrote to it just before could not know this. So one with mail is opened again.
  if (!hasMail(folder, name)) return;
  const isOurs = (one: AgentRecord): boolean => one.inc === inc && one.archived_at === at;
  await changeAgent(
    folder,
    name,
    (one) => (isOurs(one) ? { archived_at: null } : undefined),
    wallMs,
  );
}
