/** `say TEXT --to NAME`: sends a message to agents or people of a scope. */
import { ErrUsage } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { askOutside } from "../../../cli/shell/inside-run.ts";
import type { MessageSender, SayContext } from "../../../cli/shell/message-sender.ts";
import { compact } from "../../../core/compact.ts";
import { newId } from "../../../mailbox/files/random.ts";
import { readAgent } from "../agents/agents.ts";
import { REQUEST } from "../requests/taker.ts";
import { findMentions } from "../scope/mentions.ts";
import { formatAddress, HUMAN, parseAddress, type Scope } from "../scope/scope.ts";
import { type Draft, type Sent, send } from "../send/send.ts";
import { MailFolder, type MailStore } from "../store/mail-folder.ts";
import { TIMES } from "../store/message.ts";
import { listSegments } from "../store/segments.ts";
import { MAIL_STATES, type MailState, waitForMail } from "./mail-state.ts";
import { callerOf, isInRun, openMail, wayOf } from "./open-mail.ts";

/** A command writes at most this many indexes of full files. */
const INDEXED_MAX = 2;

/** `isLeft`: the message is in the folder of the run, and the worker will record it. */
type Told = Sent & { isLeft?: boolean };

export const sayTo: MessageSender = async (ctx) => {
  const { store, folder, drop } = await openMail(ctx, ctx.options.scope);
  const { scope } = folder;
  checkText(ctx, scope);
  const sent: Told =
    drop === undefined
      ? send(store, draftOf(ctx, scope), Date.now())
      : await sendOutside(ctx, drop);
  const { id, to, isNew, isLeft = false } = sent;
  const wanted = stateOf(ctx.options.wait);
  const waited =
    isLeft || wanted === "recorded"
      ? undefined
      : await waitForMail(ctx, store, { id, scope, to, wanted });
  const { hasReached = true, states } = waited ?? {};
  const state = isLeft ? "left" : (waited?.state ?? "recorded");
  if (ctx.json) ctx.out.json({ id, scope, to, state, is_new: isNew, ...compact({ states }) });
  else {
    const isOld = !isNew && state === "recorded";
    const shown = isLeft
      ? "left for the worker of this run"
      : isOld
        ? "was recorded before"
        : // The word of `say ID`. JSON keeps its own.
          state.replace("seen", "read");
    ctx.out.line(`message ${id} to ${to.join(", ")}: ${shown}`);
    const absent = sent.to.filter((address) => !isThere(store, scope, address));
    if (absent.length > 0)
      ctx.out.note(`kept for an agent of that name, which is not there: ${absent.join(", ")}`);
  }
  if (drop === undefined) await tryIndex(folder);
  return hasReached ? EXIT.ok : EXIT.waitTimedOut;
};

/** Writes missing indexes after the answer. If this fails, the next command or supervisor tries again. */
async function tryIndex(folder: MailFolder): Promise<void> {
  try {
    const isMissing = listSegments(folder)
      .slice(0, -1)
      .some(({ isIndexed }) => !isIndexed);
    if (!isMissing) return;
    const { indexFull } = await import("../store/write-indexes.ts");
    await indexFull(folder, INDEXED_MAX);
  } catch {
    // The disk may be full.
  }
}

function stateOf(wanted: string | undefined): MailState {
  return wanted === "read" ? "seen" : (MAIL_STATES.find((state) => state === wanted) ?? "recorded");
}

/** In a run: lets the worker outside send the message in the name of the run's agent. @throws MailchuteError when it is refused */
async function sendOutside(ctx: SayContext, drop: string): Promise<Told> {
  const { options, positionals } = ctx;
  if (options.scope !== undefined)
    throw new ErrUsage(
      "a run speaks in the scope of its state tree",
      "leave out --scope, and write to others as PROJECT:BRANCH:NAME",
    );
  const { from, thread, to, when, "needs-human": isForHuman, "reply-to": replyTo } = options;
  const id = options.id ?? newId(Date.now(), "m");
  const body = compact({
    id,
    from_agent: from,
    to,
    content: positionals.join(" "),
    thread,
    reply_to: replyTo,
    when,
    requires_human: isForHuman,
  });
  // Each call writes a new file, because a message id may be sent again.
  const answer = await askOutside(ctx, drop, newId(Date.now(), "r"), { ending: REQUEST, body });
  if (answer === undefined) return { id, to, isNew: true, isLeft: true };
  return { id, to: answer["to"] as string[], isNew: answer["is_new"] === true };
}

/** @throws ErrUsage */
function checkText({ options, positionals }: SayContext, scope: Scope): void {
  const text = positionals.join(" ");
  if (text.trim() === "") throw new ErrUsage("there is no text");
  if (options.to.length === 0 && findMentions(text, scope).length === 0)
    throw new ErrUsage(
      "it is not said to whom",
      "say it to a task: say ID TEXT; or to an agent: --to NAME, or @NAME in the text",
    );
}

/** @throws ErrUsage */
function draftOf({ env, options, positionals }: SayContext, scope: Scope): Draft {
  const text = positionals.join(" ");
  const { id, thread, "reply-to": replyTo } = options;
  return {
    scope,
    from: callerOf(env, options.from),
    via: wayOf(env),
    to: options.to,
    text,
    requiresHuman: options["needs-human"],
    ...compact({
      id,
      replyTo,
      thread,
      when: TIMES.find((time) => time === options.when),
      hops: isInRun(env) ? hopsOf(env) : undefined,
    }),
  };
}

/** How many wake-ups led to this run; 0 outside of runs. */
function hopsOf(env: NodeJS.ProcessEnv): number {
  const hops = Number(env["MAILCHUTE_HOPS"]);
  return Number.isInteger(hops) && hops > 0 ? hops : 0;
}

function isThere(store: MailStore, scope: Scope, text: string): boolean {
  const address = parseAddress(text, scope);
  if (address === undefined || address.name === HUMAN) return true;
  const known = readAgent(new MailFolder(store, address, true), address.name);
  return known !== undefined && known.archived_at === null && formatAddress(address) === text;
}
