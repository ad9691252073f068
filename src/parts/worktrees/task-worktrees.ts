/** Gives the runs of tasks their worktrees: made before a run, saved after it, removed when nothing of worth is only there. */
import fs from "node:fs";
import { dirname } from "node:path";
import { resolveCwd } from "../../agents/program.ts";
import { MailchuteError, messageOf, systemCode } from "../../core/errors.ts";
import type { WorkFacts } from "../../core/landing.ts";
import { type AttemptOutcome, failed, hindered } from "../../core/outcome.ts";
import type { Task } from "../../core/task.ts";
import { makeRef } from "../../git/refs.ts";
import { atCommonDir, findGitDir, openRepository } from "../../git/repository.ts";
import { askGit, isDiskFull } from "../../git/run-git.ts";
import { inTurn } from "../../git/turn.ts";
import { LEASE_VARIABLE, STATE_VARIABLE } from "../../host/process-tree.ts";
import { say } from "../../host/say.ts";
import { Alerts } from "../../journal/alerts.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";
import type { AssignedAgent, AttemptTools } from "../../worker/runner.ts";
import { runSetup } from "../../worker/setup.ts";
import { type Workspace, type Workspaces, worktreeIdOf } from "../../worker/workspace.ts";
import { commitWork } from "./commit-work.ts";
import { lookAt, reasonsToStay } from "./holdings.ts";
import { readMade } from "./made-note.ts";
import { type MadeWorktree, makeWorktree, markReady } from "./make.ts";
import { changedRefOf, worktreesDir } from "./names.ts";
import { takePorts } from "./ports.ts";
import { dropLandedBranch, removeWorktree } from "./remove.ts";
import { type SaveOrder, saveWork } from "./save.ts";
import { changesBetween, readSettings } from "./settings-watch.ts";
import { noteWork, refuseBadLanding } from "./work-facts.ts";
import { isUnfinished, userOf, WorktreeTaken } from "./worktree-user.ts";

/** System errors that pass when there is room again. */
const NO_ROOM: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "ENOMEM"]);
/** Pause before a task looks again whether its worktree is free (ms). */
const TAKEN_AGAIN_MS = 2000;

export class TaskWorktrees implements Workspaces {
  private readonly tools: AttemptTools;

  constructor(tools: AttemptTools) {
    this.tools = tools;
  }

  async prepare(assigned: AssignedAgent): Promise<Workspace | AttemptOutcome> {
    const { assignment } = assigned;
    const { task, settings, stateDir, attempt, lease } = assignment;
    const id = worktreeIdOf(task);
    try {
      const dir = resolveCwd(assignment);
      await refuseBadLanding(assigned, dir);
      const { trays } = this.tools;
      const made = await makeWorktree({
        id,
        user: task.id,
        isUnfinished: (one) => isUnfinished(trays, one),
        attempt,
        dir,
        worktreesDir: worktreesDir(stateDir, settings),
        // When this process is killed, its git calls are found by these.
        env: { [LEASE_VARIABLE]: lease, [STATE_VARIABLE]: stateDir },
      });
      const { cwd, worktree } = made;
      const ports = await takePorts(worktree.path);
      const workspace = { cwd, env: { MAILCHUTE_PORT_BASE: String(ports) } };
      if (!made.isReady) {
        const fault = await runSetup({
          ...assigned,
          assignment: { ...assignment, workspace },
        });
        if (fault !== undefined) return fault;
        await markReady(id, made);
      }
      const finish: Workspace["finish"] = (outcome, isLast) =>
        this.finish(assigned, made, outcome, isLast);
      return { ...workspace, finish };
    } catch (error) {
      return unmade(error);
    }
  }

  /** The outcome stands, whatever happens here: what cannot be saved stays in the worktree. */
  private async finish(
    assigned: AssignedAgent,
    made: MadeWorktree,
    outcome: AttemptOutcome,
    isLast: boolean,
  ): Promise<WorkFacts | undefined> {
    const { task, attempt, settings, stateDir } = assigned.assignment;
    const { repository, worktree } = made;
    const id = worktreeIdOf(task);
    let work: WorkFacts | undefined;
    try {
      const changed = await this.markChanges(id, made);
      const withoutFilters = changed.length > 0;
      const order: SaveOrder = { repository, worktree, id, attempt, withoutFilters };
      // What runs with other settings may have been changed by a filter.
      if (outcome.kind === "completed" && !withoutFilters) await this.commit(order, task);
      const { snapshot } = await saveWork(order);
      if (isLast && outcome.kind === "completed") work = await noteWork(assigned, made, snapshot);
      const isForLanding = work?.landing === "pending" || id !== task.id;
      const mayGo = isLast && snapshot.missing.length === 0 && !withoutFilters && !isForLanding;
      if (!mayGo) return work;
      await inTurn(repository, async () => {
        const reasons = reasonsToStay(await lookAt(repository, worktree, id));
        if (reasons.length === 0)
          await removeWorktree(order, fs.realpathSync(worktreesDir(stateDir, settings)));
      });
    } catch (error) {
      const what = `task ${task.id} (${outcome.kind}): its work could not be saved or its worktree could not be removed, so it stays in ${worktree.path}: ${messageOf(error)}`;
      this.raise("worktree", what);
    }
    return work;
  }

  /** See `Workspaces.release`. */
  async release(order: LandingOrder, landed?: string): Promise<string[]> {
    const { task_id: id, branch, worktree: path } = order;
    const repository = await openRepository(order.repository);
    return inTurn(repository, async () => {
      const gitDir = findGitDir(repository, path);
      if (gitDir !== undefined) {
        const user = userOf(gitDir, id);
        if (user !== id && isUnfinished(this.tools.trays, user))
          return [`the task ${user} goes on there`];
        const worktree = { path: fs.existsSync(path) ? path : undefined, gitDir, branch };
        const holdings = await lookAt(repository, worktree, id);
        const reasons = reasonsToStay({ ...holdings, commits: 0 });
        if (reasons.length > 0) return reasons;
        const save = { repository, worktree, id, attempt: 0, withoutFilters: false };
        await removeWorktree(save, dirname(path));
      }
      if (landed !== undefined) await dropLandedBranch(repository, id, landed);
      return [];
    });
  }

  /** What cannot be committed is saved by the caller. */
  private async commit(order: SaveOrder, task: Task): Promise<void> {
    const reason = await commitWork(order, task).catch(messageOf);
    if (reason === undefined) return;
    const { path, branch } = order.worktree;
    this.raise(
      "worktree",
      `task ${task.id} has completed, and the branch ${branch} lacks work of it, which stays in ${path}: ${reason}`,
    );
  }

  /** Notices what the run changed in the settings of the repository, and leaves a mark that git keeps. */
  private async markChanges(id: string, { repository, worktree }: MadeWorktree): Promise<string[]> {
    const before = readMade(worktree.gitDir)?.settings;
    if (before === undefined) return [];
    const changed = changesBetween(before, await readSettings(repository));
    if (changed.length === 0) return changed;
    const input = `${changed.join("\n")}\n`;
    const call = { ...atCommonDir(repository), input };
    const { out } = await askGit(call, "hash-object", "-w", "--stdin");
    const ref = { name: changedRefOf(id), commit: out.toString().trim() };
    if (await makeRef(repository, ref))
      this.raise(
        "repository_settings",
        `task ${id}: while it ran, settings or hooks of ${repository.commonDir} changed: ${changed.join(", ")}. git obeys them in your own tree, too: look at them`,
      );
    return changed;
  }

  private raise(kind: string, message: string): void {
    const { tree, trays } = this.tools;
    new Alerts(tree.alerts, trays.clock, say).alert(kind, message);
  }
}

function unmade(error: unknown): AttemptOutcome {
  if (error instanceof WorktreeTaken)
    return { kind: "deferred", message: error.message, delayMs: TAKEN_AGAIN_MS };
  if (isDiskFull(error) || NO_ROOM.has(systemCode(error)))
    return hindered(`its worktree cannot be made: ${messageOf(error)}`);
  const { hint } = error instanceof MailchuteError ? error : {};
  if (hint === undefined) return failed("worktree", "ErrWorktree", messageOf(error));
  // It says what a person has to do: another run would fail in the same way.
  return failed("worktree", "ErrWorktree", `${messageOf(error)}; ${hint}`, { canRetry: false });
}
