/**
 * Passes people's messages for a task to the program of one run: in its packet, and also while it runs, if its kind takes messages. A
 * message counts as read only when the stream proves it. Until then, it is offered to the next program again.
 */
import { randomUUID } from "node:crypto";
import { relative } from "node:path";
import type { Briefing } from "../briefing.ts";
import { type Fact, isAnswer } from "./facts.ts";
import { hashOfText, type SessionProof } from "./session-proof.ts";
import { StandingWords } from "./standing-words.ts";
import { type Message, type Offer, TaskMessages } from "./task-messages.ts";

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
  private readonly deps: FeedParts;
  private readonly box: TaskMessages;
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
    this.deps = parts;
    this.standing = new StandingWords(parts.briefing, this.packetUuid);
    this.box = new TaskMessages(parts.stateDir, parts.id, parts.isDurable);
  }

  /**
   * Makes the packet of a program that is about to start, with all unread messages.
   * @param compose makes it from the text of the messages; "" when there are none
   * @param mayAsk true if the program can say which messages its session got. Then earlier offers without proof wait for that answer
   */
  makePacket(proof: SessionProof, compose: (messages: string) => string, mayAsk = false): string {
    this.settleEarlierOffers(proof);
    let messages = this.box.unread().filter(({ n }) => !(mayAsk && this.awaitAnswer(n)));
    for (;;) {
      const packet = compose(messages.map(({ text }) => text).join("\n\n"));
      // A message whose offer cannot be written is left out, and that changes the packet.
      const offered = messages.filter(({ n }) => this.offer(n, this.packetUuid, "packet", packet));
      if (offered.length === messages.length) return packet;
      messages = offered;
    }
  }

  /** The offer of this run's packet, written nowhere yet. */
  offerOfPacket(packet: string): Offer {
    return this.newOffer(this.packetUuid, "packet", packet);
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
      const words = this.standing.addTo(uuid, text);
      // Write the offer down before you make it. So after a crash we know where the proof would be.
      if (this.offer(n, uuid, "message", words)) write(uuid, words);
      else this.standing.noteWithdrawn(uuid);
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
  private offer(n: number, uuid: string, via: Offer["via"], text: string): boolean {
    try {
      this.box.noteOffer(n, this.newOffer(uuid, via, text));
    } catch {
      this.stamp = undefined;
      return false;
    }
    this.offered.add(n);
    this.open.set(via === "packet" ? `${uuid} ${n}` : uuid, { n, sinceMs: performance.now() });
    return true;
  }

  private newOffer(uuid: string, via: Offer["via"], text: string): Offer {
    const { stateDir, eventsLog, from } = this.deps;
    const at = Math.floor(Date.now() / 1000);
    const events = relative(stateDir, eventsLog);
    return { v: 1, uuid, via, events, from, at, sha256: hashOfText(text) };
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
        this.box.noteRead(n, relative(this.deps.stateDir, this.deps.eventsLog));
        this.proven.delete(n);
      } catch {
        // The disk is full. Each look tries again, and the next run finds the proof in the stream itself.
      }
    }
  }

  /** Finds proofs of earlier runs, because a killed worker may have left one unread. */
  private settleEarlierOffers(proof: SessionProof): void {
    for (const { n } of this.box.unread()) {
      const offer = this.box.offerOf(n);
      if (offer !== undefined && proof.has(offer, isMessageRead)) this.proven.add(n);
    }
    this.writeProofs();
  }
}

function isMessageRead(fact: Fact, { uuid, via }: Offer): boolean {
  if (via === "packet") return isAnswer(fact);
  return fact.fact === "message" && fact.uuid === uuid && fact.state === "read";
}
