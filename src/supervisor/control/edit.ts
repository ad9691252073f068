/**
 * The command `edit`: replaces the text of a waiting task. The supervisor accepts no task between the change and its new place in
 * the queue.
 */
import { ErrInvalidTransition } from "../../core/errors.ts";
import { inboxName } from "../../core/names.ts";
import { editingSequence } from "../../host/identity.ts";
import { applyEdit, stageEdit } from "../../mailbox/submit/edit.ts";
import type { CommandContext, CommandHandler } from "./command-context.ts";

/** A second call has no effect: a task that already has the new text stays as it is. */
export const edit: CommandHandler = async (context, inHand) => {
  const { env, queue } = context;
  const { node: id = "", text = "", was = "" } = inHand.command.args;
  await refuseNode(context, id);
  const staged = await stageEdit(env.trays, { id, bytes: Buffer.from(text, "utf8"), was });
  const isNew = applyEdit(env.trays, staged, newOwner());
  // The task must not keep its old place in the queue: the scanner reads the file again.
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
