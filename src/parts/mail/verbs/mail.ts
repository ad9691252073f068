/** `mail`: prints the unread mail of an agent or of the caller. With `--ack` it marks the mail as read. */
import { defineCommand, ErrUsage } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { askOutside } from "../../../cli/shell/inside-run.ts";
import { newId } from "../../../mailbox/files/random.ts";
import { REQUEST } from "../requests/taker.ts";
import { HUMAN } from "../scope/scope.ts";
import { moveCursor } from "../store/cursors.ts";
import { unreadOf } from "../store/inbox.ts";
import { callerOf, documentOf, nameIn, openMail, SCOPE_OPTION, wayOf } from "./open-mail.ts";
import { Printer } from "./printer.ts";

export const command = defineCommand({
  usage: "[NAME] [--ack]",
  args: { min: 0, max: 1 },
  // If the reader of the output is gone, it has not read everything: then no mail is marked.
  endsWithReader: true,
  details: [
    "NAME is an agent of the scope; left out, it is you (human), or in a run its agent. With --ack what was printed counts as read once all of it is printed. A message that comes in between stays unread.",
  ],
  examples: ["mail", "mail ann --json", "mail --ack"],
  options: {
    ...SCOPE_OPTION,
    ack: { type: "flag", help: "mark what is printed as read" },
  },
  async run(ctx) {
    const { folder, drop } = await openMail(ctx, ctx.options.scope);
    const [named] = ctx.positionals;
    const reader = named === undefined ? callerOf(ctx.env) : nameIn(folder.scope, named);
    if (reader === HUMAN && wayOf(ctx.env) === "mcp")
      throw new ErrUsage("an agent cannot speak as human, nor read a person's mail");
    const { ack } = ctx.options;
    const { messages, upto } = unreadOf(folder, reader);
    if (ctx.json) {
      const documents = messages.map((message) => documentOf(folder, message));
      ctx.out.json({ scope: folder.scope, reader, messages: documents, upto });
    } else {
      const printer = new Printer(ctx, folder);
      for (const message of messages) {
        const written = printer.add(message);
        if (written !== undefined) await written;
      }
      await printer.flush();
      if (messages.length === 0) ctx.out.line("no unread mail");
    }
    if (!ack || messages.length === 0) return EXIT.ok;
    // Resolves once all earlier output is written.
    await ctx.out.raw("");
    if (drop === undefined) moveCursor(folder, reader, upto, { by: "ack", atMs: Date.now() });
    else {
      const request = { ending: REQUEST, body: { ack: upto, reader } };
      await askOutside(ctx, drop, newId(Date.now(), "r"), request);
    }
    return EXIT.ok;
  },
});
