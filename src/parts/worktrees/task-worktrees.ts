/** Gives runs their worktrees: makes one before a run, saves it after the run, and removes it when all its work is elsewhere, too. */
import fs from "node:fs";
import { dirname } from "node:path";
import type { Assignment } from "../../agents/agent.ts";
import { resolveCwd } from "../../agents/program.ts";
import { MailchuteError, messageOf, systemCode } from "../../core/errors.ts";
import { branchToBuildOn, type KeptWork, type WorkFacts } from "../../core/landing.ts";
import { type AttemptOutcome, deferred, failed } from "../../core/outcome.ts";
import type { Task } from "../../core/task.ts";
import {
  changesDuring,
  changeText,
  endRun,
  type RunThere,
  type SettingsChange,
} from "../../git/kept-settings.ts";
import { privateGit } from "../../git/private-git.ts";
import { makeTextRef } from "../../git/refs.ts";
import {
  atCommonDir,
  commitOf,
  findGitDir,
  openRepository,
  type Repository,
} from "../../git/repository.ts";
import { isDiskFull } from "../../git/run-git.ts";
import { stampOfCheckout } from "../../git/status.ts";
import { inTurn } from "../../git/turn.ts";
import { type Worktree, worktreeAt } from "../../git/worktree.ts";
import { LEASE_VARIABLE, STATE_VARIABLE } from "../../host/process-tree.ts";
import { say } from "../../host/say.ts";
import { Alerts } from "../../journal/alerts.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";
import type {
  AssignedAgent,
  AttemptTools,
  Finished,
  Workspace,
  Workspaces,
} from "../../worker/runner.ts";
import { worktreeIdOf } from "../../worker/task-defaults.ts";
import { findAll } from "./all-worktrees.ts";
import { enterBase, findBase } from "./base.ts";
import { cleanWorktrees } from "./clean-worktrees.ts";
import { commitWork } from "./commit-work.ts";
import { DiskRoom, NoRoom, ROOM_GATE } from "./disk-room.ts";
import { type Holdings, lookAt, reasonsToStay } from "./holdings.ts";
import { isInUse } from "./in-use.ts";
import { dropStaleLocks, type MadeWorktree, makeWorktree, markReady, runOf } from "./make.ts";
import { changedRefOf, headLogOf, worktreesDir } from "./names.ts";
import { takePorts } from "./ports.ts";
import { dropLandedBranch, removeWorktree } from "./remove.ts";
import { isGone, type SaveOrder, saveWork } from "./save.ts";
import { setUp } from "./setup-cache.ts";
import { noteWork, refuseBadLanding } from "./work-facts.ts";
import { isUnfinished, userOf, WorktreeTaken } from "./worktree-user.ts";

/** System errors that end when there is room again. */
const NO_ROOM: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "ENOMEM"]);
/** Pause before a task looks again whether its worktree is free (ms). */
const TAKEN_AGAIN_MS = 2000;

/** A record names at most this many things that only a worktree has. */
const LEFT_MAX = 10;

/** How often it tries to save the work of a run. */
const KEEP_TRIES_MAX = 3;

type FinishedRun = [
  assigned: AssignedAgent,
  made: MadeWorktree,
  outcome: AttemptOutcome,
  isLast: boolean,
];

interface Kept {
  order: SaveOrder;
  work: WorkFacts | undefined;
  kept: KeptWork;
  /** True if branch and saves have all the work, so the worktree may be removed. */
  isWhole: boolean;
}

export class TaskWorktrees implements Workspaces {
  private readonly room: DiskRoom;

  constructor(private readonly tools: AttemptTools) {
    const { tree, settings, trays } = tools;
    this.room = new DiskRoom(tree, settings, trays);
  }

  async prepare(assigned: AssignedAgent): Promise<Workspace | AttemptOutcome> {
    const { assignment } = assigned;
    const { task, settings, stateDir, attempt, lease } = assignment;
    const id = worktreeIdOf(task);
    const run = this.runOf(assigned);
    let made: MadeWorktree | undefined;
    let isReady = false;
    try {
      const dir = resolveCwd(assignment);
      await refuseBadLanding(assigned, dir);
      const { trays } = this.tools;
      made = await makeWorktree({
        id,
        user: task.id,
        isUnfinished: (one) => isUnfinished(trays, one),
        attempt,
        dir,
        buildsOn: branchToBuildOn(task, assigned.agent.settings),
        worktreesDir: worktreesDir(stateDir, settings),
        takeRoom: (commonDir) => this.takeRoom(assignment, id, commonDir),
        // With these variables recovery finds the git calls of this process after it was killed.
        env: { [LEASE_VARIABLE]: lease, [STATE_VARIABLE]: stateDir },
      });
      const there = made;
      const { cwd, worktree, repository, found } = made;
      this.tell(repository, found);
      const ports = await takePorts(worktree.path);
      const workspace = {
        cwd,
        env: { MAILCHUTE_PORT_BASE: String(ports) },
        root: worktree.path,
        git: assignment.walls === undefined ? undefined : privateGit(repository, worktree),
      };
      const here = { ...assigned, assignment: { ...assignment, workspace } };
      const entered = await enterBase(here, made, dir);
      if (typeof entered === "object") return entered;
      const base = entered ? { base: () => findBase(here, there) } : {};
      if (!made.isReady) {
        const alert = (message: string): void => this.raise("cache", `task ${task.id}: ${message}`);
        const fault = await setUp({ here, id, made, alert });
        if (fault !== undefined) return fault;
        await markReady(id, made);
      }
      isReady = true;
      const finish: Workspace["finish"] = (outcome, isLast) =>
        this.finish(assigned, there, outcome, isLast);
      return { ...workspace, ...base, finish };
    } catch (error) {
      return unmade(error);
    } finally {
      this.room.release(id);
      // What `setup` has changed counts for the next run.
      if (made !== undefined && !isReady) await this.end(made.repository, run, false);
    }
  }

  private async takeRoom(
    { stateDir, settings }: Assignment,
    id: string,
    commonDir: string,
  ): Promise<void> {
    await this.room.take(id, commonDir, async () => {
      const { tree, trays } = this.tools;
      const mayGo = settings.worktree_ignored_may_go;
      const isLive = (one: string): boolean => isInUse(tree, trays, one);
      const wish = { ids: [], withIgnored: false, isDryRun: false, mayGo, isLive };
      const all = await findAll(stateDir, settings);
      await cleanWorktrees(all, { ...wish, mayLeaveBranch: true });
    });
  }

  private async finish(
    assigned: AssignedAgent,
    made: MadeWorktree,
    outcome: AttemptOutcome,
    isLast: boolean,
  ): Promise<Finished> {
    const { task, settings, stateDir } = assigned.assignment;
    const { repository, worktree } = made;
    const id = worktreeIdOf(task);
    const run = `task ${task.id} (${outcome.kind})`;
    let kept: Kept;
    try {
      kept = await this.keep(assigned, made, outcome, isLast);
    } catch (error) {
      const why = `its work could not be saved, so it stays in ${worktree.path}: ${messageOf(error)}`;
      this.raise("worktree", `${run}: ${why}`);
      await this.end(repository, this.runOf(assigned), false);
      // Work of a task that settles as completed now would never land.
      const kept = { work_left: [worktree.path] };
      return { outcome: outcome.kind === "completed" ? notDone(error, why) : outcome, kept };
    }
    await this.end(repository, this.runOf(assigned));
    const { order, work, isWhole } = kept;
    if (isGone(worktree)) fs.rmSync(headLogOf(repository.commonDir, id), { force: true });
    const isForLanding = work?.landing === "pending" || id !== task.id;
    if (isLast && isWhole && !isForLanding)
      await inTurn(repository, async () => {
        const reasons = reasonsToStay(await this.lookAt(repository, order.worktree, id));
        if (reasons.length > 0) return;
        const dir = fs.realpathSync(worktreesDir(stateDir, settings));
        const { left } = await removeWorktree(order, dir);
        if (left !== undefined) this.raise("worktree", `${run}: ${left}`);
        // What was left may go: it is named in `worktree_ignored_may_go`.
        delete kept.kept.work_left;
      }).catch((error: unknown) => {
        const why = `its worktree ${worktree.path} could not be removed: ${messageOf(error)}`;
        this.raise("worktree", `${run}: ${why}`);
      });
    return { outcome, kept: kept.kept, ...(work === undefined ? {} : { work }) };
  }

  /** Tries again after a killed git, and removes its lock files first. @throws ErrGit, system errors */
  private async keep(...run: FinishedRun): Promise<Kept> {
    const [{ assignment }, { repository, worktree }] = run;
    for (let tries = 1; tries < KEEP_TRIES_MAX; tries++)
      try {
        return await this.keepOnce(false, ...run);
      } catch {
        const id = worktreeIdOf(assignment.task);
        await inTurn(repository, async () => dropStaleLocks(repository, id, worktree.gitDir));
      }
    return this.keepOnce(true, ...run);
  }

  /** Puts work of a completed run on its branch, saves the rest, and writes the order for the landing. Twice is the same as once. */
  private async keepOnce(
    isLastTry: boolean,
    ...[assigned, made, outcome, isLast]: FinishedRun
  ): Promise<Kept> {
    const { task, attempt } = assigned.assignment;
    const { repository } = made;
    const worktree = worktreeAt(made.worktree.path, made.worktree.gitDir, made.worktree.branch);
    const id = worktreeIdOf(task);
    const isSuspect = await this.noteChanges(assigned, made);
    const order: SaveOrder = { repository, worktree, id, attempt };
    // A node that asks a person goes on in its worktree after the answer.
    const isCompleted = outcome.kind === "completed" && outcome.verdict !== "checkpoint";
    if (isCompleted) await this.commit(order, task, isLastTry);
    const { snapshot, ref } = await saveWork(order);
    if (snapshot.use !== undefined) this.room.learn(repository.commonDir, snapshot.use.bytes);
    if (isGone(worktree)) await this.tellGone(order, task, ref);
    const work = isLast && isCompleted ? await noteWork(assigned, made, snapshot) : undefined;
    const isWhole = snapshot.missing.length === 0 && !isSuspect && !isGone(worktree);
    const left = [...snapshot.missing, ...snapshot.ignored].slice(0, LEFT_MAX);
    const kept = {
      ...(ref === undefined ? {} : { work_saved: ref }),
      ...(left.length === 0 ? {} : { work_left: left }),
    };
    return { order, work, kept, isWhole };
  }

  async stampOf(dir: string): Promise<string | undefined> {
    return stampOfCheckout(dir, fs.realpathSync(this.tools.tree.dir)).catch(() => undefined);
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
        dropStaleLocks(repository, id, gitDir);
        const worktree = worktreeAt(path, gitDir, branch);
        const holdings = await this.lookAt(repository, worktree, id);
        const reasons = reasonsToStay({ ...holdings, commits: 0 });
        if (reasons.length > 0) return reasons;
        const save = { repository, worktree, id, attempt: 0 };
        const { snapshot, left } = await removeWorktree(save, dirname(path));
        if (left !== undefined) this.raise("worktree", `task ${id}: ${left}`);
        if (snapshot.missing.length > 0) return [...snapshot.missing];
      }
      if (landed !== undefined) await dropLandedBranch(repository, id, landed);
      return [];
    });
  }

  /** Commits the work. The caller saves what cannot be committed. @param isLastTry true to report a failure of git, not throw it */
  private async commit(order: SaveOrder, task: Task, isLastTry: boolean): Promise<void> {
    const reason = await commitWork(order, task).catch((error: unknown) => {
      if (!isLastTry || hasNoRoom(error)) throw error;
      return messageOf(error);
    });
    if (reason === undefined) return;
    const { path, branch } = order.worktree;
    const where = path === undefined ? "" : `, which stays in ${path}`;
    this.raise(
      "worktree",
      `task ${task.id} has completed, and the branch ${branch} lacks work of it${where}: ${reason}`,
    );
  }

  /** The run itself has removed its worktree. What it had in commits is on the branch, or in a save. */
  private async tellGone(
    { repository, worktree, id }: SaveOrder,
    task: Task,
    ref: string | undefined,
  ): Promise<void> {
    const tip = await commitOf(atCommonDir(repository), `refs/heads/${worktree.branch}`);
    const saved =
      ref === undefined ? "" : `; its commits are saved in ${ref} (mailchute rescue ${id})`;
    const branch = tip === undefined ? `, and the branch ${worktree.branch}` : "";
    const { path, instead } = worktree;
    const files = path === undefined ? instead : `its files stay in ${path}`;
    const what = `the run of task ${task.id} has removed its worktree${branch}`;
    this.raise("worktree", `${what}${saved}${files === undefined ? "" : `; ${files}`}`);
  }

  /** Marks the work with a ref when the run may have changed settings of the repository: then it does not land by itself. */
  private async noteChanges(
    assigned: AssignedAgent,
    { repository }: MadeWorktree,
  ): Promise<boolean> {
    const { task } = assigned.assignment;
    const { own, found } = await changesDuring(repository.commonDir, this.runOf(assigned));
    this.tell(repository, found);
    if (own.length === 0) return false;
    const ref = changedRefOf(worktreeIdOf(task));
    const names = new Set(own.flatMap((change) => change.names));
    await makeTextRef(repository, ref, `${[...names].sort().join("\n")}\n`);
    return true;
  }

  private runOf({ assignment: { task, stateDir, settings } }: AssignedAgent): RunThere {
    return runOf({ user: task.id, worktreesDir: worktreesDir(stateDir, settings) });
  }

  /** Never rejects. @param areNoted see `endRun` */
  private async end(repository: Repository, run: RunThere, areNoted = true): Promise<void> {
    try {
      this.tell(repository, await endRun(repository.commonDir, run, areNoted));
    } catch (error) {
      const why = `its run has ended, and that cannot be noted: ${messageOf(error)}`;
      this.raise("worktree", `task ${run.id}: ${why}`);
    }
  }

  /** Raises one alert for each change, whichever runs it concerns. */
  private tell({ commonDir }: Repository, found: readonly SettingsChange[]): void {
    for (const change of found) this.raise("repository_settings", changeText(commonDir, change));
  }

  private lookAt(repository: Repository, worktree: Worktree, id: string): Promise<Holdings> {
    return lookAt(repository, worktree, id, this.tools.settings.worktree_ignored_may_go);
  }

  private raise(kind: string, message: string): void {
    const { tree, trays } = this.tools;
    new Alerts(tree.alerts, trays.clock, say).alert(kind, message);
  }
}

function unmade(error: unknown): AttemptOutcome {
  if (error instanceof WorktreeTaken)
    return { kind: "deferred", message: error.message, delayMs: TAKEN_AGAIN_MS };
  if (error instanceof NoRoom)
    return { kind: "deferred", message: error.message, delayMs: TAKEN_AGAIN_MS, hold: ROOM_GATE };
  if (hasNoRoom(error)) return deferred(`its worktree cannot be made: ${messageOf(error)}`);
  const { hint } = error instanceof MailchuteError ? error : {};
  if (hint === undefined) return failed("worktree", "ErrWorktree", messageOf(error));
  // An error with a hint needs a person. Another run would fail in the same way.
  return failed("worktree", "ErrWorktree", `${messageOf(error)}; ${hint}`, { canRetry: false });
}

/** The outcome of a completed run whose work could not be saved. The next run goes on in its worktree. */
function notDone(error: unknown, why: string): AttemptOutcome {
  const message = `the run has completed, and ${why}`;
  return hasNoRoom(error) ? deferred(message) : failed("worktree", "ErrWorktree", message);
}

function hasNoRoom(error: unknown): boolean {
  return isDiskFull(error) || NO_ROOM.has(systemCode(error));
}
