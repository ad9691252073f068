/** Follows the messages of a scope, and remembers what its agents have not read: for a supervisor, which asks again and again. */

import { formatAddress, HUMAN } from "../scope/scope.ts";
import { isHeld, unreadOf } from "../store/inbox.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { recipientsOf } from "../store/message.ts";
import { MessageReader, type Numbered } from "../store/read-messages.ts";

/** So many messages of an agent are kept in memory. The others are read when these are done. */
const KEPT_MAX = 200;

/** The first unread messages of an agent. */
export interface Waiting {
  messages: Numbered[];
  /** There are more. */
  isCut: boolean;
  /** When the first of them and the last one was seen (monotonic ms). */
  sinceMs: number;
  lastMs: number;
}

export class PendingMail {
  /** Messages that wait for a person. The reader of this list empties it. */
  readonly held: Numbered[];
  private readonly folder: MailFolder;
  /** Names by addresses. */
  private names: ReadonlyMap<string, string> = new Map();
  private readonly reader: MessageReader;
  private readonly waiting = new Map<string, Waiting>();

  constructor(folder: MailFolder) {
    this.folder = folder;
    // What comes while these are read is read twice, and kept once.
    this.reader = new MessageReader(folder);
    for (const _ of this.reader.next([]));
    this.held = unreadOf(folder, HUMAN).messages.filter((one) => isHeld(folder, one));
  }

  /** Reads what came since the last call. @param names of the agents; all mail of one that is new among them is looked for */
  look(names: readonly string[], nowMs: number): void {
    const known = new Set(this.names.values());
    const { scope } = this.folder;
    this.names = new Map(names.map((name) => [formatAddress({ ...scope, name }), name]));
    for (const name of names) if (!known.has(name)) this.load(name, nowMs);
    for (const message of this.reader.next(
      [...this.names.keys()].map((one) => JSON.stringify(one)),
    ))
      if (isHeld(this.folder, message)) this.held.push(message);
      else
        for (const address of recipientsOf(message)) {
          const name = this.names.get(address);
          if (name !== undefined) this.add(name, message, nowMs);
        }
  }

  /** Whether an agent may have unread mail. */
  has(name: string): boolean {
    return this.waiting.has(name);
  }

  /** The first unread messages of an agent; undefined when there are none. @param upto of its cursor */
  of(name: string, upto: number, nowMs: number): Waiting | undefined {
    const waiting = this.waiting.get(name);
    if (waiting === undefined) return undefined;
    waiting.messages = waiting.messages.filter(({ n }) => n > upto);
    if (waiting.messages.length > 0) return waiting;
    this.waiting.delete(name);
    return waiting.isCut ? this.load(name, nowMs) : undefined;
  }

  /** What has come behind this number, as far as it is kept. */
  behind(name: string, upto: number): Numbered[] {
    return this.waiting.get(name)?.messages.filter(({ n }) => n > upto) ?? [];
  }

  private load(name: string, nowMs: number): Waiting | undefined {
    const { messages } = unreadOf(this.folder, name);
    for (const message of messages) this.add(name, message, nowMs);
    return this.waiting.get(name);
  }

  private add(name: string, message: Numbered, nowMs: number): void {
    const known = this.waiting.get(name);
    const waiting = known ?? { messages: [], isCut: false, sinceMs: nowMs, lastMs: nowMs };
    this.waiting.set(name, waiting);
    if (waiting.messages.some(({ n }) => n === message.n)) return;
    waiting.lastMs = nowMs;
    // Once one is left out, those behind it are, too: a cursor that moves over them must not move over it.
    waiting.isCut ||= waiting.messages.length >= KEPT_MAX;
    if (!waiting.isCut) waiting.messages.push(message);
  }
}
