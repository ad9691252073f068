/** Says what a run has left on the branch of its task, and writes the order for its landing. */
import type { Assignment } from "../../agents/agent.ts";
import { readPrograms } from "../../codec/task-rules.ts";
import { compact } from "../../core/compact.ts";
import { ErrGit } from "../../core/errors.ts";
import { DEFAULT_TARGET, type Diffstat, landFieldsOf, type WorkFacts } from "../../core/landing.ts";
import { agentsOf, matchAgent } from "../../core/matching.ts";
import { refuseClash } from "../../git/refs.ts";
import { atCommonDir, commitOf, openRepository, type Repository } from "../../git/repository.ts";
import { askGit, gitText } from "../../git/run-git.ts";
import type { Snapshot } from "../../git/snapshot.ts";
import { statOf } from "../../host/regular-file.ts";
import { writeLanding } from "../../worker/landing-files.ts";
import type { AssignedAgent } from "../../worker/runner.ts";
import { baseOf, type MadeWorktree } from "./make.ts";
import { branchOf, changedRefOf, refsOf } from "./names.ts";

/** Called before anything starts. @throws ErrGit when work of this task could not land */
export async function refuseBadLanding(
  { agent, assignment: { task, settings } }: AssignedAgent,
  dir: string,
): Promise<void> {
  const fields = landFieldsOf(task, agent.settings);
  const { land, target = DEFAULT_TARGET, land_command: command, review_by: reviewer } = fields;
  if (land === "none") return;
  const fault = (message: string, hint: string): ErrGit => new ErrGit(message, { path: dir, hint });
  if (land === "exec" && (command ?? []).length === 0)
    throw fault("land: exec has no program", "give it land_command, a program with its arguments");
  if (fields.prove === true && task.verify === undefined)
    throw fault("prove: true has no verify", "give it verify, or a program in prove");
  const authors = agentsOf(matchAgent(task, settings.agents));
  if (reviewer === agent.name || authors.some(({ name }) => name === reviewer))
    throw fault(`review_by: ${reviewer} would review its own work`, "name another agent");
  const repository = await openRepository(dir);
  const call = { ...atCommonDir(repository), answers: [1] };
  const { code } = await askGit(call, "check-ref-format", `refs/heads/${target}`);
  if (code !== 0 || target.startsWith("-"))
    throw fault(`target: ${JSON.stringify(target)} is no name for a branch`, "give another target");
  if (target === branchOf(task.id))
    throw fault(`target: ${target} is the branch of the task itself`, "give another target");
  if (`${branchOf(task.id)}/`.startsWith(`${target}/`))
    throw fault(`target: ${target} is the folder of the task's own branch`, "give another target");
  await refuseClash(repository, `refs/heads/${target}`);
}

/** @returns undefined for a task whose work is not meant to land. @throws ErrGit, system errors */
export async function noteWork(
  { agent, assignment }: AssignedAgent,
  { repository, worktree }: MadeWorktree,
  snapshot: Snapshot,
): Promise<WorkFacts | undefined> {
  const { task, stateDir, lease } = assignment;
  const { id } = task;
  const fields = landFieldsOf(task, agent.settings);
  const { land, target = DEFAULT_TARGET, review_by, protect, verify_from, prove } = fields;
  const base = await baseOf(repository, id);
  if (land === "none" || base === undefined) return undefined;
  const { branch } = worktree;
  const tip = await commitOf(atCommonDir(repository), `refs/heads/${branch}`);
  const diffstat = await diffstatBetween(repository, base, snapshot.work);
  // A run may have removed the branch.
  const isUnmoved = tip === base || (tip === undefined && snapshot.held.length === 0);
  const isNothing = isUnmoved && diffstat.files === 0 && snapshot.uncommittable.length === 0;
  const work = { branch, base, target, diffstat };
  if (isNothing) return { landing: "nothing", ...work };
  const { verify, setup = readPrograms(agent.settings.setup ?? []), env = {} } = task;
  const { timeout_ms = agent.settings.timeout_ms } = task;
  writeLanding(stateDir, id, "order", {
    v: 1,
    task_id: id,
    lease,
    title: task.title ?? id,
    land,
    ...work,
    into_checkout: fields.land_into_checkout === true,
    command: fields.land_command ?? [],
    repository: repository.commonDir,
    prefix: repository.prefix,
    worktree: worktree.path,
    cwd: task.cwd ?? "",
    refs: refsOf(id),
    changed_ref: changedRefOf(id),
    agent: agent.name,
    ...othersOf(assignment, agent.name),
    checks: {
      setup,
      env: { ...env, ...assignment.workspace?.env },
      ...(verify === undefined ? {} : { verify }),
      ...(timeout_ms === undefined ? {} : { timeout_ms }),
    },
    prompt: task.prompt ?? null,
    has_exec: task.exec !== undefined,
    began_ms: Math.floor(statOf(worktree.gitDir)?.birthtimeMs ?? 0),
    ...compact({ review_by, protect, verify_from, prove }),
  });
  return { landing: land === "branch" ? "branch" : "pending", ...work };
}

/** The other agents that may mend the work, when its author cannot. */
function othersOf({ task, settings }: Assignment, author: string): { other_agents?: string[] } {
  const names = agentsOf(matchAgent(task, settings.agents)).map(({ name }) => name);
  const others = names.filter((name) => name !== author);
  return others.length === 0 ? {} : { other_agents: others };
}

async function diffstatBetween(
  repository: Repository,
  from: string,
  to: string,
): Promise<Diffstat> {
  const call = atCommonDir(repository);
  const text = await gitText(call, "diff", "--shortstat", from, to);
  const count = (what: RegExp): number => Number(what.exec(text)?.[1] ?? 0);
  return {
    files: count(/(\d+) files? changed/),
    insertions: count(/(\d+) insertion/),
    deletions: count(/(\d+) deletion/),
  };
}
