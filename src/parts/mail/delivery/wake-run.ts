/**
 * The run of a wake-up. While its task waited, the mail may have been read in another way. When nothing is unread then, the task ends
 * without a start of the program.
 */
import { dirname } from "node:path";
import { SayBox } from "../../../agents/stream/say-box.ts";
import { messageOf } from "../../../core/errors.ts";
import { type AttemptOutcome, hindered } from "../../../core/outcome.ts";
import type { AssignedAgent, AttemptTools } from "../../../worker/runner.ts";
import { agentOfTask } from "../agents/name-of-run.ts";
import { NOTHING_UNREAD } from "../exits/exit-message.ts";
import { findScope } from "../scope/find-scope.ts";
import { unreadOf } from "../store/inbox.ts";
import { MailFolder, storeOf } from "../store/mail-folder.ts";
import { isOffer } from "./offers.ts";

export async function runWake(
  tools: Pick<AttemptTools, "settings" | "tree">,
  assigned: AssignedAgent,
): Promise<AttemptOutcome> {
  let isNeeded: boolean;
  try {
    isNeeded = await hasReason(tools, assigned);
  } catch (error) {
    return hindered(`cannot read its mail: ${messageOf(error)}`);
  }
  if (isNeeded) return await assigned.agent.run(assigned.assignment);
  return {
    kind: "completed",
    output: null,
    verdict: "pass",
    verdictReason: NOTHING_UNREAD,
    exitCode: null,
  };
}

async function hasReason(
  { settings, tree }: Pick<AttemptTools, "settings" | "tree">,
  { assignment: { task } }: Pick<AssignedAgent, "assignment">,
): Promise<boolean> {
  // A program that was given something may be in the middle of its work. And a person may have said something to this task.
  if (!new SayBox(tree.dir, task.id, false).isUntouched(isOffer)) return true;
  const store = storeOf(settings, tree.dir, process.env);
  const folder = new MailFolder(store, await findScope(dirname(tree.dir)));
  return unreadOf(folder, agentOfTask(folder, task, settings.agents)).messages.length > 0;
}
