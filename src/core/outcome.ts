/** What an attempt came to, as facts, and what follows from them. Pure. */
import type { FailureKind } from "./task.ts";

export type AttemptOutcome =
  | {
      kind: "completed";
      output: unknown;
      verdict: string;
      verdictReason: string;
      exitCode: number | null;
    }
  | {
      kind: "failed";
      failure: FailureKind;
      code: string;
      message: string;
      /** What the program said last: for its record, not for the journals, because it may hold secrets. */
      lastWords?: string;
      /** What a node's run said: an Envelope. */
      output?: unknown;
      exitCode: number | null;
      signal: string | null;
      /** False when another run cannot help (exit 64, 65, 78; program not found). */
      canRetry: boolean;
    }
  /** Try later whatever the policy, without using up an attempt (exit 75). */
  | { kind: "deferred"; message: string; delayMs: number | null }
  /** Given back without using up an attempt: graceful stop, `cancel --requeue`. */
  | { kind: "released"; message: string };

/** sysexits(3): data and configuration errors do not get better by running again. */
const EXIT_NO_RETRY: ReadonlySet<number> = new Set([64, 65, 78]);
const EXIT_TRY_LATER = 75;

/** The outcome of a program that ended by itself with this exit code. Rule: `product.md`, "Task file". */
export function outcomeOfExit(
  exitCode: number,
  report: {
    output: unknown;
    verdict: string;
    verdictReason: string;
    status: string | null;
    message: string | null;
  },
): AttemptOutcome {
  if (exitCode === EXIT_TRY_LATER) {
    return {
      kind: "deferred",
      message: report.message ?? "the program asks to be run later (exit 75)",
      delayMs: null,
    };
  }
  if (exitCode !== 0) {
    const canRetry = !EXIT_NO_RETRY.has(exitCode);
    return {
      kind: "failed",
      failure: "exit",
      code: "ErrExit",
      message:
        report.message ??
        `the program ended with exit code ${exitCode}${canRetry ? "" : ", which means: do not retry"}`,
      exitCode,
      signal: null,
      canRetry,
    };
  }
  // A program that reports failure in words failed, whatever its exit code says.
  if (report.status === "fail") {
    return {
      kind: "failed",
      failure: "exit",
      code: "ErrReportedFailure",
      message: report.message ?? "the program exited with 0 but its result says status: fail",
      exitCode,
      signal: null,
      canRetry: true,
    };
  }
  return {
    kind: "completed",
    output: report.output,
    verdict: report.verdict,
    verdictReason: report.verdictReason,
    exitCode,
  };
}

export interface RetryPolicy {
  maxAttempts: number;
  backoffMs: number;
  backoffMaxMs: number;
}

export type Decision =
  | { action: "complete" }
  | { action: "fail" }
  | { action: "retry"; delayMs: number }
  | { action: "release"; delayMs: number };

/**
 * What to do with attempt number `attempt` (from 1) that ended with `outcome`.
 * @param random uniform in [0, 1), for jitter
 */
export function decide(
  outcome: AttemptOutcome,
  attempt: number,
  policy: RetryPolicy,
  random: number,
): Decision {
  switch (outcome.kind) {
    case "completed":
      return { action: "complete" };
    case "released":
      return { action: "release", delayMs: 0 };
    case "deferred":
      return { action: "release", delayMs: outcome.delayMs ?? backoffMs(attempt, policy, random) };
    case "failed":
      if (!outcome.canRetry || attempt >= policy.maxAttempts) return { action: "fail" };
      return { action: "retry", delayMs: backoffMs(attempt, policy, random) };
  }
}

/** Exponential backoff with jitter: between 75 % and 125 % of `backoffMs × 2^(attempt-1)`, never above `backoffMaxMs`. */
export function backoffMs(attempt: number, policy: RetryPolicy, random: number): number {
  const full = Math.min(policy.backoffMs * 2 ** Math.min(attempt - 1, 40), policy.backoffMaxMs);
  return Math.min(Math.round(full * (0.75 + random / 2)), policy.backoffMaxMs);
}
