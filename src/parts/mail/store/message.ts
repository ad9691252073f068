/** A message as it is kept: one line of JSON. Reads lines of earlier versions, in which fields are missing. Pure. */
import { isoTime } from "../../../core/iso-time.ts";
import { isObject, parseObject } from "../../../core/json-object.ts";
import { formatAddress, parseAddress, type Scope } from "../scope/scope.ts";

/** How a message came in. */
export const WAYS = ["cli", "file", "run", "mcp", "system"] as const;
export type Way = (typeof WAYS)[number];
/** When an agent that runs is to get it: at once, after its run, or when it has nothing to do. */
export const TIMES = ["now", "next", "idle"] as const;
export type When = (typeof TIMES)[number];

/** Where a writer had looked for another message of this id: everything before this place in this segment. */
export type Checked = readonly [segment: number, bytes: number];

export interface Message extends Scope {
  v: 1;
  id: string;
  /** The sender, in the scope of the message. */
  from_agent: string;
  /** Which incarnation of that agent it was; null for people and programs. */
  from_inc: number | null;
  via: Way;
  /** Addresses. Without any, it is for all to read, and wakes no agent. */
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
  /** How many wake-ups led to it since a person spoke. */
  hops: number;
  /** Ids of the messages that led to it. */
  cause: string[];
  when: When;
  requires_human: boolean;
  /** Unix seconds, and the same time with milliseconds. */
  created_at: number;
  t: string;
  /** Left out when the id was made at random: it cannot be there twice. */
  checked?: Checked;
  /** Made at random for each line with `checked`: two processes may send the same message in the same millisecond. */
  nonce?: string;
}

/** A line has at most this many bytes, with its end. A longer text goes into a file of its own. */
export const LINE_BYTES_MAX = 16 * 1024;

export function encodeMessage(message: Message): string {
  // Readers look for the beginning of a line: see `startOf`.
  const { v, id, ...rest } = message;
  return JSON.stringify({ v, id, ...rest });
}

/** What the line of a message with this id begins with. */
export function startOf(id: string): string {
  return `{"v":1,"id":${JSON.stringify(id)},`;
}

/**
 * @param scope of the folder, for lines that name none
 * @returns undefined when the line is no message: it is torn, or not ours
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

/** Everyone to whom it is addressed, or who is mentioned in it, each once. */
export function recipientsOf({ to, mentions }: Pick<Message, "to" | "mentions">): string[] {
  return [...new Set([...to, ...mentions])];
}

/** Whole addresses that were read: in any scope they are the same. */
const known = new Set<string>();
const KNOWN_MAX = 1000;

/** Earlier versions keep one address, or a list as JSON text. */
function addressesOf(value: unknown, scope: Scope): string[] {
  // Most lines have what stands in many others.
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
