/** The outcome of an attempt, and the decision about what to do after it. Pure. */
import { messageOf } from "./errors.ts";
import { isObject } from "./json-object.ts";
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
  /** The end of the program's stderr. It is put into the record, but not into the journals, because it may hold secrets. */
  lastWords?: string;
  /** The result of a node's run: an Envelope. */
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
  /** True when the disk or the operating system refused something. The task is retried with a growing delay, without limit. */
  isHindered?: boolean;
  /** The question that it waits for. */
  question?: string;
  /** The task waits until this gate, such as `quota-default`, opens: see stage "hold" in `names.ts`. */
  hold?: string;
  /** Only its agent is closed: another agent of the task may run it. */
  isOfAgent?: true;
}

export type AttemptOutcome =
  | Completed
  | Failed
  /** The task is tried later. This uses up no attempt (exit 75). */
  | Deferred
  /** The task is given back, after a graceful stop or `cancel --requeue`. This uses up no attempt. */
  | { kind: "released"; message: string };

/** Makes a failure that can be retried and has no exit code and no signal, unless `more` says otherwise. */
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
 * The text of a failure for an error record. The program's own words come first, because an exit code explains little, and
 * lists and notices show only the beginning. After a signal, our message comes first, because the program did not end itself.
 */
export function errorText({ failure, message, lastWords = "" }: Failed): string {
  if (lastWords === "") return message;
  return failure === "signal" ? `${message}: ${lastWords}` : `${lastWords} (${message})`;
}

/** The most useful line of an error, for a place with room for one line. Programs write at the end why they stop. */
export function headlineOf(error: string): string {
  const lines = error.split("\n").filter((line) => line.trim() !== "");
  const last = lines.at(-1) ?? "";
  return (LAST_WORDS_END.test(last) ? last : (lines[0] ?? "")).trim();
}

/** The end of an `errorText` that begins with the program's own words. */
const LAST_WORDS_END = /\((?:the program|verify: ).* ended with exit code \d+[^)]*\)$/;

/** The disk or the operating system refused something. This uses up no attempt. */
export function deferred(message: string): Deferred {
  return { kind: "deferred", message, delayMs: null, isHindered: true };
}

/** The task itself is at fault, so no other run would help. */
export function invalid(code: string, message: string): Failed {
  return failed("invalid", code, message, { canRetry: false });
}

/** The failure of a run whose output cannot be written to a record: it is too long, or changes each time it is read. */
export function unwritable(error: unknown): Failed {
  const message = `its result cannot be recorded: ${messageOf(error)}`;
  return failed("handler", "ErrAgent", message);
}

/** Exit codes of sysexits(3) for wrong usage, data or configuration, which another run does not mend. */
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

/**
 * How often a task, a node or its JSON says that it may run: `retry_policy.max_attempts`, which counts before `max_attempts`.
 * Undefined when it does not say so.
 */
export function readMaxAttempts(task: Readonly<Record<string, unknown>>): number | undefined {
  const { retry_policy: policy, max_attempts: own } = task;
  const inside = isObject(policy) ? (policy["max_attempts"] ?? policy["maxAttempts"]) : undefined;
  const found = inside ?? own;
  return typeof found === "number" ? found : undefined;
}

/** The settings decide when the task has no `max_attempts`. @param task undefined when the task cannot be read */
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
  /** `delayMs` is for work that cannot wait at a gate, such as a line of a batch. */
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
