/** What a run of a coding agent has come to, from the facts of its stream: whether it is over, and whether it was good. Pure. */
import type { Fact, TurnEnd, Usage } from "./facts.ts";

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
  /** Background tasks have changed since the last turn ended: a turn about that follows. */
  isBackgroundNews: boolean;
  /** The latest end of a quota window that has refused us (epoch ms). */
  quotaUntilMs: number | undefined;
  isQuotaRefused: boolean;
  /** Windows of the quota that refuse us now, with their ends; "" is the account as a whole. */
  readonly refusedWindows: Map<string, number | null>;
  /** A message of ours was done with: without a turn it was a repeat that the program has dropped. */
  isMessageDone: boolean;
  /** Status of the last request that the program tries again, when it has failed. */
  lastStatus: number | undefined;
  denied: string[];
  changedFiles: number;
  lastText: string;
  /** What it said before that. */
  textBefore: string;
  /** Of the whole session, where the program tells sums. */
  sessionUsage: Usage | undefined;
  /** The first sum that it told in this run. */
  firstSessionUsage: Usage | undefined;
  /** Booked piece by piece, where it tells pieces. */
  partUsage: Usage;
  /** Of the turn that is open, so far, where it tells that. */
  turnUsage: Usage;
  turns: number;
}

export function newRunState(): RunState {
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
    lastText: "",
    textBefore: "",
    sessionUsage: undefined,
    firstSessionUsage: undefined,
    partUsage: NO_USAGE,
    turnUsage: NO_USAGE,
    turns: 0,
  };
}

/** Takes a fact into the state. */
export function applyFact(state: RunState, fact: Fact): void {
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
      // It reads a message: a turn that answers it comes, or goes on.
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
      return;
    case "tool_denied":
      state.denied.push(fact.name);
      return;
    case "file_changed":
      state.changedFiles++;
      return;
    case "background":
      state.background = fact.ids;
      if (state.turn === "ended") state.isBackgroundNews = true;
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
      if (fact.of === "part") state.partUsage = addUsage(state.partUsage, fact.usage);
      return;
    default:
      return;
  }
}

function noteQuota(state: RunState, fact: Extract<Fact, { fact: "quota" }>): void {
  const { refusedWindows } = state;
  if (fact.isRejected) refusedWindows.set(fact.window ?? "", fact.resetsAtMs);
  // It is let in: what refused it before is over.
  else if (fact.window === null) refusedWindows.clear();
  else refusedWindows.delete(fact.window);
  state.isQuotaRefused = refusedWindows.size > 0;
  const ends = [...refusedWindows.values()].filter((endMs) => endMs !== null);
  state.quotaUntilMs = ends.length === 0 ? undefined : Math.max(...ends);
}

function endTurn(state: RunState, end: TurnEnd): void {
  state.turn = "ended";
  state.turns++;
  state.lastEnd = end;
  state.openTools.clear();
  state.isBackgroundNews = false;
  state.denied.push(...end.denied);
  // A program may print the error of its turn as if the model had said it.
  if (end.fault !== undefined && state.lastText === end.text) state.lastText = state.textBefore;
  // A program that does not say what it answers has had one message.
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

/** Nothing is less than zero. A price that is not known before counts as zero. */
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

/** A result ends a turn, not the run: the run is over when nothing more is to come from it. */
export function isRunOver(state: RunState): boolean {
  return (
    // A message that was done with and no turn at all: nothing runs, and nothing comes.
    (state.turn === "ended" || (state.turn === "none" && state.isMessageDone)) &&
    state.unanswered.size === 0 &&
    state.background.length === 0 &&
    !state.isBackgroundNews
  );
}
