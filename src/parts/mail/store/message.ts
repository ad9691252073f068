/** Encodes and decodes a message as one line of JSON. Lines of earlier versions may lack fields. Pure. */
import { isoTime } from "../../../core/iso-time.ts";
import { isObject, parseObject } from "../../../core/json-object.ts";
import { formatAddress, parseAddress, type Scope } from "../scope/scope.ts";

/** How a message came in. */
export const WAYS = ["cli", "file", "run", "mcp", "system"] as const;
export type Way = (typeof WAYS)[number];
/** When a running agent gets a message: `now` ends its turn, `next` waits for its next step, `idle` for the end of its run. */
export const TIMES = ["now", "next", "idle"] as const;
export type When = (typeof TIMES)[number];

/** How far a writer has searched for another message with this id: up to this place in this segment. */
export type Checked = readonly [segment: number, bytes: number];

export interface Message extends Scope {
  v: 1;
  id: string;
  /** The sender, in the scope of the message. */
  from_agent: string;
  /** The incarnation of that agent; null for people and programs. */
  from_inc: number | null;
  via: Way;
  /** Addresses. Without any, all may read the message, and it wakes no agent. */
  to: string[];
  type: string;
  /** The text; "" when it is in a file. */
  content: string;
  /** The SHA-256 of a longer text, which is the name of its file. */
  content_ref: string | null;
  mentions: string[];
  /** The id of the message that began the conversation. */
  thread: string | null;
  reply_to: string | null;
  /** How many wake-ups led to it since a person last spoke. */
  hops: number;
  /** Ids of the messages that led to it. */
  cause: string[];
  when: When;
  requires_human: boolean;
  /** Unix seconds, and the same time with milliseconds. */
  created_at: number;
  t: string;
  /** Left out when the id was made at random: then no other message has it. */
  checked?: Checked;
  /** A random text in each line with `checked`, because two processes may send the same message in the same millisecond. */
  nonce?: string;
}

/** A line has at most this many bytes, including its end. A longer text is kept in a separate file. */
export const LINE_BYTES_MAX = 16 * 1024;

export function encodeMessage(message: Message): string {
  // Readers look for the beginning of a line: see `startOf`.
  const { v, id, ...rest } = message;
  return JSON.stringify({ v, id, ...rest });
}

/** The beginning of the line of a message with this id. */
export function startOf(id: string): string {
  return `{"v":1,"id":${JSON.stringify(id)},`;
}

/**
 * @param scope the scope of the folder, for lines that name none
 * @returns undefined when the line is no message: it is torn, or another program wrote it
 */
export function decodeMessage(line: string, scope: Scope): Message | undefined {
  const value = parseObject(line);
  if (value === undefined || typeof value["id"] !== "string" || value["id"] === "")
    return undefined;
  const own = {
    project: textOf(value["project"]) ?? scope.project,
    branch: textOf(value["branch"]) ?? scope.branch,
  };
  const createdAt = typeof value["created_at"] === "number" ? value["created_at"] : 0;
  const checked = checkedOf(value["checked"]);
  return {
    v: 1,
    id: value["id"],
    ...own,
    from_agent: textOf(value["from_agent"])?.toLowerCase() ?? "unknown",
    from_inc: typeof value["from_inc"] === "number" ? value["from_inc"] : null,
    via: WAYS.find((way) => way === value["via"]) ?? "cli",
    to: addressesOf(value["to"] ?? value["to_agent"], own),
    type: textOf(value["type"]) ?? "say",
    content: typeof value["content"] === "string" ? value["content"] : "",
    content_ref: textOf(value["content_ref"]) ?? null,
    mentions: addressesOf(value["mentions"], own),
    thread: textOf(value["thread"]) ?? null,
    reply_to: textOf(value["reply_to"]) ?? null,
    hops: typeof value["hops"] === "number" ? value["hops"] : 0,
    cause: textsOf(value["cause"]),
    when: TIMES.find((time) => time === value["when"]) ?? "next",
    requires_human: value["requires_human"] === true,
    created_at: createdAt,
    t: textOf(value["t"]) ?? isoTime(createdAt * 1000),
    ...(checked === undefined ? {} : { checked }),
  };
}

/** All recipients and all mentioned agents, each once. */
export function recipientsOf({ to, mentions }: Pick<Message, "to" | "mentions">): string[] {
  return [...new Set([...to, ...mentions])];
}

/** Cache of full addresses that were read: they mean the same in every scope. */
const known = new Set<string>();
const KNOWN_MAX = 1000;

/** Reads addresses. Earlier versions wrote one address, or a list as JSON text. */
function addressesOf(value: unknown, scope: Scope): string[] {
  // Most lines have addresses that many other lines have.
  if (Array.isArray(value) && value.every((one) => known.has(one))) return value;
  const isList = typeof value === "string" && value.startsWith("[");
  const texts = isList ? textsOf(parseObject(`{"list":${value}}`)?.["list"]) : textsOf(value);
  return texts.flatMap((text) => {
    const address = parseAddress(text, scope);
    const whole = address && formatAddress(address);
    if (whole === text && known.size < KNOWN_MAX) known.add(text);
    return whole === undefined ? [] : [whole];
  });
}

function textsOf(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.filter((one): one is string => typeof one === "string" && one !== "");
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function checkedOf(value: unknown): Checked | undefined {
  if (!Array.isArray(value) || isObject(value)) return undefined;
  const [segment, bytes] = value as unknown[];
  return typeof segment === "number" && typeof bytes === "number" ? [segment, bytes] : undefined;
}
