/**
 * The messages of people for a task: `say/<id>/<n>.json`, each written once. Two more files belong to a message: `<n>.offer.json` is the
 * latest offer to a program, written before the offer is made; `<n>.read.json` is the proof that the model has read the message.
 */
import fs from "node:fs";
import { join } from "node:path";
import { isNumber, isText, type Of, oneOf, optional, shape } from "../../core/shape.ts";
import { Documents } from "../../host/document-store.ts";
import { listDir } from "../../host/list-dir.ts";
import { statOf } from "../../host/regular-file.ts";

export interface Message {
  n: number;
  text: string;
  /** True: the open turn is ended for this message, if the program can do that. */
  isUrgent: boolean;
}

/** How a message or a task was offered, and where to find the proof that it was read. */
const offered = shape({
  v: oneOf(1),
  /** The uuid of the message, or of the packet with which it was sent. */
  uuid: isText,
  via: oneOf("packet", "message"),
  /** The path of the run's stream, relative to the state tree, and where the part of this program begins (bytes). */
  events: isText,
  from: isNumber,
  /** Unix seconds. */
  at: isNumber,
  /** The whole text that the program was given: see `hashOfText`. Older versions wrote none, and then only the stream can prove it. */
  sha256: optional(isText),
});
export type Offer = Of<typeof offered>;
/** A message as it is kept. Times are unix seconds. */
const kept = shape({
  v: oneOf(1),
  text: isText,
  from: optional(isText),
  when: optional(oneOf("now")),
  created_at: optional(isNumber),
});
const receipt = shape({ v: oneOf(1), run: isText, at: isNumber });

export const MESSAGE_STATES = ["recorded", "offered", "read"] as const;
export type MessageState = (typeof MESSAGE_STATES)[number];

/** Longer messages are refused (bytes). */
export const MESSAGE_BYTES_MAX = 32 * 1024;

export class TaskMessages {
  readonly dir: string;
  private readonly messages: Documents<Of<typeof kept>>;
  private readonly offers: Documents<Offer>;
  private readonly receipts: Documents<Of<typeof receipt>>;

  constructor(stateDir: string, id: string, isDurable: boolean) {
    const folder = join("say", id);
    this.messages = new Documents(stateDir, folder, kept, { isDurable });
    this.offers = new Documents(stateDir, folder, offered, { isDurable });
    this.receipts = new Documents(stateDir, folder, receipt, { isDurable });
    this.dir = this.messages.dir;
  }

  /**
   * Writes a message. A crash after this returns does not lose it.
   * @param isUrgent true: the open turn is ended for it
   * @returns its number
   * @throws a system error
   */
  post(text: string, from: string, isUrgent = false): number {
    const created = Math.floor(Date.now() / 1000);
    const when = isUrgent ? { when: "now" as const } : {};
    const message = { v: 1 as const, text, from, ...when, created_at: created };
    // When the number is taken, another process has just written a message.
    for (let n = Math.max(0, ...this.list().messages) + 1; ; n++)
      if (this.messages.create(String(n), message)) return n;
  }

  /** The number of the last message of this sender; undefined when there is none. */
  find(from: string): number | undefined {
    return this.list()
      .messages.sort((a, b) => b - a)
      .find((n) => this.messages.read(String(n))?.from === from);
  }

  /** Whether all its messages come from such senders, and none was ever offered to a program. */
  isUntouched(isOf: (sender: string) => boolean): boolean {
    return this.list().messages.every((n) => {
      const from = this.messages.read(String(n))?.from;
      return from !== undefined && isOf(from) && this.stateOf(n) === "recorded";
    });
  }

  /** The messages without proof that the model has read them, the oldest first. */
  unread(): Message[] {
    const { messages, read } = this.list();
    return messages
      .filter((n) => !read.has(n))
      .sort((a, b) => a - b)
      .flatMap((n) => {
        const message = this.messages.read(String(n));
        return message === undefined
          ? []
          : [{ n, text: message.text, isUrgent: message.when === "now" }];
      });
  }

  stateOf(n: number): MessageState {
    if (fs.existsSync(this.receipts.path(`${n}.read`))) return "read";
    return fs.existsSync(this.offers.path(`${n}.offer`)) ? "offered" : "recorded";
  }

  offerOf(n: number): Offer | undefined {
    return this.offers.read(`${n}.offer`);
  }

  /** @throws a system error; then the message must not be offered */
  noteOffer(n: number, offer: Offer): void {
    this.offers.replace(`${n}.offer`, offer);
  }

  /** @throws a system error */
  noteRead(n: number, run: string): void {
    this.receipts.replace(`${n}.read`, { v: 1, run, at: Math.floor(Date.now() / 1000) });
  }

  /** Changes with each new file; undefined while there is none. */
  stamp(): number | undefined {
    return statOf(this.dir)?.mtimeMs;
  }

  private list(): { messages: number[]; read: Set<number> } {
    const messages: number[] = [];
    const read = new Set<number>();
    for (const name of listDir(this.dir)) {
      const [, n, what] = /^([1-9]\d{0,8})(\.read)?\.json$/.exec(name) ?? [];
      if (n === undefined) continue;
      if (what === undefined) messages.push(Number(n));
      else read.add(Number(n));
    }
    return { messages, read };
  }
}
