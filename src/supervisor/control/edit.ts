/** The command `edit`: replaces the text of a waiting task. Here no task can be accepted between the change and the new place in the queue. */
import { ErrInvalidTransition } from "../../core/errors.ts";
import { inboxName } from "../../core/names.ts";
import { editingSequence } from "../../host/identity.ts";
import { applyEdit, stageEdit } from "../../mailbox/submit/edit.ts";
import type { CommandContext, CommandHandler } from "./command-context.ts";

/** Twice is the same as once: a task that has the new text already is left as it is. */
export const edit: CommandHandler = async (context, inHand) => {
  const { env, queue } = context;
  const { node: id = "", text = "", was = "" } = inHand.command.args;
  await refuseNode(context, id);
  const staged = await stageEdit(env.trays, { id, bytes: Buffer.from(text, "utf8"), was });
  const isNew = applyEdit(env.trays, staged, newOwner());
  // It waits at its old place until the scanner has read it anew.
  if (queue.backlog.get(id)?.tray === "inbox") queue.backlog.remove(id);
  env.facts.emit("inbox:written", inboxName({ id }));
  env.wake();
  return { edited: id, changed: isNew };
};

const newOwner = editingSequence();

async function refuseNode({ parts }: CommandContext, id: string): Promise<void> {
  await parts.started;
  if (parts.ownerOf(id) !== undefined)
    throw new ErrInvalidTransition(`${id} is a node of the plan`, {
      id,
      hint: "change it in the plan",
    });
}
