/** Decides what to do when the program of a run has ended, or was stopped: who stopped it, its stream, and what its meter has seen. */
import { type AttemptOutcome, deferred } from "../../core/outcome.ts";
import type { MeterReading } from "../meter-reading.ts";
import type { ProgramEnd } from "../program.ts";
import type { TurnFault } from "./facts.ts";
import { judgeRun, type RunFacts, type RunVerdict } from "./run-outcome.ts";
import { applyFact, type RunState } from "./run-state.ts";
import type { OwnStop } from "./stream-watch.ts";

/** A fault that the stream does not tell. */
interface FaultBeside {
  fault: TurnFault;
  text: string;
  /** When the service takes requests again (epoch ms). */
  resetsAtMs?: number | null;
}

/** Ends the open turn with the fault. */
export function endWith(state: RunState, fault: FaultBeside): void {
  const { text } = fault;
  applyFact(state, {
    fact: "turn_ended",
    end: { fault: fault.fault, text, answers: undefined, denied: [] },
  });
  noteReset(state, fault);
}

/** A program may know that it has reached a limit, and not until when. */
function noteReset(state: RunState, beside: FaultBeside | undefined): void {
  const resetsAtMs = beside?.resetsAtMs ?? null;
  const isLimit = beside?.fault === "limit" && state.lastEnd?.fault === "limit";
  if (!isLimit || resetsAtMs === null || state.quotaUntilMs !== undefined) return;
  applyFact(state, { fact: "quota", isRejected: true, resetsAtMs, window: "meter", usedPct: null });
}

interface EndParts {
  /** Why we stopped it. */
  ownStop: OwnStop | undefined;
  /** Set when a budget has stopped it. */
  halt: AttemptOutcome | undefined;
  /** Why the service refuses the run, by its meter. */
  refused: MeterReading["refused"];
  /** See `AgentProgram`. */
  isSilentAtLimit: boolean | undefined;
  facts: RunFacts;
  lastWords: string;
}

/** How many silent runs in a row of one task may be for the quota. A program that always hangs must not go on for ever. */
const SILENT_MAX = 3;
/** What it said may be missing, so its silence says nothing. */
const CUT = deferred("the disk was nearly full while it ran, and it was silent since");
/** What a program says when it does not know better. Then its meter does. */
const VAGUE: ReadonlySet<TurnFault | undefined> = new Set(["other", "empty"]);

export function judgeEnd(
  end: ProgramEnd,
  { state, hasLostSession }: { state: RunState; hasLostSession: boolean },
  parts: EndParts,
): RunVerdict {
  const { outcome } = end;
  const { ownStop, halt, facts, lastWords } = parts;
  const fault = faultBeside(state, parts);
  if (halt !== undefined && outcome?.kind === "released" && outcome.message === "budget")
    return { next: "outcome", outcome: halt };
  if (hasLostSession) return { next: "fresh_session" };
  // The program had finished its work but did not exit. The outcome of its work counts.
  const isDone = ownStop === "lingering" || ownStop === "background";
  const isOurs = fault !== undefined && (ownStop === "idle" || ownStop === "quota");
  const isJudged = outcome === undefined || isDone || isSignal(outcome) || isOurs;
  if (!isJudged)
    return {
      next: "outcome",
      outcome: end.wasShort === true && ownStop === "idle" ? CUT : outcome,
    };
  if (fault === undefined) noteReset(state, parts.refused);
  else endWith(state, fault);
  const exitCode = isDone ? 0 : end.outcome === undefined ? end.exitCode : null;
  const signal = !isDone && outcome?.kind === "failed" ? outcome.signal : null;
  return judgeRun(state, { exitCode, signal, lastWords }, facts);
}

/** Why the run ended, where its stream does not say it. */
function faultBeside(
  state: RunState,
  { ownStop, refused, isSilentAtLimit, facts }: EndParts,
): FaultBeside | undefined {
  if (refused !== undefined && mayDoubt(state, refused, { ownStop, isSilentAtLimit, facts }))
    return refused;
  const text = ownStop === "idle" ? explainSilence(state, isSilentAtLimit, facts) : undefined;
  return text === undefined ? undefined : { fault: "limit", text };
}

/** Whether the meter knows better than the stream, when the last request of a run was refused. */
function mayDoubt(
  { lastEnd, turn }: RunState,
  { fault }: FaultBeside,
  { ownStop, isSilentAtLimit, facts }: Pick<EndParts, "ownStop" | "isSilentAtLimit" | "facts">,
): boolean {
  if (ownStop === "quota") return true;
  // A program that always hangs must not go on for ever.
  if (ownStop === "idle") return fault === "limit" || (facts.silentRuns ?? 0) < SILENT_MAX;
  if (lastEnd === undefined || turn !== "ended") return ownStop === undefined;
  if (lastEnd.fault !== undefined) return VAGUE.has(lastEnd.fault);
  // Programs whose word is no proof also report a good end when they were refused.
  return isSilentAtLimit === true && (fault === "limit" || fault === "overload");
}

/** Why a silence counts as a used up quota; undefined: it does not. Some programs wait in silence for as long as the service told them to. */
function explainSilence(
  { lastStatus }: RunState,
  isSilentAtLimit: boolean | undefined,
  { silentRuns = 0, wasInTurn }: RunFacts,
): string | undefined {
  if (lastStatus === 429) return "the service answered 429, and the program was silent since";
  if (wasInTurn !== true || isSilentAtLimit !== true || silentRuns >= SILENT_MAX) return undefined;
  return `it was silent, and no tool ran: probably the quota is used up (${silentRuns + 1} of ${SILENT_MAX} runs in a row that count so)`;
}

function isSignal(outcome: AttemptOutcome): boolean {
  return outcome.kind === "failed" && outcome.failure === "signal";
}
