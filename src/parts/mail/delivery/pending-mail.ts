/**
 * Follows the messages of a scope, and remembers what its agents have not read: for a supervisor, which asks again and again. A scope may
 * have many messages, so reading them lets others work in between.
 */

import { formatAddress, HUMAN } from "../scope/scope.ts";
import { readCursor } from "../store/cursors.ts";
import { filterFor, foreignLines, isHeld, isMailFor, linesWith } from "../store/inbox.ts";
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
  readonly held: Numbered[] = [];
  private readonly folder: MailFolder;
  /** Names by addresses. */
  private names: ReadonlyMap<string, string> = new Map();
  private reader: MessageReader | undefined;
  private readonly waiting = new Map<string, Waiting>();

  constructor(folder: MailFolder) {
    this.folder = folder;
  }

  /**
   * Reads what came since the last call.
   * @param names of the agents; all mail of one that is new among them is looked for
   * @throws a system error: the next call reads all mail again
   */
  async look(names: readonly string[], nowMs: number): Promise<void> {
    await this.orForget(async () => {
      // What comes while the unread mail is read is read twice, and kept once.
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

  /** Whether an agent may have unread mail. */
  has(name: string): boolean {
    return this.waiting.has(name);
  }

  /**
   * The first unread messages of an agent; undefined when there are none.
   * @param upto of its cursor
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

  /** What has come behind this number, as far as it is kept. */
  behind(name: string, upto: number): Numbered[] {
    return this.waiting.get(name)?.messages.filter(({ n }) => n > upto) ?? [];
  }

  /** A message that was not read is never left out: a cursor that moves over those behind it would move over it. */
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
    // Once one is left out, those behind it are, too: a cursor that moves over them must not move over it.
    waiting.isCut ||= waiting.messages.length >= KEPT_MAX;
    if (!waiting.isCut) waiting.messages.push(message);
  }
}
