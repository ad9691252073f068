/** Sends a message: records it in the scope of its sender, and in the scope of each recipient. */
import { ErrInvalidMessage } from "../../../core/errors.ts";
import { isoTime } from "../../../core/iso-time.ts";
import { newId } from "../../../mailbox/files/random.ts";
import { readAgent } from "../agents/agents.ts";
import { findMentions } from "../scope/mentions.ts";
import {
  explainBadScope,
  formatAddress,
  parseAddress,
  type Scope,
  sameScope,
} from "../scope/scope.ts";
import { CONTENT_BYTES_MAX, keepText } from "../store/blobs.ts";
import { MailFolder, type MailStore } from "../store/mail-folder.ts";
import { type Message, recipientsOf, type Way, type When } from "../store/message.ts";
import { appendMessage } from "./append-message.ts";

export interface Draft {
  /** Left out: a new id. A message with the same id is recorded once. */
  id?: string;
  scope: Scope;
  from: string;
  via: Way;
  /** Names or addresses. */
  to: readonly string[];
  text: string;
  type?: string;
  thread?: string;
  replyTo?: string;
  when?: When;
  requiresHuman?: boolean;
  /** How many wake-ups led to it since a person last spoke. */
  hops?: number;
  /** Ids of the messages that led to it. */
  cause?: readonly string[];
  /** Left out: the mentions in the text. */
  mentions?: readonly string[];
}

export interface Sent {
  id: string;
  /** False: the message was recorded already. */
  isNew: boolean;
  /** The addresses of the recipients. */
  to: string[];
}

const ID_CHARS_MAX = 128;
/** A message names at most this many agents. */
const RECIPIENTS_MAX = 64;

/**
 * Once this returns, the message is recorded in all its scopes, as safely as the durability says. After a crash, send it again with the
 * same id: scopes that have it already stay as they are.
 * @throws ErrInvalidMessage, ErrMailboxDir, a system error
 */
export function send(store: MailStore, draft: Draft, wallMs: number): Sent {
  const id = draft.id ?? newId(wallMs, "m");
  const message = draftToMessage({ ...draft, id }, wallMs);
  const own = new MailFolder(store, draft.scope);
  message.from_inc = incOf(own, draft.from);
  const folders = new Map(recipientsOf(message).map((one) => [one, folderFor(store, own, one)]));
  let isNew = false;
  // All folders are known before the first one gets the message: an ambiguous address is refused whole.
  for (const folder of new Map([own, ...folders.values()].map((one) => [one.dir, one])).values()) {
    const record = {
      ...asSeenFrom(folder, own, message, folders),
      ...keepText(folder, draft.text),
    };
    const known = appendMessage(folder, record, draft.id === undefined);
    if (known === undefined) isNew = true;
    else if (!isSame(known, record))
      throw new ErrInvalidMessage(`there is another message ${JSON.stringify(id)}`, {
        id,
        phase: "send",
        hint: "choose another id, or leave it out to get a new one",
      });
  }
  return { id, isNew, to: recipientsOf(asSeenFrom(own, own, message, folders)) };
}

/** The incarnation of the sender. Null for people, and for programs that are no agent of the scope. */
function incOf(own: MailFolder, from: string): number | null {
  return readAgent(own, from.toLowerCase())?.inc ?? null;
}

/** The folder of a recipient's scope. @throws ErrInvalidMessage for an ambiguous address */
function folderFor(store: MailStore, own: MailFolder, address: string): MailFolder {
  const scope = parseAddress(address, own.scope) ?? own.scope;
  return sameScope(scope, own.scope) ? own : new MailFolder(store, scope);
}

/** The message with the names that its sender and its recipients have in this folder. */
function asSeenFrom(
  folder: MailFolder,
  own: MailFolder,
  message: Message,
  folders: ReadonlyMap<string, MailFolder>,
): Message {
  const rename = (address: string): string => {
    const name = parseAddress(address, own.scope)?.name ?? address;
    return formatAddress({ ...folder.nameOf(folders.get(address) ?? own), name });
  };
  const to = [...new Set(message.to.map(rename))];
  const mentions = [...new Set(message.mentions.map(rename))];
  return { ...message, ...folder.nameOf(own), to, mentions };
}

/** @throws ErrInvalidMessage */
function draftToMessage(draft: Draft & { id: string }, wallMs: number): Message {
  const { id, scope, from, text } = draft;
  const fail = (fault: string, hint: string): never => {
    throw new ErrInvalidMessage(fault, { id, phase: "send", hint });
  };
  if (id.length > ID_CHARS_MAX || !/^[A-Za-z0-9][A-Za-z0-9._:@~-]*$/.test(id))
    fail(
      `${JSON.stringify(id.slice(0, ID_CHARS_MAX))} is no id of a message`,
      `an id has at most ${ID_CHARS_MAX} letters, digits, '.', '_', ':', '@', '~' and '-'`,
    );
  const badScope = explainBadScope(scope);
  if (badScope !== undefined) fail(`this is no scope: ${badScope}`, "check project and branch");
  if (text.trim() === "") fail("there is no text", "say something");
  const bytes = Buffer.byteLength(text);
  if (bytes > CONTENT_BYTES_MAX)
    fail(
      `the text has ${bytes} bytes, and a message has at most ${CONTENT_BYTES_MAX}`,
      "name a file in it",
    );
  const to = draft.to.map((name) => addressOf(name, scope, id));
  // A message of mailchute only quotes an agent, so names in the quote are no recipients.
  const mentions = draft.via === "system" ? [] : [...(draft.mentions ?? findMentions(text, scope))];
  if (recipientsOf({ to, mentions }).length > RECIPIENTS_MAX)
    fail(`the message names more than ${RECIPIENTS_MAX} agents`, "send it in parts");
  const sender = parseAddress(from, scope);
  if (sender === undefined || from.includes(":"))
    fail(`${JSON.stringify(from.slice(0, ID_CHARS_MAX))} is no name of a sender`, NAME_HINT);
  return {
    v: 1,
    id,
    ...scope,
    from_agent: from.toLowerCase(),
    from_inc: null,
    via: draft.via,
    to: [...new Set(to)],
    type: draft.type ?? "say",
    content: "",
    content_ref: null,
    mentions,
    thread: draft.thread ?? null,
    reply_to: draft.replyTo ?? null,
    hops: draft.hops ?? 0,
    cause: [...(draft.cause ?? [])],
    when: draft.when ?? "next",
    requires_human: draft.requiresHuman === true,
    created_at: Math.floor(wallMs / 1000),
    t: isoTime(wallMs),
  };
}

const NAME_HINT =
  "a name has letters, digits, '.', '_', '/' and '-'; with its scope it is BRANCH:NAME or PROJECT:BRANCH:NAME";

/** @throws ErrInvalidMessage */
export function addressOf(text: string, scope: Scope, id?: string): string {
  const address = parseAddress(text.replace(/^@/, ""), scope);
  if (address !== undefined) return formatAddress(address);
  throw new ErrInvalidMessage(`${JSON.stringify(text.slice(0, ID_CHARS_MAX))} is no address`, {
    ...(id === undefined ? {} : { id }),
    phase: "send",
    hint: NAME_HINT,
  });
}

/** True if both messages have the same content. Times are not compared: a message that is sent again has a new time. */
function isSame(a: Message, b: Message): boolean {
  const keys = ["project", "branch", "from_agent", "type", "content", "content_ref"] as const;
  return keys.every((key) => a[key] === b[key]) && String(a.to) === String(b.to);
}
