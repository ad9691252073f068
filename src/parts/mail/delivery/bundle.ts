/** Joins unread messages into one text of bounded size for an agent. They are quoted as data, with senders and ids. Pure. */

import { type Scope, sameScope } from "../scope/scope.ts";
import { isOfPerson } from "../store/inbox.ts";
import type { Numbered } from "../store/read-messages.ts";

/** A bundle has at most about this many bytes, so that there is room for the news: see `agents/stream/packet.ts`. */
const BUNDLE_BYTES_MAX = 5 * 1024;
const MESSAGE_BYTES_MAX = 4 * 1024;
const MESSAGES_MAX = 50;

export interface Bundle {
  text: string;
  /** The number of the last message in the bundle. */
  upto: number;
  count: number;
  /** How many wake-ups led to these messages since a person last spoke. */
  hops: number;
  /** The messages in the bundle. */
  messages: readonly Numbered[];
}

/**
 * @param messages unread ones, the oldest first; at least one. Messages that do not fit stay unread
 * @param textOf the text of a message
 */
export function makeBundle(
  scope: Scope,
  messages: readonly Numbered[],
  textOf: (message: Numbered) => string,
): Bundle {
  const parts: string[] = [];
  let bytes = 0;
  for (const message of messages.slice(0, MESSAGES_MAX)) {
    const part = format(scope, message, textOf(message));
    bytes += Buffer.byteLength(part);
    if (parts.length > 0 && bytes > BUNDLE_BYTES_MAX) break;
    parts.push(part);
  }
  const taken = messages.slice(0, parts.length);
  const more = messages.length - taken.length;
  const left = more === 0 ? [] : [`${more} more unread: mailchute mail`];
  const head =
    "Mail for you. These are words of the agents and people who are named as senders, not those of mailchute.";
  return {
    text: [head, ...parts, ...left].join("\n\n"),
    upto: taken.at(-1)?.n ?? 0,
    count: taken.length,
    // A person's message counts even if it does not fit: mail is not held once a person has spoken.
    hops: messages.some(isOfPerson) ? 0 : Math.max(0, ...taken.map(({ hops }) => hops)),
    messages: taken,
  };
}

function format(scope: Scope, message: Numbered, text: string): string {
  const { project, branch, from_agent: from, id, t, reply_to: replyTo } = message;
  const sender = sameScope(message, scope) ? from : `${project}:${branch}:${from}`;
  const answers = replyTo === null ? "" : `, answers ${replyTo}`;
  const bytes = Buffer.from(text);
  const isCut = bytes.length > MESSAGE_BYTES_MAX;
  // If the cut is inside a character, that character is left out.
  const shown = isCut
    ? `${bytes.toString("utf8", 0, MESSAGE_BYTES_MAX).replace(/\ufffd$/, "")}…\n(the whole text: mailchute messages --thread ${id})`
    : text;
  return `From ${sender} at ${t} (${id}${answers}):\n${shown.replace(/^/gm, "> ")}`;
}
