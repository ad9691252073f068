/**
 * Runs a wake-up. While its task waited, the agent may have read the mail in another way. If no mail is unread, the task ends without
 * starting the agent.
 */
import { TaskMessages } from "../../../agents/stream/task-messages.ts";
import { messageOf } from "../../../core/errors.ts";
import { type AttemptOutcome, deferred } from "../../../core/outcome.ts";
import type { AssignedAgent, AttemptTools } from "../../../worker/runner.ts";
import { readAgent } from "../agents/agents.ts";
import { agentOfTask } from "../agents/name-of-run.ts";
import { IS_ARCHIVED, NOTHING_UNREAD } from "../exits/exit-message.ts";
import { openOwn } from "../roots/open-own.ts";
import { unreadOf } from "../store/inbox.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { isOffer } from "./offers.ts";
import { wakePrefixOf } from "./wake-rules.ts";

export async function runWake(
  tools: Pick<AttemptTools, "settings" | "tree">,
  assigned: AssignedAgent,
): Promise<AttemptOutcome> {
  let verdictReason: string | undefined;
  try {
    verdictReason = await whyNeedless(tools, assigned);
  } catch (error) {
    return deferred(`cannot read its mail: ${messageOf(error)}`);
  }
  if (verdictReason === undefined) return await assigned.agent.run(assigned.assignment);
  return {
    kind: "completed",
    output: null,
    verdict: "pass",
    verdictReason,
    exitCode: null,
  };
}

/** Why the agent need not be started; undefined when it must be started. */
async function whyNeedless(
  { settings, tree }: Pick<AttemptTools, "settings" | "tree">,
  { assignment: { task } }: Pick<AssignedAgent, "assignment">,
): Promise<string | undefined> {
  // If an agent has received a message of this task, it may be in the middle of its work. A person may also have written to the task.
  if (!new TaskMessages(tree.dir, task.id, false).isUntouched(isOffer)) return undefined;
  const { folder } = await openOwn(settings, tree.dir, process.env);
  const name = agentOfTask(folder, task, settings.agents);
  if (isArchived(folder, name, task.id)) return IS_ARCHIVED;
  return unreadOf(folder, name).messages.length > 0 ? undefined : NOTHING_UNREAD;
}

/** True if the agent of this wake-up is archived, even if another agent has its name now. */
function isArchived(folder: MailFolder, name: string, id: string): boolean {
  const agent = readAgent(folder, name);
  if (agent === undefined) return false;
  const isOther = !id.startsWith(wakePrefixOf({ ...folder.scope, name }, agent.inc));
  return isOther || agent.archived_at !== null;
}
