/** One attempt as a pipeline of named steps over one record: claimed → read → announced → run → decided → ended. */
import {
  type Agent,
  type Assignment,
  brokenAgent,
  StopSignal,
  timeoutOf,
} from "../agents/agent.ts";
import { makeRunDir } from "../agents/program.ts";
import type { AgentRegistry } from "../agents/registry.ts";
import { readBrief } from "../codec/node-brief.ts";
import { encodeRecord } from "../codec/records.ts";
import type { DecodedTask } from "../codec/task-codec.ts";
import type { BatchCounts } from "../core/batch.ts";
import { wallSeconds } from "../core/clock.ts";
import { ErrInvalidTask, messageOf } from "../core/errors.ts";
import type { EventSubject } from "../core/events.ts";
import { BATCH_AGENT, matchAgent } from "../core/matching.ts";
import { leaseOf, runOf } from "../core/names.ts";
import {
  type AttemptOutcome,
  type Decision,
  decide,
  errorText,
  failed,
  hindered,
  retryPolicyOf,
} from "../core/outcome.ts";
import type { Settings } from "../core/settings.ts";
import type { ResultRecord } from "../core/task.ts";
import type { KvStore } from "../kv/store.ts";
import { type Claim, isHeld, readClaim } from "../mailbox/claim.ts";
import { newDeadLetter } from "../mailbox/dead-letter.ts";
import { newSettlement, type Settlement } from "../mailbox/settle.ts";
import { pathIn, type Trays } from "../mailbox/trays.ts";
import { runNode } from "../parts/plan/run/run-node.ts";
import { type BatchHooks, runBatch } from "./batch-run.ts";
import { runVerify } from "./verify.ts";

export interface Attempt {
  claim: Claim;
  /** The name it waited under. */
  readyFile: string;
  /** False when this worker found it by itself. */
  isOffered: boolean;
  subject: EventSubject;
  decoded: DecodedTask | undefined;
  startedWallMs: number;
  startedMonotonicMs: number;
  durationMs: number;
  /** Monotonic ms by which a well-behaved handler has let go; 0 = no limit. */
  deadlineMs: number;
  stop: StopSignal;
  outcome: AttemptOutcome | undefined;
  decision: Decision | undefined;
  settlement: Settlement | undefined;
  /** Since when it is held only until its delay is over (monotonic ms). */
  heldSinceMs?: number;
  /** Why no agent of this worker's settings fits: it is left to other workers. */
  unfitReason?: string;
  /** Of a batch, once it has ended. */
  counts?: BatchCounts;
}

export interface AttemptTools {
  trays: Trays;
  settings: Settings;
  agents: AgentRegistry;
  runsDir: string;
  evidenceDir: string;
  stateDir: string;
  kv: KvStore;
}

/** What a run tells while it lasts. */
export interface RunHooks extends BatchHooks {
  onPhase: (event: "phase_started" | "phase_finished", details: Record<string, unknown>) => void;
}

/** Step "read": from a fresh claim to an attempt that knows its task and agent. A bad file gets its outcome right here. */
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
    },
    decoded: undefined,
    startedWallMs: clock.wallMs(),
    startedMonotonicMs: clock.monotonicMs(),
    durationMs: 0,
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
    // It was good when it was accepted and is not now: replaced in between. Or the disk does not give it, or descriptors
    // ran out: then it waits, because a record without the task would be all that is left of it.
    attempt.outcome =
      error instanceof ErrInvalidTask
        ? invalid(error.code, messageOf(error))
        : hindered(`cannot read it: ${messageOf(error)}`);
    return attempt;
  }
  const { task } = attempt.decoded;
  const match = matchAgent(task, tools.settings.agents);
  const agent = match.agent === undefined ? undefined : tools.agents.get(match.agent.name);
  if (match.agent === undefined || agent === undefined) {
    attempt.subject.agent_id = task.agent ?? "none";
    const reason = match.agent === undefined ? match.reason : "this worker does not know the agent";
    // A task that our own supervisor offers fits no other worker better. A task that we found was selected by a supervisor
    // whose settings may be newer than ours.
    attempt.outcome = isOffered
      ? invalid("ErrInvalidConfig", reason)
      : { kind: "released", message: reason };
    if (!isOffered) attempt.unfitReason = reason;
    return attempt;
  }
  attempt.subject.agent_id = match.agent.name;
  const limitMs = task.timeout_ms ?? match.agent.timeout_ms ?? tools.settings.timeout_ms;
  if (limitMs > 0 && match.agent.kind === "module")
    attempt.deadlineMs = attempt.startedMonotonicMs + limitMs + 2 * tools.settings.grace_ms + 1000;
  return attempt;
}

/**
 * The journals do not say that it starts. Should this process die now, the directory of the run says so in their place; where
 * there can be none, it does not start.
 */
export function leaveTrace(tools: AttemptTools, attempt: Attempt): void {
  const { claim } = attempt;
  if (claim.name.isBatch !== true)
    attempt.outcome ??= makeRunDir(pathIn(tools.runsDir, runOf(claim.name)));
}

/** Step "run". Resolves with the outcome; never rejects. */
export async function runAttempt(
  tools: AttemptTools,
  attempt: Attempt,
  hooks: RunHooks,
): Promise<void> {
  const { decoded, claim } = attempt;
  if (claim.name.isBatch === true) {
    const end = await runBatch(tools, claim, attempt.stop, hooks);
    attempt.outcome = end.outcome;
    attempt.counts = end.counts;
  }
  const agent = tools.agents.get(attempt.subject.agent_id);
  if (attempt.outcome === undefined && decoded !== undefined && agent !== undefined) {
    const assignment: Assignment = {
      task: decoded.task,
      taskText: decoded.text,
      attempt: claim.name.attempt,
      lease: attempt.subject.lease,
      claimFile: claim.path,
      runDir: pathIn(tools.runsDir, runOf(claim.name)),
      stateDir: tools.stateDir,
      settings: tools.settings,
      stop: attempt.stop,
      onProgress: hooks.onProgress,
      onStuck: hooks.onStuck,
    };
    try {
      attempt.outcome = await runAssignment(tools, attempt, agent, assignment, hooks);
    } catch (error) {
      attempt.outcome = brokenAgent(agent.name, error);
    }
  }
  attempt.durationMs = Math.round(tools.trays.clock.monotonicMs() - attempt.startedMonotonicMs);
}

async function runAssignment(
  tools: AttemptTools,
  attempt: Attempt,
  agent: Agent,
  assignment: Assignment,
  hooks: RunHooks,
): Promise<AttemptOutcome> {
  const { task } = assignment;
  const { clock } = tools.trays;
  const brief = task.metadata?.["roadmap"] === undefined ? undefined : readBrief(task);
  if (brief !== undefined)
    return runNode({
      brief,
      name: attempt.claim.name,
      agent,
      assignment,
      startedMs: attempt.startedMonotonicMs,
      maxAttempts: retryPolicyOf(tools.settings, task).maxAttempts,
      evidenceDir: tools.evidenceDir,
      kv: tools.kv,
      clock,
      isDurable: tools.trays.durability === "power",
      isHeld: () => attempt.stop.reason !== "fenced" && isHeld(tools.trays, attempt.claim),
      onPhase: hooks.onPhase,
    });
  const outcome = await agent.run(assignment);
  if (outcome.kind !== "completed" || task.verify === undefined) return outcome;
  const limitMs = timeoutOf(assignment, agent.settings);
  const fault = await runVerify(assignment, limitMs, attempt.startedMonotonicMs, () =>
    clock.monotonicMs(),
  );
  return fault ?? outcome;
}

/** Step "decided": what follows from the outcome, and for the last attempt the record of it. */
export function decideAttempt(tools: AttemptTools, attempt: Attempt): Decision {
  const { settings, trays } = tools;
  const outcome: AttemptOutcome = attempt.outcome ?? {
    kind: "released",
    message: "it was not run",
  };
  const decision = decide(
    outcome,
    attempt.claim.name.attempt,
    retryPolicyOf(settings, attempt.decoded?.task),
    trays.clock.random(),
  );
  attempt.decision = decision;
  if (decision.action === "complete" || decision.action === "fail") {
    attempt.settlement = settlementOf(tools, attempt, outcome);
  }
  return decision;
}

function settlementOf(
  { trays }: AttemptTools,
  attempt: Attempt,
  outcome: AttemptOutcome,
): Settlement {
  const { subject, decoded, claim } = attempt;
  const run = runOf(claim.name);
  const batch = attempt.counts === undefined ? {} : { batch: attempt.counts };
  if (outcome.kind === "completed") {
    const record: ResultRecord = {
      task_id: subject.task_id,
      status: "completed",
      verdict: outcome.verdict,
      verdict_reason: outcome.verdictReason,
      output: outcome.output,
      duration_ms: attempt.durationMs,
      completed_at: wallSeconds(trays.clock),
      attempts: subject.attempt,
      agent_id: subject.agent_id,
      lease: subject.lease,
      exit_code: outcome.exitCode,
      run,
      ...batch,
    };
    return newSettlement(claim, "completed", encodeRecord(record, decoded?.text), claim.name.token);
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
    run: decoded === undefined && attempt.counts === undefined ? null : run,
    ...batch,
    ...(outcome.output === undefined ? {} : { output: outcome.output }),
  };
  return newDeadLetter(trays, claim, facts, decoded);
}

function invalid(code: string, message: string): AttemptOutcome {
  return failed("invalid", code, message, { canRetry: false });
}
