/** The mail of a scope: its threads, and the messages of the open one. Made of the output of `messages` and `agents`. */
import { cut } from "../../../text/render.ts";
import { type Block, type Cell, pathWith, say, shown, table, timeOf } from "../page.ts";
import type { VerbReader } from "../verb-reader.ts";

/** Only this many messages are read, the last ones. */
const MESSAGES_MAX = 500;
const THREADS_MAX = 50;
const FIRST_CHARS_MAX = 60;
const TEXT_CHARS_MAX = 4000;
const AGAIN_MS = 1000;

/** An agent as `agents` prints it. */
export interface MailAgent {
  name: string;
  type: string;
  status: string;
  task: string;
  task_id?: string | null;
  /** The number of the last message that it has provably read. */
  read_upto: number;
  unread: number;
  last_woken_at: number | null;
  archived_at: number | null;
}

/** A message as `messages` prints it. */
export interface Message {
  n: number;
  id: string;
  project: string;
  branch: string;
  from_agent: string;
  to: string[];
  mentions: string[];
  content: string | null;
  thread: string | null;
  reply_to: string | null;
  created_at: number;
}

export async function readMail(verbs: VerbReader): Promise<Message[]> {
  const options = { last: MESSAGES_MAX };
  const found = await verbs.readAll({ verb: "messages", options, againMs: AGAIN_MS });
  return found as unknown as Message[];
}

/** @param open the thread whose messages are shown; null for none */
export function threadBlocks(
  messages: readonly Message[],
  agents: readonly MailAgent[],
  open: string | null,
): Block[] {
  const threads = threadsOf(messages);
  const opened = open === null ? undefined : threads.get(open);
  const blocks: Block[] = [];
  if (open !== null && opened === undefined)
    blocks.push(
      say(`the last ${MESSAGES_MAX} messages have no thread ${JSON.stringify(shown(open))}`, true),
    );
  if (opened !== undefined) blocks.push(messagesTable(opened, agents));
  if (threads.size > 0) blocks.push(threadsTable(threads, agents));
  return blocks;
}

/** Threads by the id of their first message. An answer belongs to the thread of the message that it answers. */
export function threadsOf(messages: readonly Message[]): Map<string, Message[]> {
  const roots = new Map<string, string>();
  const threads = new Map<string, Message[]>();
  for (const message of messages) {
    const { id, thread, reply_to: answered } = message;
    const before = thread ?? answered ?? id;
    const root = roots.get(before) ?? before;
    roots.set(id, root);
    const said = threads.get(root);
    if (said === undefined) threads.set(root, [message]);
    else said.push(message);
  }
  return threads;
}

/** The thread with the newest message comes first. */
function threadsTable(
  threads: ReadonlyMap<string, Message[]>,
  agents: readonly MailAgent[],
): Block {
  const lastOf = ([, said]: [string, Message[]]): number => said.at(-1)?.n ?? 0;
  const sorted = [...threads].sort((a, b) => lastOf(b) - lastOf(a));
  const left = sorted.length - THREADS_MAX;
  const some = left > 0 ? ` (the last ${THREADS_MAX} of ${sorted.length})` : "";
  const rows = sorted.slice(0, THREADS_MAX).flatMap(([root, said]): Cell[][] => {
    const [first, last] = [said[0], said.at(-1)];
    if (first === undefined || last === undefined) return [];
    const names = new Set(said.flatMap((one) => [one.from_agent, ...recipients(one)]));
    const row = [
      { text: firstWords(first), to: pathWith("/agents", { thread: root }) },
      shown([...names].join(", ")),
      String(said.length),
      said.length === 1 ? "" : `${shown(last.from_agent)}: ${firstWords(last)}`,
      timeOf(last.created_at * 1000),
      readText(last, agents),
    ];
    return [row];
  });
  const columns = ["begins", "between", "messages", "last", "when", "read"];
  return table(`Mail threads${some}`, columns, rows);
}

function messagesTable(said: readonly Message[], agents: readonly MailAgent[]): Block {
  const rows = said.map((one) => [
    shown(one.from_agent),
    shown(recipients(one).join(", ")),
    timeOf(one.created_at * 1000),
    textOf(one),
    readText(one, agents),
  ]);
  return table("What was said in this thread", ["from", "to", "when", "text", "read"], rows);
}

/** The names of the recipients; whole addresses for those of another scope. */
function recipients({ to, mentions, project, branch }: Message): string[] {
  const own = `${project}:${branch}:`;
  return [...new Set([...to, ...mentions])].map((one) =>
    one.startsWith(own) ? one.slice(own.length) : one,
  );
}

/** Names the agents that have not provably read the message. For people this is not known. */
function readText(message: Message, agents: readonly MailAgent[]): string {
  const names = new Set(recipients(message));
  const readers = agents.filter(({ name }) => names.has(name));
  const unread = readers.filter(({ read_upto: upto }) => upto < message.n);
  if (unread.length > 0) return `not yet by ${shown(unread.map(({ name }) => name).join(", "))}`;
  return readers.length === 0 ? "" : "read";
}

function firstWords({ content }: Message): string {
  const [line = ""] = (content ?? "").trim().split("\n");
  return line === "" ? "(no text)" : cut(shown(line), FIRST_CHARS_MAX);
}

/** The text of a message, with its line breaks. */
function textOf({ content }: Message): string {
  if (content === null) return "(its text is missing)";
  const lines = content.slice(0, TEXT_CHARS_MAX).split("\n").map(shown);
  return content.length > TEXT_CHARS_MAX ? `${lines.join("\n")} …` : lines.join("\n");
}
