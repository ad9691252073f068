/** The state of a run of a coding agent, from the facts of its stream: whether it is over, and whether it succeeded. Pure. */

import { isDeepStrictEqual } from "node:util";
import { having, type Is, isNumber, orNull } from "../../core/shape.ts";
import { type Fact, isAnswer, type TurnEnd, type Usage } from "./facts.ts";

export const isUsage: Is<Usage> = having({
  inputTokens: isNumber,
  cachedInputTokens: isNumber,
  outputTokens: isNumber,
  costUsdMicro: orNull(isNumber),
});
export const NO_USAGE: Usage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  costUsdMicro: null,
};

export interface RunState {
  sessionId: string | undefined;
  turn: "none" | "open" | "ended";
  lastEnd: TurnEnd | undefined;
  /** Uuids of messages that were written to the program and that no turn has answered yet. */
  readonly unanswered: Set<string>;
  /** Tool calls that run now, by id. */
  readonly openTools: Map<string, string>;
  background: readonly string[];
  /** True when background tasks have changed since the last turn ended. Then the program will begin a turn about that. */
  isBackgroundNews: boolean;
  /** The latest end of the quota windows that refused a request (epoch ms). */
  quotaUntilMs: number | undefined;
  isQuotaRefused: boolean;
  /** The quota windows that refuse requests now, with their ends; "" stands for the whole account. */
  readonly refusedWindows: Map<string, number | null>;
  /** The program has finished one of our messages. If no turn began, it dropped the message as a repeat. */
  isMessageDone: boolean;
  /** The HTTP status of the last failed request that the program tries again. */
  lastStatus: number | undefined;
  denied: string[];
  changedFiles: number;
  /** How many tool calls ended well. */
  toolsDone: number;
  /** The model has answered in this run. */
  hasAnswered: boolean;
  /** The open turn has said or done something. */
  hasContent: boolean;
  /** The tokens of the session before this run, and up to the end of the last turn. */
  readonly bookedTokens: number;
  tokensBefore: number;
  lastText: string;
  /** The text before `lastText`. */
  textBefore: string;
  /** The sum over the whole session, if the program reports sums. */
  sessionUsage: Usage | undefined;
  /** The first sum that it reported in this run. */
  firstSessionUsage: Usage | undefined;
  /** The sum in the program's own file, if it has one. This sum never begins at zero again. */
  keptUsage: Usage | undefined;
  /** The sum of its single reports, if it reports no sums. */
  partUsage: Usage;
  /** The costs of the open turn so far, if it reports them. */
  turnUsage: Usage;
  turns: number;
}

/** @param booked what the session has used before this run */
export function newRunState(booked = NO_USAGE): RunState {
  return {
    sessionId: undefined,
    turn: "none",
    lastEnd: undefined,
    unanswered: new Set(),
    openTools: new Map(),
    background: [],
    isBackgroundNews: false,
    quotaUntilMs: undefined,
    isQuotaRefused: false,
    refusedWindows: new Map(),
    isMessageDone: false,
    lastStatus: undefined,
    denied: [],
    changedFiles: 0,
    toolsDone: 0,
    hasAnswered: false,
    hasContent: false,
    bookedTokens: tokensOf(booked),
    tokensBefore: tokensOf(booked),
    lastText: "",
    textBefore: "",
    sessionUsage: undefined,
    firstSessionUsage: undefined,
    keptUsage: undefined,
    partUsage: NO_USAGE,
    turnUsage: NO_USAGE,
    turns: 0,
  };
}

/** The facts that show that a turn has said or done something. */
const CONTENT: ReadonlySet<Fact["fact"]> = new Set([
  "said",
  "thought",
  "tool_started",
  "tool_ended",
  "tool_denied",
  "file_changed",
  "background",
  "compacted",
]);

/** The fact as it counts: a turn that ended well, with no text, no tool call and no tokens, was no answer. */
export function judgeFact(state: RunState, fact: Fact): Fact {
  if (fact.fact !== "turn_ended" || fact.end.fault !== undefined || fact.end.text.trim() !== "")
    return fact;
  if (state.hasContent || tokensNow(state) > state.tokensBefore) return fact;
  // A program may print the end of a turn twice.
  if (state.turn === "ended" && state.lastEnd !== undefined)
    return { fact: "turn_ended", end: { ...state.lastEnd, denied: [] } };
  const text = "its turn has no text, no tool call and no tokens: the service has answered nothing";
  return { fact: "turn_ended", end: { ...fact.end, fault: "empty", text } };
}

/** The tokens of the session so far. Programs report them in one of these ways, or in several. */
function tokensNow({
  bookedTokens,
  keptUsage,
  partUsage,
  sessionUsage,
  turnUsage,
}: RunState): number {
  const sums = [sessionUsage, keptUsage].map((sum) => (sum === undefined ? 0 : tokensOf(sum)));
  return Math.max(...sums, bookedTokens + tokensOf(turnUsage) + tokensOf(partUsage));
}

export function tokensOf({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens;
}

/** Adds a fact to the state. */
export function applyFact(state: RunState, fact: Fact): void {
  if (isAnswer(fact)) state.hasAnswered = true;
  // It goes on, so the request that failed before has succeeded.
  if (CONTENT.has(fact.fact)) state.lastStatus = undefined;
  if (CONTENT.has(fact.fact) && !(fact.fact === "said" && fact.text.trim() === ""))
    state.hasContent = true;
  switch (fact.fact) {
    case "session":
      state.sessionId = fact.id;
      return;
    case "turn_started":
      state.turn = "open";
      return;
    case "turn_ended":
      endTurn(state, fact.end);
      return;
    case "message":
      // It reads a message, so a turn that answers it goes on or will begin.
      if (fact.state === "read") state.turn = "open";
      if (fact.state === "done") state.isMessageDone = true;
      if (fact.state === "done" || fact.state === "cancelled") state.unanswered.delete(fact.uuid);
      return;
    case "said":
      state.textBefore = state.lastText;
      state.lastText = fact.text;
      return;
    case "tool_started":
      state.openTools.set(fact.id, fact.name);
      return;
    case "tool_ended":
      state.openTools.delete(fact.id);
      if (!fact.isError && (fact.exitCode ?? 0) === 0) state.toolsDone++;
      return;
    case "tool_denied":
      state.denied.push(fact.name);
      return;
    case "file_changed":
      state.changedFiles++;
      return;
    case "background":
      if (state.turn === "ended" && !isDeepStrictEqual(state.background, fact.ids))
        state.isBackgroundNews = true;
      state.background = fact.ids;
      return;
    case "quota":
      noteQuota(state, fact);
      return;
    case "api_retry":
      state.lastStatus = fact.status ?? undefined;
      return;
    case "usage":
      state.turnUsage = fact.of === "turn" ? fact.usage : NO_USAGE;
      if (fact.of === "session") {
        state.sessionUsage = fact.usage;
        state.firstSessionUsage ??= fact.usage;
      }
      if (fact.of === "kept") state.keptUsage = fact.usage;
      if (fact.of === "part") state.partUsage = addUsage(state.partUsage, fact.usage);
      return;
    default:
      return;
  }
}

function noteQuota(state: RunState, fact: Extract<Fact, { fact: "quota" }>): void {
  const { refusedWindows } = state;
  if (fact.isRejected) refusedWindows.set(fact.window ?? "", fact.resetsAtMs);
  // The service answered, so earlier refusals are over.
  else if (fact.window === null) refusedWindows.clear();
  else refusedWindows.delete(fact.window);
  state.isQuotaRefused = refusedWindows.size > 0;
  const ends = [...refusedWindows.values()].filter((endMs) => endMs !== null);
  state.quotaUntilMs = ends.length === 0 ? undefined : Math.max(...ends);
}

function endTurn(state: RunState, end: TurnEnd): void {
  state.turn = "ended";
  state.hasContent = false;
  state.tokensBefore = tokensNow(state);
  state.turns++;
  state.lastEnd = end;
  state.openTools.clear();
  state.isBackgroundNews = false;
  state.denied.push(...end.denied);
  // A program may print the error of its turn as if the model had said it.
  if (end.fault !== undefined && state.lastText === end.text) state.lastText = state.textBefore;
  // A program that does not say which messages it answers has got only one.
  if (end.answers === undefined) state.unanswered.clear();
  else for (const uuid of end.answers) state.unanswered.delete(uuid);
}

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    costUsdMicro:
      a.costUsdMicro === null && b.costUsdMicro === null
        ? null
        : (a.costUsdMicro ?? 0) + (b.costUsdMicro ?? 0),
  };
}

/** A difference below zero counts as zero. An unknown earlier price counts as zero. */
export function subtractUsage(from: Usage, less: Usage): Usage {
  const more = (now: number, before: number): number => Math.max(0, now - before);
  return {
    inputTokens: more(from.inputTokens, less.inputTokens),
    cachedInputTokens: more(from.cachedInputTokens, less.cachedInputTokens),
    outputTokens: more(from.outputTokens, less.outputTokens),
    costUsdMicro:
      from.costUsdMicro === null ? null : more(from.costUsdMicro, less.costUsdMicro ?? 0),
  };
}

/** A result ends a turn, not the run. The run is over when nothing more will come from it. */
export function isRunOver(state: RunState): boolean {
  return (
    // A message was finished without any turn, so nothing runs and nothing will come.
    (state.turn === "ended" || (state.turn === "none" && state.isMessageDone)) &&
    state.unanswered.size === 0 &&
    state.background.length === 0 &&
    !state.isBackgroundNews
  );
}
