/**
 * Our side of one `codex app-server`: it asks for a thread, begins a turn, and passes messages into it. It answers requests of the
 * program by the permissions of the agent. It decides nothing about the run: that follows from the facts.
 */
import type { Dialogue, Opening, RunStart } from "../../agents/stream/agent-program.ts";
import type { Fact } from "../../agents/stream/facts.ts";
import { type JsonMembers, membersAt, textOf } from "../../agents/stream/json-values.ts";
import { readVersion } from "../../host/package.ts";
import { type AppServerLine, AppServerReader, messagesIn } from "./app-server.ts";
import {
  type AppServerRequest,
  answerLine,
  INITIALIZED_LINE,
  initialize,
  interruptTurn,
  listItems,
  requestLine,
  resumeThread,
  startThread,
  startTurn,
  steerTurn,
} from "./app-server-requests.ts";
import { endTurn, faultOfMessage } from "./fault.ts";

/** `opening`: no turn was asked for yet. `starting`: one was asked for, and has not begun. `stopping`: no turn begins any more. */
type TurnState = "opening" | "starting" | "running" | "idle" | "stopping";

interface Message {
  uuid: string;
  text: string;
}

type OnReply = (reply: { result: JsonMembers; error: string | undefined }) => Fact[];

/** At most this many pages of a thread are searched for our messages, the newest first. */
const PAGES_MAX = 20;

export class AppServerDialogue implements Dialogue {
  private readonly reader = new AppServerReader();
  private readonly replies = new Map<number, OnReply>();
  private write: (text: string) => void = () => {};
  private lastId = 0;
  private threadId = "";
  private turnId = "";
  private state: TurnState = "opening";
  /** True after a turn was interrupted so that a message can begin the next one. */
  private isCut = false;
  /** Messages to pass on. A message that a turn did not read waits here for the next turn. */
  private waiting: Message[] = [];
  /** Messages that were sent into the running turn and are not read yet. The program forgets them when the turn ends. */
  private readonly inTurn = new Map<string, Message>();

  constructor(private readonly run: RunStart) {}

  get isReady(): boolean {
    return this.state === "running" || this.state === "idle";
  }

  begin(opening: Opening, write: (text: string) => void): void {
    this.write = write;
    this.ask(initialize(readVersion()), ({ error }) => {
      if (error !== undefined) return refused(error);
      this.send(INITIALIZED_LINE);
      this.openThread(opening);
      return [];
    });
  }

  say(uuid: string, text: string): void {
    this.waiting.push({ uuid, text });
    this.passOn();
  }

  cut(): boolean {
    if (this.state !== "running") return false;
    this.isCut = true;
    this.ask(interruptTurn(this.threadId, this.turnId), () => []);
    return true;
  }

  interrupt(): boolean {
    const wasRunning = this.state === "running";
    this.state = "stopping";
    if (wasRunning) this.ask(interruptTurn(this.threadId, this.turnId), () => []);
    return wasRunning;
  }

  readonly read = (line: string): Fact[] => {
    const taken = this.reader.take(line);
    const facts = taken.facts.flatMap((fact) => [fact, ...this.note(fact, taken)]);
    if (taken.ask !== undefined) this.send(answerLine(taken.ask, this.run.settings.permissions));
    if (taken.reply !== undefined) {
      const onReply = this.replies.get(taken.reply.id);
      this.replies.delete(taken.reply.id);
      facts.push(...(onReply?.(taken.reply) ?? []));
    }
    this.passOn();
    return facts;
  };

  private openThread(opening: Opening): void {
    const { settings, sessionId, cwd } = this.run;
    const plan = { cwd, model: settings.model, permissions: settings.permissions };
    const request = sessionId === undefined ? startThread(plan) : resumeThread(sessionId, plan);
    this.ask(request, ({ result, error }) => {
      // The reader has reported a lost thread already.
      if (error !== undefined)
        return faultOfMessage(error) === "lost_session" ? [] : refused(error);
      this.threadId = textOf(membersAt(result, "thread")["id"]);
      const begin = (): void =>
        this.startTurn({ uuid: opening.uuid, text: opening.packet }, refused);
      this.findEarlier(new Set(opening.earlier), begin);
      return [];
    });
  }

  /** Finds out which of these messages the thread has read, so that none of those is sent again. */
  private findEarlier(wanted: Set<string>, then: () => void, cursor?: string, page = 1): void {
    if (wanted.size === 0) {
      then();
      return;
    }
    this.ask(listItems(this.threadId, cursor), ({ result }) => {
      const { ids, nextCursor } = messagesIn(result);
      const found = ids.filter((id) => wanted.delete(id));
      const facts = found.map((uuid): Fact => ({ fact: "message", uuid, state: "read" }));
      if (nextCursor !== undefined && page < PAGES_MAX) {
        this.findEarlier(wanted, then, nextCursor, page + 1);
        return facts;
      }
      then();
      return [...facts, ...[...wanted].map(cancelled)];
    });
  }

  /** @param onRefusal gives the facts that follow when the program refuses the turn */
  private startTurn(message: Message, onRefusal: (error: string) => Fact[]): void {
    if (this.state === "stopping") return;
    this.state = "starting";
    this.ask(startTurn(this.threadId, message.uuid, message.text), ({ error }) => {
      if (error === undefined) return [];
      if (this.state === "starting") this.state = "idle";
      return onRefusal(error);
    });
  }

  private passOn(): void {
    if (this.state === "running") for (const message of this.waiting.splice(0)) this.steer(message);
    if (this.state !== "idle") return;
    const message = this.waiting.shift();
    // A message that the program refuses waits for the next run.
    if (message !== undefined) this.startTurn(message, () => [cancelled(message.uuid)]);
  }

  /** Sends a message into the running turn. If the program refuses it, it waits like a message that the turn did not read. */
  private steer(message: Message): void {
    this.inTurn.set(message.uuid, message);
    this.ask(steerTurn(this.threadId, this.turnId, message.uuid, message.text), () => []);
  }

  /** Follows the state of the turn. @returns facts that follow from this one */
  private note(fact: Fact, { turnId = "" }: AppServerLine): Fact[] {
    if (fact.fact === "turn_started") {
      this.turnId = turnId;
      if (this.state === "stopping") this.ask(interruptTurn(this.threadId, turnId), () => []);
      else this.state = "running";
    }
    if (fact.fact === "message" && fact.state === "read") this.inTurn.delete(fact.uuid);
    if (fact.fact !== "turn_ended") return [];
    const isOurs = this.isCut && fact.end.fault === "interrupted";
    this.isCut = false;
    return this.noteEnd(isOurs || fact.end.fault === undefined);
  }

  private noteEnd(isGood: boolean): Fact[] {
    if (this.state !== "stopping") this.state = "idle";
    const unread = [...this.inTurn.values(), ...this.waiting];
    this.inTurn.clear();
    this.waiting = isGood ? unread : [];
    // A bad end of a turn ends the run. The unread messages are for the next run.
    return isGood ? [] : unread.map(({ uuid }) => cancelled(uuid));
  }

  private ask(request: AppServerRequest, onReply: OnReply): void {
    this.lastId++;
    this.replies.set(this.lastId, onReply);
    this.send(requestLine(this.lastId, request));
  }

  private send(line: string): void {
    this.write(`${line}\n`);
  }
}

/** The facts when the run cannot begin. */
function refused(error: string): Fact[] {
  return [endTurn(faultOfMessage(error), error)];
}

function cancelled(uuid: string): Fact {
  return { fact: "message", uuid, state: "cancelled" };
}
