/** One attempt as a pipeline of named steps over one record: claimed → read → announced → run → decided → ended. */
import fs from "node:fs";
import {
  type Assignment,
  brokenAgent,
  StopSignal,
  stoppedOutcome,
  timeoutOf,
} from "../agents/agent.ts";
import { closeBackground } from "../agents/background.ts";
import { makeRunDir } from "../agents/program.ts";
import { withoutSecrets } from "../agents/secrets.ts";
import { encodeRecord } from "../codec/records.ts";
import { wallSeconds } from "../core/clock.ts";
import { ErrInvalidTask, messageOf } from "../core/errors.ts";
import { BATCH_AGENT, BUILT_IN_EXEC, matchAgent } from "../core/matching.ts";
import { leaseOf, runOf } from "../core/names.ts";
import {
  type AttemptOutcome,
  type Decision,
  decide,
  deferred,
  errorText,
  failed,
  retryPolicyOf,
} from "../core/outcome.ts";
import { type AgentSettings, CODING_AGENTS, isFunction } from "../core/settings.ts";
import { dropDirOf } from "../core/state-tree.ts";
import type { ResultRecord } from "../core/task.ts";
import { isOwnFileGone } from "../host/own-file-gone.ts";
import { type Claim, readClaim } from "../mailbox/claim/claim.ts";
import { pathIn } from "../mailbox/files/trays.ts";
import { newDeadLetter } from "../mailbox/settle/dead-letter.ts";
import { newSettlement, type Settlement } from "../mailbox/settle/settle.ts";
import { withChecks } from "./checks.ts";
import type { Drop } from "./drop.ts";
import { judgeIdle, markStart } from "./expected-files.ts";
import { isRed, keepLastCheck, lastCheckPath } from "./last-check.ts";
import { explainUnlimited, limiterFor } from "./limited.ts";
import { ProseQuestion, stillAsks } from "./prose-question.ts";
import type { AssignedAgent, Attempt, AttemptTools, RunHooks, Runner } from "./runner.ts";
import { isVerified, runVerify } from "./verify.ts";
import { wantsWorktree } from "./workspace.ts";

/** A function, or another machine, leaves no process here. */
const WITHOUT_PROGRAM: ReadonlySet<AgentSettings["kind"]> = new Set(["module", "remote"]);

/** Step "read": makes an attempt with its task and agent from a fresh claim. An invalid file gets its outcome here. */
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
  const match = matchAgent(task, tools.settings.agents);
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
  const unlimited = explainUnlimited(tools, task, match.agent);
  if (unlimited !== undefined) attempt.outcome = invalid("ErrInvalidTask", unlimited);
  const limitMs = task.timeout_ms ?? match.agent.timeout_ms ?? tools.settings.timeout_ms;
  if (limitMs > 0 && isFunction(match.agent))
    attempt.deadlineMs = attempt.startedMonotonicMs + limitMs + 2 * tools.settings.grace_ms + 1000;
  return attempt;
}

/**
 * Makes the run's directory if the journals could not report the start. If this process dies, the directory shows that the run
 * began. If it cannot be made, the run does not start.
 */
export function leaveTrace(tools: AttemptTools, attempt: Attempt): void {
  const { claim } = attempt;
  if (claim.name.isBatch !== true)
    attempt.outcome ??= makeRunDir(pathIn(tools.tree.runs, runOf(claim.name)));
}

/** Step "run". Resolves with the outcome; never rejects. @param runners the first one that fits runs the attempt */
export async function runAttempt(
  tools: AttemptTools,
  runners: readonly Runner[],
  attempt: Attempt,
  hooks: RunHooks,
): Promise<void> {
  if (attempt.outcome === undefined) {
    let assigned: AssignedAgent | undefined;
    // Everything that may throw is inside: an attempt that never gets an outcome would keep its slot and its task.
    try {
      assigned = assign(tools, attempt, hooks);
      attempt.outcome = await runAssigned(tools, runners, attempt, hooks, assigned);
    } catch (error) {
      attempt.outcome = isOwnFileGone(error)
        ? deferred("mailchute was installed again while it ran: restart it")
        : brokenAgent(attempt.subject.agent_id, error);
    }
    attempt.outcome = withoutSecrets(attempt.outcome, assigned?.assignment.secrets ?? []);
    const { booked = [] } = assigned?.assignment ?? {};
    if (attempt.outcome.kind === "failed" && booked.length > 0)
      (await import("../agents/book-cost.ts")).bookFailed(tools.tree.dir, booked);
  }
  attempt.durationMs = Math.round(tools.trays.clock.monotonicMs() - attempt.startedMonotonicMs);
}

/** @throws what the agent throws, and the error of a file of ours that an upgrade has removed */
async function runAssigned(
  tools: AttemptTools,
  runners: readonly Runner[],
  attempt: Attempt,
  hooks: RunHooks,
  assigned: AssignedAgent | undefined,
): Promise<AttemptOutcome> {
  const runner = runners.find((one) => one.fits(attempt));
  let isOpen = assigned !== undefined && !WITHOUT_PROGRAM.has(assigned.agent.settings.kind);
  const close = async (): Promise<void> => {
    if (!isOpen || assigned === undefined) return;
    isOpen = false;
    await closeBackground(assigned.agent, assigned.assignment);
  };
  const run = async (): Promise<AttemptOutcome> => {
    try {
      if (runner !== undefined) return await runner.run(attempt, hooks, assigned);
      if (assigned !== undefined) return await runPlain(tools, attempt, assigned);
      return invalid("ErrInvalidTask", "nothing here runs tasks of its kind");
    } finally {
      // Before its worktree is finished.
      await close();
    }
  };
  let drop: Drop | undefined;
  try {
    drop = await prepare(tools, assigned);
  } catch (error) {
    if (isOwnFileGone(error)) throw error;
    // The disk is full, say. That is not the fault of the task.
    return deferred(`cannot prepare its run: ${messageOf(error)}`);
  }
  try {
    const isApart =
      assigned !== undefined && wantsWorktree(assigned.assignment.task, assigned.agent.settings);
    return isApart ? await runInWorkspace(tools, attempt, assigned, run) : await run();
  } finally {
    await close();
    await drop?.close();
  }
}

/** Gives a run of an agent its briefing and its drop folder. @throws a system error */
async function prepare(
  tools: AttemptTools,
  assigned: AssignedAgent | undefined,
): Promise<Drop | undefined> {
  const dropDir = assigned?.assignment.dropDir;
  // Without the drop folder the run could not send anything, so it gets no briefing.
  if (dropDir === undefined) return undefined;
  await brief(tools, assigned);
  return openDrop(tools, dropDir);
}

/** Adds the briefing of a part. Only a coding agent gets one. */
async function brief(tools: AttemptTools, assigned: AssignedAgent | undefined): Promise<void> {
  const { makeBriefing } = tools;
  if (assigned === undefined || makeBriefing === undefined) return;
  const { agent, assignment } = assigned;
  if (!CODING_AGENTS.some((kind) => kind === agent.settings.kind)) return;
  const briefing = await makeBriefing(tools, assigned);
  if (briefing !== undefined) assignment.briefing = briefing;
}

/** The module is loaded only for runs of agents. First it takes the drops of dead workers: an earlier run of a task may have left them. */
async function openDrop(tools: AttemptTools, dir: string): Promise<Drop> {
  const { Drop, takeLeftDrops } = await import("./drop.ts");
  await takeLeftDrops(tools);
  const drop = new Drop(tools, dir);
  drop.open();
  return drop;
}

function assign(
  tools: AttemptTools,
  { claim, decoded, stop, subject, usage }: Attempt,
  { onProgress, onStuck }: RunHooks,
): AssignedAgent | undefined {
  const agent = tools.agents.get(subject.agent_id);
  if (decoded === undefined || agent === undefined) return undefined;
  const isCoding = CODING_AGENTS.some((kind) => kind === agent.settings.kind);
  const assignment: Assignment = {
    task: withChecks(decoded.task, agent.settings),
    taskText: decoded.text,
    attempt: claim.name.attempt,
    lease: subject.lease,
    claimFile: claim.path,
    runDir: pathIn(tools.tree.runs, runOf(claim.name)),
    stateDir: tools.tree.dir,
    // A task's own `exec` is a program of the user, which can write into the inbox itself.
    ...(isFunction(agent.settings) || agent.settings === BUILT_IN_EXEC
      ? {}
      : { dropDir: dropDirOf(tools.tree, claim.name.id, subject.lease) }),
    ...lastCheckOf(tools, claim, {
      lease: subject.lease,
      mayHaveWaited: isCoding || wantsWorktree(decoded.task, agent.settings),
    }),
    settings: tools.settings,
    stop,
    usage,
    booked: [],
    limiter: limiterFor(tools, decoded.task, agent.settings),
    onProgress,
    onStuck,
  };
  return { agent, assignment };
}

/** The text of the last check, if the task ran before. A run that waited for a person has used up no attempt. */
function lastCheckOf(
  { tree }: AttemptTools,
  { name }: Claim,
  { lease, mayHaveWaited }: { lease: string; mayHaveWaited: boolean },
): Pick<Assignment, "lastCheck"> {
  const mayHaveRun = name.attempt > 1 || mayHaveWaited;
  const path = lastCheckPath(tree.sessions, name.id, lease);
  return mayHaveRun && fs.existsSync(path) ? { lastCheck: path } : {};
}

/** Runs the attempt in its own worktree. */
async function runInWorkspace(
  tools: AttemptTools,
  attempt: Attempt,
  assigned: AssignedAgent,
  run: () => Promise<AttemptOutcome>,
): Promise<AttemptOutcome> {
  const { claim, stop, decoded } = attempt;
  const load = tools.loadWorkspaces;
  if (load === undefined)
    return invalid("ErrInvalidTask", "worktree: nothing here makes worktrees");
  if (isFunction(assigned.agent.settings))
    return invalid(
      "ErrInvalidTask",
      `worktree: the agent ${assigned.agent.name} is a function, which has no directory of its own`,
    );
  const workspace = await (await load(tools)).prepare(assigned);
  if ("kind" in workspace) return workspace;
  assigned.assignment.workspace = workspace;
  assigned.base = workspace.base;
  const outcome = stop.reason === undefined ? await run() : stoppedOutcome(stop.reason, 0);
  // A worker that has lost the lease leaves the worktree to the worker that holds the lease now.
  if (stop.reason === "fenced") return outcome;
  const policy = retryPolicyOf(tools.settings, decoded?.task);
  const { action } = decide(outcome, claim.name.attempt, policy, 0);
  const isLast = action === "complete" || action === "fail";
  const finished = await workspace.finish(outcome, isLast);
  if (finished.work !== undefined) attempt.work = finished.work;
  attempt.kept = finished.kept ?? {};
  return finished.outcome;
}

/** Runs its agent once, then checks the task's `expect_files` and `verify`. */
async function runPlain(
  tools: AttemptTools,
  attempt: Attempt,
  assigned: AssignedAgent,
): Promise<AttemptOutcome> {
  const { agent, assignment } = assigned;
  const hindrance = markStart(assignment) ?? stillAsks(assignment);
  if (hindrance !== undefined) return hindrance;
  const prose = await ProseQuestion.before(tools, agent.settings, assignment);
  const outcome = await agent.run(assignment);
  if (outcome.kind !== "completed") return outcome;
  const isChecked = isVerified(assignment.task);
  const idle = isChecked ? judgeIdle(agent.settings, assignment, outcome.output) : undefined;
  if (idle !== undefined) return idle;
  const limitMs = timeoutOf(assignment, agent.settings);
  const now = (): number => tools.trays.clock.monotonicMs();
  const fault = isChecked
    ? await runVerify(assignment, limitMs, attempt.startedMonotonicMs, now)
    : undefined;
  const mayAsk = isChecked ? isRed(fault) : true;
  const asked = mayAsk ? await prose?.after(outcome) : undefined;
  const judged = asked ?? (await judge(assigned, fault));
  const question = judged?.kind === "deferred" ? judged.question : undefined;
  if (keepLastCheck(assignment, fault, question)) agent.keepSession(assignment);
  return judged ?? (isChecked ? agent.reopen(assignment) : undefined) ?? outcome;
}

/** The module is loaded only when a check is red. */
async function judge(
  assigned: AssignedAgent,
  fault: AttemptOutcome | undefined,
): Promise<AttemptOutcome | undefined> {
  if (fault === undefined || assigned.base === undefined) return fault;
  const { judgeByBase } = await import("./base-check.ts");
  return judgeByBase(assigned, fault);
}

/** Step "decided": decides what happens after this outcome. If the task ends, makes its record. */
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
      ...attempt.usage,
      completed_at: wallSeconds(trays.clock),
      attempts: subject.attempt,
      agent_id: subject.agent_id,
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
    ...batch,
    ...(outcome.output === undefined ? {} : { output: outcome.output }),
  };
  return newDeadLetter(trays, claim, facts, decoded);
}

function invalid(code: string, message: string): AttemptOutcome {
  return failed("invalid", code, message, { canRetry: false });
}
