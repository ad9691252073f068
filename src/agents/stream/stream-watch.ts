/**
 * Watches the stream of a running coding agent and passes its facts on. Closes its input when nothing more will come. Stops it when
 * it is silent and no tool runs, when it does not exit after its work, or when it waits for a background task without end.
 */
import type { Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { AgentSettings } from "../../core/settings.ts";
import type { Dialogue, ProgramInput } from "./agent-program.ts";
import type { Fact, ReadLine } from "./facts.ts";
import { LineTail } from "./line-tail.ts";
import type { MessageFeed } from "./message-feed.ts";
import { ReadTimesWriter } from "./read-times.ts";
import type { RunRecorder } from "./run-recorder.ts";
import { isRunOver } from "./run-state.ts";
import type { SideTail } from "./side-tail.ts";

/** Why we stopped the program. */
export type OwnStop = "idle" | "lingering" | "background" | "lost_session" | "budget" | "quota";

export interface StreamWatchParts {
  eventsLog: string;
  /** Where this run's part of the log begins (bytes). */
  from: number;
  read: ReadLine;
  recorder: RunRecorder;
  settings: Pick<AgentSettings, "idle_ms" | "background_ms">;
  side: SideTail | undefined;
  messages: MessageFeed;
  stop: (reason: OwnStop) => void;
}

const LOOK_MS = 100;
const SIDE_MS = 1000;
/** How much one look reads, so that other runs of the process get their turn (bytes). */
const LOOK_BYTES_MAX = 8 * 1024 * 1024;
/** How long a program may take to exit once its run is over (ms). */
const LINGER_MS = 30_000;
/** How long it may take to end its turn before it gets a signal (ms). */
const INTERRUPT_MS = 1000;
const INTERRUPT_LOOK_MS = 20;
/** How long it may take to end after its input has ended, before it gets a signal (ms). */
const EOF_MS = 1500;
/** How long it may take to end its turn for an urgent message. After that, it gets the message within the turn (ms). */
const CUT_MS = 10_000;
export const IDLE_MS = 30 * 60_000;
export const BACKGROUND_MS = 10 * 60_000;

/** The facts that belong to a turn. */
const OF_A_TURN: ReadonlySet<Fact["fact"]> = new Set([
  "turn_started",
  "turn_ended",
  "said",
  "background",
]);

export class StreamWatch {
  ownStop: OwnStop | undefined;
  /** Whether a turn was open when we stopped it. */
  wasInTurn = false;
  private readonly deps: StreamWatchParts;
  private readonly tail: LineTail;
  private readonly times: ReadTimesWriter;
  private timer: NodeJS.Timeout | undefined;
  private stdin: Writable | undefined;
  /** Set if its program takes messages while it runs. */
  private dialogue: Dialogue | undefined;
  /** When the program last wrote something, and since when its run is over (monotonic ms). */
  private heardMs = performance.now();
  private overSinceMs: number | undefined;
  private sideDueMs = 0;
  /** When it was asked to end its turn for a message (monotonic ms). */
  private cutSinceMs: number | undefined;
  /** True when a turn was ended for a message. */
  hasCut = false;
  private hasEnded = false;

  constructor(parts: StreamWatchParts) {
    this.deps = parts;
    this.tail = new LineTail(parts.eventsLog, parts.from, (line) => this.take(line));
    this.times = new ReadTimesWriter(parts.eventsLog, parts.from);
  }

  /** Called when the program runs. */
  start(): void {
    this.heardMs = performance.now();
    this.timer = setInterval(() => this.look(), LOOK_MS);
  }

  /** Writes its packet to its input. */
  open(stdin: Writable, input: Exclude<ProgramInput, { kind: "none" }>, packet: string): void {
    if (input.kind === "text") {
      stdin.end(input.text);
      return;
    }
    this.stdin = stdin;
    this.dialogue = input.dialogue;
    const { packetUuid: uuid, earlier } = this.deps.messages;
    this.deps.recorder.state.unanswered.add(uuid);
    input.dialogue.begin({ uuid, packet, earlier }, (text) => {
      if (stdin.writable) stdin.write(text);
    });
  }

  /** Asks the program to end its turn before it is stopped, so that its session keeps the end of the turn. Always resolves soon. */
  async interrupt(): Promise<void> {
    const { dialogue, stdin } = this;
    if (dialogue?.interrupt() === true)
      await passes(INTERRUPT_MS, () => this.deps.recorder.state.turn !== "open");
    if (dialogue?.endsAtEof !== true || stdin === undefined) return;
    stdin.end();
    await passes(EOF_MS, () => this.hasEnded);
  }

  /** Called at the exit of the program, also while it is being stopped. */
  noteExit(): void {
    this.hasEnded = true;
  }

  /** Called when the program has ended. Reads the rest. */
  end(): void {
    clearInterval(this.timer);
    this.times.note(this.tail.read(), Date.now());
    this.times.flush();
    this.tail.end();
    this.deps.side?.end(this.deps.recorder.state.sessionId);
    this.stdin?.destroy();
  }

  /** Facts that its meter has seen. They are no sign of life. */
  takeFromMeter(facts: readonly Fact[]): void {
    this.deps.recorder.take("", facts);
  }

  private look(): void {
    const nowMs = performance.now();
    this.times.note(this.tail.read(LOOK_BYTES_MAX), Date.now());
    this.deps.recorder.keepSession();
    const { state } = this.deps.recorder;
    // Once a second is enough: this file is no stream, and until it exists, each look searches its folder.
    if (nowMs >= this.sideDueMs) {
      this.deps.side?.read(state.sessionId);
      this.sideDueMs = nowMs + SIDE_MS;
    }
    this.passMessages();
    if (isRunOver(state) && !this.deps.messages.isWaiting()) {
      this.overSinceMs ??= nowMs;
      // Close its input, so that the program exits.
      this.stdin?.end();
      if (nowMs - this.overSinceMs > LINGER_MS) this.stop("lingering");
      return;
    }
    this.overSinceMs = undefined;
    const silentMs = nowMs - this.heardMs;
    const { idle_ms: idleMs = IDLE_MS, background_ms: backgroundMs = BACKGROUND_MS } =
      this.deps.settings;
    if (state.turn === "ended" && state.background.length > 0) {
      if (silentMs > backgroundMs) this.stop("background");
    } else if (state.openTools.size === 0 && silentMs > idleMs) this.stop("idle");
  }

  private passMessages(): void {
    const { stdin, dialogue } = this;
    if (dialogue?.isReady !== true || stdin?.writable !== true) return;
    this.deps.messages.pass(
      (uuid, text) => {
        this.deps.recorder.state.unanswered.add(uuid);
        dialogue.say(uuid, text);
      },
      () => this.hasEndedTurn(dialogue),
    );
  }

  /** Asks it to end its turn for a message. @returns true when the message can be passed on: no turn is open, or the turn does not end */
  private hasEndedTurn(dialogue: Dialogue): boolean {
    const nowMs = performance.now();
    const { turn } = this.deps.recorder.state;
    if (turn === "open" && this.cutSinceMs === undefined) {
      if (!dialogue.cut()) return true;
      this.cutSinceMs = nowMs;
      this.hasCut = true;
    }
    // With turn "none", its first turn is about to begin.
    if (turn === "none" || (turn === "open" && nowMs - (this.cutSinceMs ?? 0) < CUT_MS))
      return false;
    this.cutSinceMs = undefined;
    return true;
  }

  stop(reason: OwnStop): void {
    if (this.ownStop !== undefined) return;
    this.ownStop = reason;
    this.wasInTurn = this.deps.recorder.state.turn === "open";
    this.deps.stop(reason);
  }

  private take(line: string): void {
    const all = this.deps.read(line);
    // We stopped its background tasks. What it says about that is no answer to its task.
    const isOver = this.ownStop === "background";
    const facts = isOver ? all.filter(({ fact }) => !OF_A_TURN.has(fact)) : all;
    // A program whose requests get no answer counts as silent, too.
    if (facts.some((fact) => fact.fact !== "api_retry")) this.heardMs = performance.now();
    for (const fact of this.deps.recorder.take(line, facts)) this.deps.messages.take(fact);
    // The new session has no packet, so it would read messages without knowing its task.
    if (this.deps.recorder.hasLostSession) this.stop("lost_session");
  }
}

/** Waits until it is so, and at most for this time. */
async function passes(limitMs: number, isSo: () => boolean): Promise<void> {
  const untilMs = performance.now() + limitMs;
  while (!isSo() && performance.now() < untilMs) await pause(INTERRUPT_LOOK_MS);
}
