/**
 * Steps "prepare" and "run" of an attempt: its agent, what that needs for this run (a briefing, a drop folder, a worktree), and the run
 * itself, or the runner of a part.
 */
import fs from "node:fs";
import { type Assignment, brokenAgent, stoppedOutcome } from "../agents/agent.ts";
import type { Attached } from "../agents/attached.ts";
import { closeBackground } from "../agents/background.ts";
import { makeRunDir } from "../agents/program.ts";
import { withoutSecrets } from "../agents/secrets.ts";
import { messageOf } from "../core/errors.ts";
import { BUILT_IN_EXEC } from "../core/matching.ts";
import { runOf } from "../core/names.ts";
import { type AttemptOutcome, decide, deferred, invalid, retryPolicyOf } from "../core/outcome.ts";
import { type AgentSettings, isCoding, isFunction } from "../core/settings.ts";
import { dropDirOf } from "../core/state-tree.ts";
import { isOwnFileGone } from "../host/own-file-gone.ts";
import type { Claim } from "../mailbox/claim/claim.ts";
import { pathIn } from "../mailbox/files/trays.ts";
import { checkRun, isToBeChecked, lastCheckPath, markStart } from "./check.ts";
import type { Drop } from "./drop.ts";
import { ProseQuestion, stillAsks } from "./prose-question.ts";
import type { AssignedAgent, Attempt, AttemptTools, RunHooks, Runner } from "./runner.ts";
import { limiterFor, meterFor, wallsFor, wantsWorktree, withChecks } from "./task-defaults.ts";

/** A function, or another machine, leaves no process here. */
const WITHOUT_PROGRAM: ReadonlySet<AgentSettings["kind"]> = new Set(["module", "remote"]);

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
    const { secrets = [], booked = [] } = assigned?.assignment ?? {};
    if (secrets.length > 0) attempt.outcome = withoutSecrets(attempt.outcome, secrets);
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
  if (assigned !== undefined && mayBeWithPerson(attempt, assigned)) {
    const taken = await lookForPersonAt(tools, attempt, assigned);
    if (taken !== undefined) return taken;
  }
  const runner = isPlain(attempt) ? undefined : runners.find((one) => one.fits(attempt));
  // Who has no program waits for none: each step that is awaited costs a plain task something.
  let open = WITHOUT_PROGRAM.has(assigned?.agent.settings.kind ?? "module") ? undefined : assigned;
  const close = async ({ agent, assignment }: AssignedAgent): Promise<void> => {
    open = undefined;
    await closeBackground(agent, assignment);
  };
  const run = async (): Promise<AttemptOutcome> => {
    try {
      if (runner !== undefined) return await runner.run(attempt, hooks, assigned);
      if (assigned !== undefined) return await runPlain(tools, attempt, assigned);
      return invalid("ErrInvalidTask", "nothing here runs tasks of its kind");
    } finally {
      // Before its worktree is finished.
      if (open !== undefined) await close(open);
    }
  };
  let drop: Drop | undefined;
  try {
    const dropDir = assigned?.assignment.dropDir;
    if (dropDir !== undefined) drop = await prepare(tools, assigned, dropDir);
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
    if (open !== undefined) await close(open);
    if (drop !== undefined) await drop.close();
  }
}

/** Only the task of a coding agent can be with a person, and then none of its agents may begin. */
function mayBeWithPerson({ before, claim }: Attempt, { agent }: AssignedAgent): boolean {
  return claim.name.isBatch !== true && (before !== undefined || isCoding(agent.settings));
}

/** @returns why the run must not begin */
async function lookForPersonAt(
  { tree }: AttemptTools,
  { claim: { name } }: Attempt,
  { assignment }: AssignedAgent,
): Promise<AttemptOutcome | undefined> {
  const { lookForPerson } = await import("../agents/attached.ts");
  const found = await lookForPerson(tree.dir, name.id, name.submission);
  if ("kind" in found) return found;
  assignment.person = found;
  return undefined;
}

/** A plain task is one call of its agent. See `Runner.fits`. */
function isPlain({ decoded }: Attempt): boolean {
  if (decoded === undefined) return false;
  const { type, metadata, group } = decoded.task;
  return type === undefined && metadata === undefined && group === undefined;
}

/** Gives a run of an agent its briefing and its drop folder. Without the folder it could not send anything, and gets no briefing. @throws a system error */
async function prepare(
  tools: AttemptTools,
  assigned: AssignedAgent | undefined,
  dropDir: string,
): Promise<Drop> {
  await brief(tools, assigned);
  return openDrop(tools, dropDir);
}

/** Adds the briefing of a part. Only a coding agent gets one. */
async function brief(tools: AttemptTools, assigned: AssignedAgent | undefined): Promise<void> {
  const { makeBriefing } = tools;
  if (assigned === undefined || makeBriefing === undefined) return;
  const { agent, assignment } = assigned;
  if (!isCoding(agent.settings)) return;
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
  { claim, decoded, stop, subject, usage, standIn }: Attempt,
  { onProgress, onStuck }: RunHooks,
): AssignedAgent | undefined {
  const agent = standIn ?? tools.agents.get(subject.agent_id);
  if (decoded === undefined || agent === undefined) return undefined;
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
      mayHaveWaited: isCoding(agent.settings) || wantsWorktree(decoded.task, agent.settings),
    }),
    settings: tools.settings,
    stop,
    usage,
    booked: [],
    limiter: limiterFor(tools, decoded.task, agent.settings),
    walls: wallsFor(tools, agent.settings),
    makeMeter: meterFor(tools, agent.settings),
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
  if (name.attempt === 1 && !mayHaveWaited) return {};
  const path = lastCheckPath(tree.sessions, name.id, lease);
  return fs.existsSync(path) ? { lastCheck: path } : {};
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

/** @returns the outcome when the person's word is enough, or the run cannot begin */
async function hearPerson(
  { claim }: Attempt,
  assignment: Assignment,
  document: Attached,
): Promise<AttemptOutcome | undefined> {
  const { afterPerson } = await import("../agents/stream/beside-person.ts");
  return afterPerson(assignment, document, claim.name.submission);
}

/** Runs its agent once, then has the run checked. */
async function runPlain(
  tools: AttemptTools,
  attempt: Attempt,
  assigned: AssignedAgent,
): Promise<AttemptOutcome> {
  const { agent, assignment } = assigned;
  const hindrance =
    markStart(assignment) ??
    (assignment.lastCheck === undefined ? undefined : stillAsks(assignment));
  if (hindrance !== undefined) return hindrance;
  const document = assignment.person?.document;
  const said = document && (await hearPerson(attempt, assignment, document));
  const prose =
    isCoding(agent.settings) && said === undefined
      ? await ProseQuestion.before(tools, assignment)
      : undefined;
  const outcome = said ?? (await agent.run(assignment));
  if (outcome.kind !== "completed") return outcome;
  if (!isToBeChecked(assignment, prose)) return outcome;
  const { startedMonotonicMs: startedMs } = attempt;
  return checkRun(assigned, outcome, { startedMs, clock: tools.trays.clock, prose });
}
