/** Reads from the files how far a message has come to each recipient, and waits until it has come far enough. Writes nothing. */
import { setTimeout as pause } from "node:timers/promises";
import { TaskMessages } from "../../../agents/stream/task-messages.ts";
import type { SayContext } from "../../../cli/shell/message-sender.ts";
import { safe } from "../../../text/render.ts";
import { readAgent } from "../agents/agents.ts";
import { readOffer } from "../delivery/offers.ts";
import { HUMAN, parseAddress, type Scope } from "../scope/scope.ts";
import { readCursor } from "../store/cursors.ts";
import { isHeld } from "../store/inbox.ts";
import { MailFolder, type MailStore } from "../store/mail-folder.ts";
import { MessageReader, type Numbered } from "../store/read-messages.ts";
import { whyItWaits } from "./why.ts";

/** `offered`: a run was given the message. `seen`: there is proof that the model has read it, or its reader has acknowledged it. */
export const MAIL_STATES = ["recorded", "offered", "seen"] as const;
export type MailState = (typeof MAIL_STATES)[number];

interface Wait {
  id: string;
  scope: Scope;
  /** Addresses. */
  to: readonly string[];
  wanted: MailState;
}

const LOOK_MS = 100;
/** After this long, or when the time limit is over, the command prints why the message waits (ms). */
const TELL_MS = 1000;

/**
 * Waits until the message has reached the wanted state at all recipients.
 * @returns the state that all have reached; `hasReached`: false when the time limit ended the wait
 */
export async function waitForMail(
  ctx: SayContext,
  store: MailStore,
  { id, scope, to, wanted }: Wait,
): Promise<{ state: MailState; states: Record<string, MailState>; hasReached: boolean }> {
  const beganMs = performance.now();
  const untilMs = beganMs + (ctx.options.timeout ?? Number.POSITIVE_INFINITY);
  const readers = to.map((address) => openReader(store, scope, id, address));
  for (let isTold = false; ; ) {
    const states = readers.map(stateOf);
    const state = MAIL_STATES[Math.min(...states.map(rankOf))] ?? "recorded";
    const hasReached = rankOf(state) >= rankOf(wanted);
    const nowMs = performance.now();
    const isOver = hasReached || nowMs > untilMs;
    if (!isTold && !hasReached && (isOver || nowMs - beganMs > TELL_MS)) {
      isTold = true;
      for (const [at, reader] of readers.entries())
        if (rankOf(states[at] ?? "recorded") < rankOf(wanted)) await tellWhy(ctx, reader);
    }
    if (isOver) {
      const entries = to.map((address, at) => [address, states[at] ?? "recorded"] as const);
      return { state, states: Object.fromEntries(entries), hasReached };
    }
    await pause(LOOK_MS);
  }
}

interface Reader {
  folder: MailFolder;
  name: string;
  /** The message in the scope of this recipient; undefined when it was removed there. */
  message: Numbered | undefined;
}

function openReader(store: MailStore, scope: Scope, id: string, address: string): Reader {
  const { branch, name, project } = parseAddress(address, scope) ?? { ...scope, name: address };
  const folder = new MailFolder(store, { project, branch }, true);
  const filter = { any: [JSON.stringify(id)] };
  const [message] = new MessageReader(folder).lastOf(1, (one) => one.id === id, filter);
  return { folder, name, message };
}

function stateOf({ folder, message, name }: Reader): MailState {
  if (message === undefined) return "recorded";
  if (readCursor(folder, name).upto >= message.n) return "seen";
  const offer = readOffer(folder, name);
  const home = readAgent(folder, name)?.home ?? undefined;
  if (offer === undefined || offer.upto < message.n || offer.say === null || home === undefined)
    return "recorded";
  const state = new TaskMessages(home, offer.task, false).stateOf(offer.say);
  return state === "read" ? "seen" : state;
}

function rankOf(state: MailState): number {
  return MAIL_STATES.indexOf(state);
}

async function tellWhy(ctx: SayContext, { folder, message, name }: Reader): Promise<void> {
  if (ctx.json) return;
  const note = (why: string): void => ctx.out.note(`${safe(name)}: ${safe(why)}`);
  if (name === HUMAN) return note("a person reads it with: mailchute mail --ack");
  if (message !== undefined && isHeld(folder, message))
    return note(`it is held for a person: mailchute release ${message.id}`);
  const agent = readAgent(folder, name);
  if (agent === undefined) return note("there is no agent of this name, so it waits for one");
  for (const why of await whyItWaits(ctx, folder, agent)) note(why);
}
