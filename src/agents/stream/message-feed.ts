/**
 * Passes people's messages for a task to the program of one run: in its packet, and also while it runs, if its kind takes messages. A
 * message counts as read only when the stream proves it. Until then, it is offered to the next program again.
 */
import { randomUUID } from "node:crypto";
import { join, relative, resolve, sep } from "node:path";
import type { Briefing } from "../briefing.ts";
import type { Fact, ReadLine } from "./facts.ts";
import { LineTail } from "./line-tail.ts";
import { isAnswer } from "./run-recorder.ts";
import { type Message, type Offer, SayBox } from "./say-box.ts";
import { StandingWords } from "./standing-words.ts";

/** How long after its last turn a program may still show that it has read a message (ms). */
const SIGN_MS = 30_000;
/** Times of directories may be wrong by this much (ms). */
const STAMP_MS = 100;

interface FeedParts {
  stateDir: string;
  id: string;
  isDurable: boolean;
  /** The stream of this run, and where its part begins (bytes). */
  eventsLog: string;
  from: number;
  briefing: Briefing | undefined;
}

export class MessageFeed {
  private readonly p: FeedParts;
  private readonly box: SayBox;
  /** Messages that were offered to this program, without proof yet that it read them; by uuid. */
  private readonly open = new Map<string, { n: number; sinceMs: number }>();
  private readonly offered = new Set<number>();
  /** The uuid of the packet. */
  readonly packetUuid = randomUUID();
  /** Uuids of offers to earlier programs without proof. The program is asked whether its session got them. */
  readonly earlier: string[] = [];
  /** Proofs that could not be written yet. */
  private readonly proven = new Set<number>();
  private stamp: number | undefined;
  private readonly standing: StandingWords;

  constructor(parts: FeedParts) {
    this.p = parts;
    this.standing = new StandingWords(parts.briefing, this.packetUuid);
    this.box = new SayBox(parts.stateDir, parts.id, parts.isDurable);
  }

  /**
   * The text of all unread messages, for the packet of a program that is about to start. "" when there are none.
   * @param mayAsk true if the program can say which messages its session got. Then earlier offers without proof wait for that answer
   */
  takeIntoPacket(newReader: () => ReadLine, mayAsk = false): string {
    this.settleEarlierOffers(newReader);
    const messages = this.box
      .unread()
      .filter(
        ({ n }) => !(mayAsk && this.awaitAnswer(n)) && this.offer(n, this.packetUuid, "packet"),
      );
    return messages.map(({ text }) => text).join("\n\n");
  }

  /**
   * Writes new messages to a running program.
   * @param cut called when a message is urgent, to end the open turn. While it returns false, the turn goes on and all messages wait
   */
  pass(write: (uuid: string, text: string) => void, cut = (): boolean => true): void {
    const news = this.news();
    if (news.some(({ isUrgent }) => isUrgent) && !cut()) {
      this.stamp = undefined;
      return;
    }
    for (const { n, text } of news) {
      const uuid = randomUUID();
      // Write the offer down before you make it. So after a crash we know where the proof would be.
      if (this.offer(n, uuid, "message")) write(uuid, this.standing.addTo(uuid, text));
    }
  }

  /** Called when the program has shortened its context. */
  noteCompacted(): void {
    this.standing.noteCompacted();
  }

  /** Adds a fact of the program. */
  take(fact: Fact): void {
    // The model has answered, so it has read the packet.
    if (isAnswer(fact)) this.prove(this.packetUuid);
    if (fact.fact !== "message") return;
    // Only an answer proves that the model read the packet.
    if (fact.uuid === this.packetUuid) return;
    if (fact.state === "read") this.prove(fact.uuid);
    else if (fact.state === "cancelled") this.withdraw(fact.uuid);
  }

  /** True while the program may still read a message that was offered. So the run is not over. */
  isWaiting(): boolean {
    const nowMs = performance.now();
    return [...this.open.values()].some(({ sinceMs }) => nowMs - sinceMs < SIGN_MS);
  }

  /** True if a message is unread. Then the task goes on in another run, if this one ends well. */
  hasUnread(): boolean {
    this.writeProofs();
    return this.box.unread().some(({ n }) => !this.proven.has(n));
  }

  private news(): Message[] {
    this.writeProofs();
    const stamp = this.box.stamp();
    if (stamp === undefined || stamp === this.stamp) return [];
    // Two changes may have the same time, so look again after a recent change.
    this.stamp = Date.now() - stamp > STAMP_MS ? stamp : undefined;
    const inQuestion = new Set([...this.open.values()].map(({ n }) => n));
    return this.box.unread().filter(({ n }) => !this.offered.has(n) && !inQuestion.has(n));
  }

  /** Notes an earlier offer of the message, to ask the session about it. @returns false when there was no such offer */
  private awaitAnswer(n: number): boolean {
    const uuid = this.box.offerOf(n)?.uuid;
    if (uuid === undefined) return false;
    this.earlier.push(uuid);
    this.open.set(`${uuid} ${n}`, { n, sinceMs: performance.now() });
    return true;
  }

  private withdraw(uuid: string): void {
    for (const key of this.keysOf(uuid)) this.open.delete(key);
    this.standing.noteWithdrawn(uuid);
    this.stamp = undefined;
  }

  /** The keys of all messages with this uuid: all messages of one packet have the same one. */
  private keysOf(uuid: string): string[] {
    return [...this.open.keys()].filter((key) => key === uuid || key.startsWith(`${uuid} `));
  }

  /** @returns false when it cannot be written now */
  private offer(n: number, uuid: string, via: Offer["via"]): boolean {
    const { stateDir, eventsLog, from } = this.p;
    const at = Math.floor(Date.now() / 1000);
    try {
      this.box.noteOffer(n, { v: 1, uuid, via, events: relative(stateDir, eventsLog), from, at });
    } catch {
      this.stamp = undefined;
      return false;
    }
    this.offered.add(n);
    this.open.set(via === "packet" ? `${uuid} ${n}` : uuid, { n, sinceMs: performance.now() });
    return true;
  }

  private prove(uuid: string): void {
    this.standing.noteRead(uuid);
    for (const key of this.keysOf(uuid)) {
      this.proven.add((this.open.get(key) as { n: number }).n);
      this.open.delete(key);
    }
    this.writeProofs();
  }

  private writeProofs(): void {
    for (const n of this.proven) {
      try {
        this.box.noteRead(n, relative(this.p.stateDir, this.p.eventsLog));
        this.proven.delete(n);
      } catch {
        // The disk is full. Each look tries again, and the next run finds the proof in the stream itself.
      }
    }
  }

  /** Finds proofs in the streams of earlier runs, because a killed worker may have left one unread. */
  private settleEarlierOffers(newReader: () => ReadLine): void {
    for (const { n } of this.box.unread()) {
      const offer = this.box.offerOf(n);
      if (offer === undefined || !isProven(this.p.stateDir, offer, newReader())) continue;
      this.proven.add(n);
    }
    this.writeProofs();
  }
}

function isProven(stateDir: string, offer: Offer, read: ReadLine): boolean {
  const path = resolve(stateDir, offer.events);
  if (!path.startsWith(join(stateDir, "runs") + sep)) return false;
  let isFound = false;
  const tail = new LineTail(path, offer.from, (line) => {
    for (const fact of read(line)) {
      if (offer.via === "packet") isFound ||= isAnswer(fact);
      else isFound ||= fact.fact === "message" && fact.uuid === offer.uuid && fact.state === "read";
    }
  });
  tail.end();
  return isFound;
}
