/**
 * Decides what to do when a run of a coding agent has ended. Evidence decides, not what the agent says. Pure. Rule: docs/agents.md.
 */
import { RESULT_SCAN_BYTES_MAX } from "../../core/limits.ts";
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import type { TurnFault } from "./facts.ts";
import type { RunState } from "./run-state.ts";

export interface ProgramExit {
  exitCode: number | null;
  signal: string | null;
  /** The end of what it wrote to stderr. */
  lastWords: string;
}

/** A kind may need one more try before the outcome counts. */
export type RunVerdict =
  | { next: "outcome"; outcome: AttemptOutcome }
  /** The session is gone, or too long for the model. The agent runs once more, in a new session with a hand-off. */
  | { next: "fresh_session"; isTooLong?: true };

/** How much of a message of the program is in a record (characters). */
const MESSAGE_MAX = 4000;
/** How long after a 401 in the middle of a run the program is tried once more (ms). */
const AUTH_AGAIN_MS = 60_000;

export interface RunFacts {
  /** This run resumed a session. */
  isResumed: boolean;
  /** The service also refused the account (401) in the task's run before this one. */
  wasRefused: boolean;
  /** Epoch ms. */
  nowMs: number;
  /**
   * Finds the fault in the last words of a program whose stream has no end. Undefined when they name no fault.
   */
  faultOfLastWords?: (lastWords: string) => TurnFault | undefined;
  /** How many runs of the task before this one were silent, in a row. */
  silentRuns?: number;
  /** A turn was open when we stopped the program. */
  wasInTurn?: boolean;
  /** A new session was begun before because the old one was too long. */
  hasOverflowed?: boolean;
  /** We stopped the program when only its background tasks went on, so its exit code means nothing. */
  hasStoppedBackground?: boolean;
}

export function judgeRun(state: RunState, exit: ProgramExit, facts: RunFacts): RunVerdict {
  const fault = state.lastEnd === undefined ? wordsOf(exit, facts) : state.lastEnd.fault;
  if (fault === "lost_session" && facts.isResumed) return { next: "fresh_session" };
  // Without an answer the task itself is too long, and no new session helps.
  const isLong = facts.isResumed || state.hasAnswered;
  if (fault === "context" && isLong && facts.hasOverflowed !== true)
    return { next: "fresh_session", isTooLong: true };
  return { next: "outcome", outcome: outcomeOf(state, exit, facts) };
}

/** The fault that the program's last words name. Used when the stream does not name one. */
function wordsOf(exit: ProgramExit, facts: RunFacts): TurnFault | undefined {
  return exit.exitCode === 0 ? undefined : facts.faultOfLastWords?.(exit.lastWords);
}

function outcomeOf(state: RunState, exit: ProgramExit, facts: RunFacts): AttemptOutcome {
  const end = state.lastEnd;
  const more = { exitCode: exit.exitCode, signal: exit.signal, lastWords: exit.lastWords };
  const said = end === undefined ? wordsOf(exit, facts) : undefined;
  if (said !== undefined) return outcomeOfFault(said, exit.lastWords, state, facts);
  // If another turn has begun after a bad end, that turn may have mended the error.
  if (end?.fault !== undefined && state.turn === "ended")
    return outcomeOfFault(end.fault, end.text, state, facts);
  if (end === undefined || state.turn !== "ended") {
    // The service refused the program, and it ended without a message about that.
    if (state.isQuotaRefused) return outcomeOfFault("limit", "", state, facts);
    return failed(
      "interrupted",
      "ErrInterrupted",
      `the agent's stream has no end${how(exit)}`,
      more,
    );
  }
  // A run that went another way has done its work: the checks decide.
  if (state.denied.length > 0 && state.toolsDone === 0 && state.changedFiles === 0)
    return denied(state, more);
  const early = facts.hasStoppedBackground === true ? undefined : earlyExit(state, exit, more);
  if (early !== undefined) return early;
  const output = end.text === "" ? state.lastText : end.text;
  return {
    kind: "completed",
    // Keep the end, where a node's result is.
    output: output.slice(-RESULT_SCAN_BYTES_MAX),
    verdict: "unknown",
    verdictReason: reasonOf(state, facts),
    exitCode: exit.exitCode,
  };
}

function reasonOf({ denied: tools }: RunState, { hasStoppedBackground }: RunFacts): string {
  const reasons = [
    ...(hasStoppedBackground === true ? ["its background tasks went on and were stopped"] : []),
    ...(tools.length > 0
      ? [`it was not allowed to use ${[...new Set(tools)].join(", ")}, and went another way`]
      : []),
  ];
  return reasons.join("; ");
}

/** Its last turn ended well, but the program had a bad exit code, or ended before all was done. */
function earlyExit(state: RunState, exit: ProgramExit, more: object): AttemptOutcome | undefined {
  if (exit.signal !== null)
    return failed("signal", "ErrSignal", `it was ended by ${exit.signal}`, more);
  if (exit.exitCode !== 0)
    return failed(
      "exit",
      "ErrExit",
      `its last turn ended well, and the program ended with exit code ${exit.exitCode}`,
      more,
    );
  const missing = whatIsMissing(state);
  if (missing === undefined) return undefined;
  return failed("interrupted", "ErrInterrupted", `the program ended before ${missing}`, more);
}

function whatIsMissing(state: RunState): string | undefined {
  if (state.unanswered.size > 0) return "it answered its last message";
  if (state.background.length > 0) return "its background tasks ended";
  return state.isBackgroundNews ? "it looked at the results of its background tasks" : undefined;
}

function how({ exitCode, signal }: ProgramExit): string {
  return signal === null ? ` (exit code ${exitCode})` : ` (ended by ${signal})`;
}

function denied(state: RunState, more: object): AttemptOutcome {
  const tools = [...new Set(state.denied)].join(", ");
  return failed(
    "permission",
    "ErrPermission",
    `it was not allowed to use ${tools}; see permissions of the agent in config.yaml`,
    { ...more, canRetry: false },
  );
}

function outcomeOfFault(
  fault: TurnFault,
  message: string,
  state: RunState,
  { wasRefused, nowMs }: RunFacts,
): AttemptOutcome {
  const text = message.slice(0, MESSAGE_MAX);
  switch (fault) {
    case "limit": {
      const delayMs =
        state.quotaUntilMs === undefined ? null : Math.max(0, state.quotaUntilMs - nowMs);
      return { kind: "deferred", message: `the account is at its limit: ${text}`, delayMs };
    }
    case "overload":
      return { kind: "deferred", message: `the service is overloaded: ${text}`, delayMs: null };
    case "auth":
      return wasRefused
        ? failed("auth", "ErrAuth", `the account is not let in: ${text}`, { canRetry: false })
        : {
            kind: "deferred",
            message: `the account is not let in: ${text}`,
            delayMs: AUTH_AGAIN_MS,
          };
    case "config":
      return failed("config", "ErrAgentConfig", text, { canRetry: false });
    case "context":
    case "request":
      return failed("agent", "ErrAgentRequest", text, { canRetry: false });
    case "lost_session":
      return failed("interrupted", "ErrInterrupted", `its session is gone: ${text}`);
    case "interrupted":
      return failed("interrupted", "ErrInterrupted", `it was interrupted: ${text}`);
    case "empty":
    case "other":
      return failed("agent", "ErrAgentFailed", text);
  }
}
