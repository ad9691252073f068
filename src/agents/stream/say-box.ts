/**
 * The messages of people for a task: `say/<id>/<n>.json`, each written once. Two more files belong to a message: `<n>.offer.json` is the
 * latest offer to a program, written before the offer is made; `<n>.read.json` is the proof that the model has read the message.
 */
import fs from "node:fs";
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { readDocument, replaceDocument, syncDir } from "../../host/documents.ts";
import { listDir } from "../../host/list-dir.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { statOf, writeAnew } from "../../host/regular-file.ts";

export interface Message {
  n: number;
  text: string;
  /** True: the open turn is ended for this message, if the program can do that. */
  isUrgent: boolean;
}

/** How a message or a task was offered, and where to find the proof that it was read. */
export interface Offer {
  v: 1;
  /** The uuid of the message, or of the packet with which it was sent. */
  uuid: string;
  via: "packet" | "message";
  /** The path of the run's stream, relative to the state tree, and where the part of this program begins (bytes). */
  events: string;
  from: number;
  /** Unix seconds. */
  at: number;
  /** The whole text that the program was given: see `hashOfText`. Older versions wrote none, and then only the stream can prove it. */
  sha256?: string;
}

export const MESSAGE_STATES = ["recorded", "offered", "read"] as const;
export type MessageState = (typeof MESSAGE_STATES)[number];

/** Longer messages are refused (bytes). */
export const MESSAGE_BYTES_MAX = 32 * 1024;

export class SayBox {
  readonly dir: string;

  constructor(
    stateDir: string,
    id: string,
    private readonly isDurable: boolean,
  ) {
    this.dir = join(stateDir, "say", id);
  }

  /**
   * Writes a message. A crash after this returns does not lose it.
   * @param isUrgent true: the open turn is ended for it
   * @returns its number
   * @throws a system error
   */
  post(text: string, from: string, isUrgent = false): number {
    const tmp = join(this.dir, ".tmp");
    makeDirs(tmp, 3);
    const staged = join(tmp, `message.${process.pid}`);
    const when = isUrgent ? { when: "now" } : {};
    const message = { v: 1, text, from, ...when, created_at: Math.floor(Date.now() / 1000) };
    const { isDurable } = this;
    writeAnew(staged, `${JSON.stringify(message)}\n`, { isDurable });
    try {
      for (let n = Math.max(0, ...this.list().messages) + 1; ; n++) {
        try {
          fs.linkSync(staged, this.path(n));
          if (this.isDurable) syncDir(this.dir);
          return n;
        } catch (error) {
          // Another process has just written a message.
          if (systemCode(error) !== "EEXIST") throw error;
        }
      }
    } finally {
      fs.rmSync(staged, { force: true });
    }
  }

  /** The number of the last message of this sender; undefined when there is none. */
  find(from: string): number | undefined {
    const isOf = (n: number): boolean =>
      readDocument<{ from?: unknown }>(this.path(n))?.from === from;
    return this.list()
      .messages.sort((a, b) => b - a)
      .find(isOf);
  }

  /** Whether all its messages come from such senders, and none was ever offered to a program. */
  isUntouched(isOf: (sender: string) => boolean): boolean {
    return this.list().messages.every((n) => {
      const { from } = readDocument<{ from?: unknown }>(this.path(n)) ?? {};
      return typeof from === "string" && isOf(from) && this.stateOf(n) === "recorded";
    });
  }

  /** The messages without proof that the model has read them, the oldest first. */
  unread(): Message[] {
    const { messages, read } = this.list();
    return messages
      .filter((n) => !read.has(n))
      .sort((a, b) => a - b)
      .flatMap((n) => {
        const { text, when } = readDocument<Record<string, unknown>>(this.path(n)) ?? {};
        return typeof text === "string" ? [{ n, text, isUrgent: when === "now" }] : [];
      });
  }

  stateOf(n: number): MessageState {
    if (fs.existsSync(this.path(n, "read"))) return "read";
    return fs.existsSync(this.path(n, "offer")) ? "offered" : "recorded";
  }

  offerOf(n: number): Offer | undefined {
    const found = readDocument<Offer>(this.path(n, "offer"));
    return found?.v === 1 && typeof found.events === "string" ? found : undefined;
  }

  /** @throws a system error; then the message must not be offered */
  noteOffer(n: number, offer: Offer): void {
    replaceDocument(this.path(n, "offer"), offer, { isDurable: this.isDurable });
  }

  /** @throws a system error */
  noteRead(n: number, run: string): void {
    const receipt = { v: 1, run, at: Math.floor(Date.now() / 1000) };
    replaceDocument(this.path(n, "read"), receipt, { isDurable: this.isDurable });
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

  private path(n: number, what?: "offer" | "read"): string {
    return join(this.dir, what === undefined ? `${n}.json` : `${n}.${what}.json`);
  }
}
