/** Step "decide" of an attempt: what follows from the outcome of its run. If its task ends, its record is made here. */
import { encodeRecord } from "../codec/records.ts";
import { wallSeconds } from "../core/clock.ts";
import { runOf } from "../core/names.ts";
import {
  type AttemptOutcome,
  decide,
  errorText,
  retryPolicyOf,
  unwritable,
} from "../core/outcome.ts";
import type { ResultRecord } from "../core/task.ts";
import { newDeadLetter } from "../mailbox/settle/dead-letter.ts";
import { newSettlement, type Settlement } from "../mailbox/settle/settle.ts";
import type { Attempt, AttemptTools } from "./runner.ts";

/**
 * How long a failure is not judged after a signal from outside (ms). When all processes got the signal, as at shutdown, the
 * supervisor tells this worker in that time to give back its tasks, and the failure uses up no attempt.
 */
export const SHUTDOWN_MS = 1000;
/** The signals that a system sends to all processes when it shuts down. */
const SHUTDOWN_SIGNALS: ReadonlySet<string> = new Set(["SIGTERM", "SIGINT", "SIGHUP"]);
/** How long to wait for our own signal after a program ended by such a signal (ms): the system delivers them in any order. */
const OWN_SIGNAL_MS = 200;

/**
 * Recognizes a failure that was caused by a signal to all processes, as when the machine shuts down. Such a failure does not use up the
 * attempt: it may become a release.
 * @param untilMs until when a failure may be due to such a signal (monotonic ms); 0: this process got no signal
 * @returns ms to wait before the attempt can be decided; then call this again
 */
export function judgeSignal(attempt: Attempt, untilMs: number, nowMs: number): number {
  const { outcome, stop } = attempt;
  if (outcome?.kind !== "failed") return 0;
  if (untilMs === 0) {
    const mayBeOfSignal = stop.reason === undefined && SHUTDOWN_SIGNALS.has(outcome.signal ?? "");
    if (!mayBeOfSignal || attempt.hasAwaitedSignal === true) return 0;
    attempt.hasAwaitedSignal = true;
    return OWN_SIGNAL_MS;
  }
  if (stop.reason === "stop") {
    attempt.outcome = { kind: "released", message: "it was stopped with the machine" };
    return 0;
  }
  return Math.max(0, untilMs - nowMs);
}

/** Decides what happens after the outcome of the attempt. If the task ends, makes its record. */
export function decideAttempt(tools: AttemptTools, attempt: Attempt): void {
  const { hold, outcome } = attempt;
  if (hold !== undefined && outcome?.kind === "released")
    attempt.outcome = { kind: "deferred", message: hold.why, delayMs: 0, hold: hold.gate };
  try {
    decideOn(tools, attempt, attempt.outcome ?? { kind: "released", message: "it was not run" });
  } catch (error) {
    attempt.outcome = unwritable(error);
    decideOn(tools, attempt, attempt.outcome);
  }
}

function decideOn(tools: AttemptTools, attempt: Attempt, outcome: AttemptOutcome): void {
  const { settings, trays } = tools;
  const policy = retryPolicyOf(settings, attempt.decoded?.task);
  attempt.decision = decide(outcome, attempt.claim.name.attempt, policy, trays.clock.random());
  const { action } = attempt.decision;
  if (action === "complete" || action === "fail")
    attempt.settlement = settlementOf(tools, attempt, outcome);
}

function settlementOf(
  { trays }: AttemptTools,
  attempt: Attempt,
  outcome: AttemptOutcome,
): Settlement {
  const { subject, decoded, claim } = attempt;
  const run = runOf(claim.name);
  const { before: agents = [] } = attempt;
  const before = agents.length === 0 ? {} : { agents_before: [...agents] };
  const batch = attempt.counts === undefined ? {} : { batch: attempt.counts };
  if (outcome.kind === "completed") {
    const record: ResultRecord = {
      task_id: subject.task_id,
      status: "completed",
      verdict: outcome.verdict,
      verdict_reason: outcome.verdictReason,
      output: outcome.output,
      duration_ms: attempt.durationMs,
      ...attempt.usage,
      completed_at: wallSeconds(trays.clock),
      attempts: subject.attempt,
      agent_id: subject.agent_id,
      ...before,
      lease: subject.lease,
      exit_code: outcome.exitCode,
      run,
      ...attempt.work,
      ...attempt.kept,
      ...batch,
    };
    const bytes = encodeRecord(record, decoded?.text);
    return newSettlement(claim, "completed", bytes, claim.name.token, decoded?.task);
  }
  if (outcome.kind !== "failed")
    throw new Error(`an outcome of kind ${outcome.kind} is not settled`);
  const facts = {
    error: errorText(outcome),
    code: outcome.code,
    kind: outcome.failure,
    agentId: subject.agent_id,
    attempts: subject.attempt,
    lastAttemptAt: Math.floor(attempt.startedWallMs / 1000),
    exitCode: outcome.exitCode,
    signal: outcome.signal,
    canRetry: outcome.canRetry,
    run: decoded === undefined && attempt.counts === undefined ? null : run,
    usage: attempt.usage,
    kept: attempt.kept ?? {},
    ...before,
    ...batch,
    ...(outcome.output === undefined ? {} : { output: outcome.output }),
  };
  return newDeadLetter(trays, claim, facts, decoded);
}
