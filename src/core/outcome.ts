/** What an attempt came to, as facts, and what follows from them. Pure. */
import { messageOf } from "./errors.ts";
import type { Settings } from "./settings.ts";
import type { FailureKind, Task } from "./task.ts";

export interface Completed {
  kind: "completed";
  output: unknown;
  verdict: string;
  verdictReason: string;
  exitCode: number | null;
}

export interface Failed {
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

export interface Deferred {
  kind: "deferred";
  message: string;
  delayMs: number | null;
  /** True when the disk or the machine refused, and the task is not at fault: it is tried again with a growing delay, whatever the number of its run. */
  isHindered?: boolean;
  /** It waits for this gate, such as `quota-default`, for as long as that is closed: see stage "hold" in `names.ts`. */
  hold?: string;
}

export type AttemptOutcome =
  | Completed
  | Failed
  /** Try later whatever the policy, without using up an attempt (exit 75). */
  | Deferred
  /** Given back without using up an attempt: graceful stop, `cancel --requeue`. */
  | { kind: "released"; message: string };

/** A failure that another run may mend. It has no exit code and no signal, unless `more` has them. */
export function failed(
  failure: FailureKind,
  code: string,
  message: string,
  more: Partial<Omit<Failed, "kind" | "failure" | "code" | "message">> = {},
): Failed {
  return {
    kind: "failed",
    failure,
    code,
    message,
    exitCode: null,
    signal: null,
    canRetry: true,
    ...more,
  };
}

/**
 * What an error record says of a failure. What the program said itself comes first: lists and notices cut at the end, and the
 * number of an exit code explains nothing. A program that a signal has ended did not choose its last words: there the signal
 * comes first.
 */
export function errorText({ failure, message, lastWords = "" }: Failed): string {
  if (lastWords === "") return message;
  return failure === "signal" ? `${message}: ${lastWords}` : `${lastWords} (${message})`;
}

/** Of several lines the one that says most, for a place that has room for one. Programs say at the end why they stop. */
export function headlineOf(error: string): string {
  const lines = error.split("\n").filter((line) => line.trim() !== "");
  const last = lines.at(-1) ?? "";
  return (LAST_WORDS_END.test(last) ? last : (lines[0] ?? "")).trim();
}

/** How `errorText` ends when the program's own words come first. */
const LAST_WORDS_END = /\((?:the program|verify: ).* ended with exit code \d+[^)]*\)$/;

/** The disk or the machine refused: no attempt is used up by that. */
export function hindered(message: string): Deferred {
  return { kind: "deferred", message, delayMs: null, isHindered: true };
}

/** What it came to cannot be put into a record: it is too long for a string, or gives another text each time it is asked. */
export function unwritable(error: unknown): Failed {
  const message = `what it came to cannot be written down: ${messageOf(error)}`;
  return failed("handler", "ErrAgent", message);
}

/** sysexits(3): data and configuration errors do not get better by running again. */
const EXIT_NO_RETRY: ReadonlySet<number> = new Set([64, 65, 78]);
const EXIT_TRY_LATER = 75;

/** The outcome of a program that ended by itself with this exit code. Rule: docs/tasks.md. */
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
    const message =
      report.message ??
      `the program ended with exit code ${exitCode}${canRetry ? "" : ", which means: do not retry"}`;
    return failed("exit", "ErrExit", message, { exitCode, canRetry });
  }
  // A program that reports failure in words failed, whatever its exit code says.
  if (report.status === "fail") {
    const message = report.message ?? "the program exited with 0 but its result says status: fail";
    return failed("exit", "ErrReportedFailure", message, { exitCode });
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

/** @param task says how often it may run, or leaves it to the settings; undefined when it cannot be read */
export function retryPolicyOf(
  settings: Settings,
  task: Pick<Task, "max_attempts"> | undefined,
): RetryPolicy {
  const { retry } = settings;
  return {
    maxAttempts: task?.max_attempts ?? retry.max_attempts,
    backoffMs: retry.backoff_ms,
    backoffMaxMs: retry.backoff_max_ms,
  };
}

export type Decision =
  | { action: "complete" }
  | { action: "fail" }
  | { action: "retry"; delayMs: number }
  | { action: "release"; delayMs: number }
  /** `delayMs`: for what cannot wait at the gate, such as a line of a batch. */
  | { action: "hold"; gate: string; delayMs: number };

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
    case "deferred": {
      const delayMs = outcome.delayMs ?? backoffMs(attempt, policy, random);
      const { hold: gate } = outcome;
      return gate === undefined
        ? { action: "release", delayMs }
        : { action: "hold", gate, delayMs };
    }
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
