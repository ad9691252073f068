/** What a run of a coding agent that has ended leads to: evidence decides, not what it says. Pure. Rule: docs/agents.md. */
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import type { TurnFault } from "./facts.ts";
import type { RunState } from "./run-state.ts";

export interface ProgramExit {
  exitCode: number | null;
  signal: string | null;
  /** The end of what it wrote to stderr. */
  lastWords: string;
}

/** Where a kind needs one more try by itself before the outcome counts. */
export type RunVerdict =
  | { next: "outcome"; outcome: AttemptOutcome }
  /** The session that was to be resumed is gone: once more, in a new session with a hand-off. */
  | { next: "fresh_session" };

/** After a 401 in the middle of a run the program gets one more chance after so long (ms). */
const AUTH_AGAIN_MS = 60_000;

export interface RunFacts {
  /** This run resumed a session. */
  isResumed: boolean;
  /** The task's run before this one ended for the same reason: it was not let in. */
  wasRefused: boolean;
  /** Epoch ms. */
  nowMs: number;
}

export function judgeRun(state: RunState, exit: ProgramExit, facts: RunFacts): RunVerdict {
  const end = state.lastEnd;
  if (end?.fault === "lost_session" && facts.isResumed) return { next: "fresh_session" };
  return { next: "outcome", outcome: outcomeOf(state, exit, facts) };
}

function outcomeOf(state: RunState, exit: ProgramExit, facts: RunFacts): AttemptOutcome {
  const end = state.lastEnd;
  const more = { exitCode: exit.exitCode, signal: exit.signal, lastWords: exit.lastWords };
  if (end?.fault !== undefined) return outcomeOfFault(end.fault, end.text, state, facts);
  if (end === undefined || state.turn !== "ended") {
    // It was refused and left without a word about it.
    if (state.isQuotaRefused) return outcomeOfFault("limit", "", state, facts);
    return failed(
      "interrupted",
      "ErrInterrupted",
      `the agent's stream has no end${how(exit)}`,
      more,
    );
  }
  if (state.denied.length > 0) return denied(state, more);
  if (exit.signal !== null)
    return failed("signal", "ErrSignal", `it was ended by ${exit.signal}`, more);
  if (exit.exitCode !== 0)
    return failed(
      "exit",
      "ErrExit",
      `its last turn ended well, and the program ended with exit code ${exit.exitCode}`,
      more,
    );
  if (state.unanswered.size > 0)
    return failed(
      "interrupted",
      "ErrInterrupted",
      "the program ended before it answered its last message",
      more,
    );
  return {
    kind: "completed",
    output: end.text === "" ? state.lastText : end.text,
    verdict: "unknown",
    verdictReason: "",
    exitCode: exit.exitCode,
  };
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
  text: string,
  state: RunState,
  { wasRefused, nowMs }: RunFacts,
): AttemptOutcome {
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
    case "lost_session":
      return failed("interrupted", "ErrInterrupted", `its session is gone: ${text}`);
    case "interrupted":
      return failed("interrupted", "ErrInterrupted", `it was interrupted: ${text}`);
    case "other":
      return failed("agent", "ErrAgentFailed", text);
  }
}
