/**
 * One attempt is a value that goes through seven steps: claim, read, prepare, run, check, decide, settle. The first two are here, the
 * others in `run.ts`, `check.ts`, `decide.ts` and `settle.ts`. `worker.ts` calls them, and `runner.ts` has the type.
 */
import { StopSignal } from "../agents/agent.ts";
import { agentsBefore, matchChosen } from "../agents/chosen-agent.ts";
import { ErrInvalidTask, messageOf } from "../core/errors.ts";
import { BATCH_AGENT } from "../core/matching.ts";
import { leaseOf, parseName } from "../core/names.ts";
import { deferred, invalid } from "../core/outcome.ts";
import { isFunction } from "../core/settings.ts";
import { recordClaimed } from "../journal/attempts.ts";
import type { Telemetry } from "../journal/telemetry.ts";
import { type Claim, claimReady, readClaim } from "../mailbox/claim/claim.ts";
import type { ReadyFile } from "./ready-queue.ts";
import type { Attempt, AttemptTools } from "./runner.ts";
import { explainUnlimited } from "./task-defaults.ts";

/** Step "claim": renames the ready file to its lease, and reads it. @returns undefined when it is gone */
export function claimAttempt(
  tools: AttemptTools,
  { file, isOffered }: ReadyFile,
  owner: string,
): Attempt | undefined {
  const ready = parseName(file);
  if (ready === undefined || ready.stage !== "ready") return undefined;
  const claim = claimReady(tools.trays, ready, owner);
  return claim === undefined ? undefined : readAttempt(tools, claim, file, isOffered);
}

/** Step "read": makes the attempt, with its task and agent. An invalid file gets its outcome here. */
export function readAttempt(
  tools: AttemptTools,
  claim: Claim,
  readyFile: string,
  isOffered: boolean,
): Attempt {
  const { clock } = tools.trays;
  const attempt: Attempt = {
    claim,
    readyFile,
    isOffered,
    subject: {
      task_id: claim.name.id,
      agent_id: "",
      attempt: claim.name.attempt,
      lease: leaseOf(claim.name),
      group: undefined,
    },
    decoded: undefined,
    startedWallMs: clock.wallMs(),
    startedMonotonicMs: clock.monotonicMs(),
    durationMs: 0,
    usage: {},
    deadlineMs: 0,
    stop: new StopSignal(),
    outcome: undefined,
    decision: undefined,
    settlement: undefined,
  };
  if (claim.name.isBatch === true) {
    attempt.subject.agent_id = BATCH_AGENT;
    return attempt;
  }
  try {
    attempt.decoded = readClaim(tools.trays, claim);
  } catch (error) {
    attempt.subject.agent_id = "none";
    // The file was valid when it was accepted, so it was replaced since. Or the disk cannot be read, or descriptors ran out: the
    // task then waits, because a record made now would lack the task, and nothing else would keep it.
    attempt.outcome =
      error instanceof ErrInvalidTask
        ? invalid(error.code, messageOf(error))
        : deferred(`cannot read it: ${messageOf(error)}`);
    return attempt;
  }
  const { task } = attempt.decoded;
  attempt.subject.group = task.group;
  const match = matchChosen(tools.tree.sessions, task, tools.settings.agents);
  const agent = match.agent === undefined ? undefined : tools.agents.get(match.agent.name);
  if (match.agent === undefined || agent === undefined) {
    attempt.subject.agent_id = task.agent ?? "none";
    const reason = match.agent === undefined ? match.reason : "this worker does not know the agent";
    // If our own supervisor offers the task, no other worker fits it better. A task that we found ourselves may come from a
    // supervisor with newer settings than ours.
    attempt.outcome = isOffered
      ? invalid("ErrInvalidConfig", reason)
      : { kind: "released", message: reason };
    if (!isOffered) attempt.unfitReason = reason;
    return attempt;
  }
  attempt.subject.agent_id = match.agent.name;
  if (match.fallbacks !== undefined) attempt.before = agentsBefore(tools.tree.sessions, task.id);
  if (match.standsInFor !== undefined)
    attempt.standIn = tools.agents.standIn(match.agent, match.standsInFor);
  const unlimited = explainUnlimited(tools, task, match.agent);
  if (unlimited !== undefined) attempt.outcome = invalid("ErrInvalidTask", unlimited);
  const limitMs = task.timeout_ms ?? match.agent.timeout_ms ?? tools.settings.timeout_ms;
  if (limitMs > 0 && isFunction(match.agent))
    attempt.deadlineMs = attempt.startedMonotonicMs + limitMs + 2 * tools.settings.grace_ms + 1000;
  return attempt;
}

/** Notes for the journals that the attempt has its lease, and that its run starts unless a rate holds it back. */
export function noteClaimed(telemetry: Telemetry, attempt: Attempt): void {
  const { subject, startedWallMs, rates, isUnbegun } = attempt;
  recordClaimed(telemetry, subject, startedWallMs, {
    hasBegun: isUnbegun !== true,
    details: { ...(rates === undefined ? {} : { rates }), ...traceOf(attempt) },
  });
}

/** The trace of the program that submitted the task, for the journal lines of the attempt. */
export function traceOf({ decoded }: Attempt): { traceparent?: string } {
  const traceparent = decoded?.task.traceparent;
  return traceparent === undefined ? NO_TRACE : { traceparent };
}

const NO_TRACE = {};
