/** `release`: a person passes on held mail. It is sent once, as a new message. */
import { defineCommand } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { ErrInvalidTransition, ErrTaskNotFound } from "../../../core/errors.ts";
import { HUMAN } from "../scope/scope.ts";
import { send } from "../send/send.ts";
import { textOf } from "../store/blobs.ts";
import { agentsIn, isHeld } from "../store/inbox.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { MessageReader, type Numbered } from "../store/read-messages.ts";
import { openMail, SCOPE_OPTION } from "./open-mail.ts";

export const command = defineCommand({
  usage: "ID…",
  args: { min: 1, max: Number.POSITIVE_INFINITY },
  details: [
    "ID is a message of another project that `mail` shows as held. Its agents get it as a message of yours, with its sender and its text. Exit code 3: there is no such message, 4: it is not held.",
  ],
  options: SCOPE_OPTION,
  async run(ctx) {
    const { folder, store } = await openMail(ctx, ctx.options.scope);
    const messages = ctx.positionals.map((id) => heldOf(folder, id));
    const sent = messages.map((message) => {
      const { branch, from_agent: from, id, project } = message;
      const text = textOf(folder, message) ?? "(its text is missing)";
      return send(
        store,
        {
          id: `release.${id}`,
          scope: folder.scope,
          from: HUMAN,
          via: "cli",
          to: agentsIn(folder, message),
          text: `Passed on: ${project}:${branch}:${from} wrote (${id}):\n\n${text}`,
          replyTo: id,
          // Mentions in the text belong to the scope of the held message.
          mentions: [],
        },
        Date.now(),
      );
    });
    if (ctx.json) ctx.out.json({ scope: folder.scope, released: sent });
    else for (const { id, to } of sent) ctx.out.line(`message ${id} to ${to.join(", ")}: recorded`);
    return EXIT.ok;
  },
});

/** @throws ErrTaskNotFound, ErrInvalidTransition */
function heldOf(folder: MailFolder, id: string): Numbered {
  const found = [...new MessageReader(folder).next({ any: [JSON.stringify(id)] })].find(
    (message) => message.id === id,
  );
  const details = { id, phase: "release", hint: "`mailchute mail` shows what is held" };
  if (found === undefined)
    throw new ErrTaskNotFound(`there is no message ${JSON.stringify(id)} in this scope`, details);
  if (!isHeld(folder, found))
    throw new ErrInvalidTransition(`the message ${JSON.stringify(id)} is not held`, details);
  return found;
}
