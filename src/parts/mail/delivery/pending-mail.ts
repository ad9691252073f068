/**
 * Follows the messages of a scope for a supervisor, and remembers the unread ones of its agents. A scope may have many messages, so
 * reading them pauses for other work.
 */

import { formatAddress, HUMAN } from "../scope/scope.ts";
import { readCursor } from "../store/cursors.ts";
import { filterFor, foreignLines, isHeld, isMailFor, linesWith } from "../store/inbox.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { recipientsOf } from "../store/message.ts";
import { MessageReader, type Numbered } from "../store/read-messages.ts";

/** At most this many messages of an agent are kept in memory. The others are loaded once these are read. */
const KEPT_MAX = 200;

/** The first unread messages of an agent. */
export interface Waiting {
  messages: Numbered[];
  /** True if the agent has more unread messages. */
  isCut: boolean;
  /** When the first and the last message were seen (monotonic ms). */
  sinceMs: number;
  lastMs: number;
}

export class PendingMail {
  /** Messages that wait for a person. The reader of this list empties it. */
  readonly held: Numbered[] = [];
  /** Names by addresses. */
  private names: ReadonlyMap<string, string> = new Map();
  private reader: MessageReader | undefined;
  private readonly waiting = new Map<string, Waiting>();

  constructor(private readonly folder: MailFolder) {}

  /**
   * Reads the messages that came since the last call.
   * @param names the agents. For a new name, all earlier mail is searched
   * @throws a system error: the next call reads all mail again
   */
  async look(names: readonly string[], nowMs: number): Promise<void> {
    await this.orForget(async () => {
      // A message that arrives during `load` is read twice and kept once.
      const isFirst = this.reader === undefined;
      this.reader ??= MessageReader.atEnd(this.folder);
      if (isFirst) await this.loadHeld();
      const known = new Set(this.names.values());
      for (const name of names) if (!known.has(name)) await this.load(name, nowMs);
      const { scope } = this.folder;
      this.names = new Map(names.map((name) => [formatAddress({ ...scope, name }), name]));
      const filter = linesWith([...this.names.keys()]);
      for await (const message of this.reader.nextWithPauses(filter)) this.take(message, nowMs);
    });
  }

  /** True if an agent may have unread mail. */
  has(name: string): boolean {
    return this.waiting.has(name);
  }

  /**
   * The first unread messages of an agent; undefined when there are none.
   * @param upto the number in the agent's cursor
   * @throws a system error: the next look reads all mail again
   */
  async of(name: string, upto: number, nowMs: number): Promise<Waiting | undefined> {
    const waiting = this.waiting.get(name);
    if (waiting === undefined) return undefined;
    waiting.messages = waiting.messages.filter(({ n }) => n > upto);
    if (waiting.messages.length > 0) return waiting;
    this.waiting.delete(name);
    return waiting.isCut ? await this.orForget(() => this.load(name, nowMs)) : undefined;
  }

  /** The kept messages with a number above `upto`. */
  behind(name: string, upto: number): Numbered[] {
    return this.waiting.get(name)?.messages.filter(({ n }) => n > upto) ?? [];
  }

  /** After an error, reads all mail again. A message must not be skipped: the cursor would move over it with the later ones. */
  private async orForget<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.reader = undefined;
      this.names = new Map();
      this.waiting.clear();
      throw error;
    }
  }

  private take(message: Numbered, nowMs: number): void {
    if (isHeld(this.folder, message)) this.hold(message);
    else
      for (const address of recipientsOf(message)) {
        const name = this.names.get(address);
        if (name !== undefined) this.add(name, message, nowMs);
      }
  }

  private async load(name: string, nowMs: number): Promise<Waiting | undefined> {
    const reader = new MessageReader(this.folder, readCursor(this.folder, name).upto);
    for await (const message of reader.nextWithPauses(filterFor(this.folder, name))) {
      if (isMailFor(this.folder, message, name)) this.add(name, message, nowMs);
      if (this.waiting.get(name)?.isCut === true) break;
    }
    return this.waiting.get(name);
  }

  private async loadHeld(): Promise<void> {
    const reader = new MessageReader(this.folder, readCursor(this.folder, HUMAN).upto);
    for await (const message of reader.nextWithPauses(foreignLines(this.folder))) {
      if (isHeld(this.folder, message)) this.hold(message);
      if (this.held.length === KEPT_MAX) break;
    }
  }

  private hold(message: Numbered): void {
    if (!this.held.some(({ n }) => n === message.n)) this.held.push(message);
  }

  private add(name: string, message: Numbered, nowMs: number): void {
    const known = this.waiting.get(name);
    const waiting = known ?? { messages: [], isCut: false, sinceMs: nowMs, lastMs: nowMs };
    this.waiting.set(name, waiting);
    if (waiting.messages.some(({ n }) => n === message.n)) return;
    waiting.lastMs = nowMs;
    // Once a message is left out, the later ones are left out, too. Otherwise the cursor would move over it with them.
    waiting.isCut ||= waiting.messages.length >= KEPT_MAX;
    if (!waiting.isCut) waiting.messages.push(message);
  }
}
