/** What `say TEXT --to NAME` does: it sends a message to agents, or to people, of a scope. */
import { ErrUsage } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import type { MessageSender, SayContext } from "../../../cli/shell/message-sender.ts";
import { compact } from "../../../core/compact.ts";
import { readAgent } from "../agents/agents.ts";
import { findMentions } from "../scope/mentions.ts";
import { formatAddress, HUMAN, parseAddress, type Scope } from "../scope/scope.ts";
import { type Draft, send } from "../send/send.ts";
import { MailFolder, type MailStore } from "../store/mail-folder.ts";
import { callerOf, isInRun, openMail } from "./open-mail.ts";

export const sayTo: MessageSender = async (ctx) => {
  const { store, folder } = await openMail(ctx, ctx.options.scope);
  const { scope } = folder;
  const sent = send(store, draftOf(ctx, scope), Date.now());
  if (ctx.json)
    ctx.out.json({ id: sent.id, scope, to: sent.to, state: "recorded", is_new: sent.isNew });
  else {
    const state = sent.isNew ? "recorded" : "was recorded before";
    ctx.out.line(`message ${sent.id} to ${sent.to.join(", ")}: ${state}`);
    const absent = sent.to.filter((address) => !isThere(store, scope, address));
    if (absent.length > 0)
      ctx.out.note(`kept for an agent of that name, which is not there: ${absent.join(", ")}`);
  }
  return EXIT.ok;
};

/** @throws ErrUsage */
function draftOf({ env, options, positionals }: SayContext, scope: Scope): Draft {
  const text = positionals.join(" ");
  if (text.trim() === "") throw new ErrUsage("there is no text");
  if (options.to.length === 0 && findMentions(text, scope).length === 0)
    throw new ErrUsage(
      "it is not said to whom",
      "say it to a task: say ID TEXT; or to an agent: --to NAME, or @NAME in the text",
    );
  const { id, thread, "reply-to": replyTo } = options;
  return {
    scope,
    from: callerOf(env, options.from),
    via: isInRun(env) ? "run" : "cli",
    to: options.to,
    text,
    requiresHuman: options["needs-human"],
    ...compact({ id, replyTo, thread, hops: isInRun(env) ? hopsOf(env) : undefined }),
  };
}

/** How many wake-ups led to this run. */
function hopsOf(env: NodeJS.ProcessEnv): number {
  const hops = Number(env["MAILCHUTE_HOPS"]);
  return Number.isInteger(hops) && hops > 0 ? hops : 0;
}

function isThere(store: MailStore, scope: Scope, text: string): boolean {
  const address = parseAddress(text, scope);
  if (address === undefined || address.name === HUMAN) return true;
  const known = readAgent(new MailFolder(store, address), address.name);
  return known !== undefined && known.archived_at === null && formatAddress(address) === text;
}
