/**
 * Makes the worktree of a task, one at a time in each repository, or finds the one of an earlier run. Killed at any step, the next
 * run goes on where this one was; work that is there is saved before anything of it is replaced.
 */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { ErrGit } from "../../core/errors.ts";
import { makeRef } from "../../git/refs.ts";
import {
  atCommonDir,
  checkLargeFiles,
  commitOf,
  findGitDir,
  openRepository,
  type Repository,
} from "../../git/repository.ts";
import { askGit } from "../../git/run-git.ts";
import { changesBetween, readSettings } from "../../git/settings-watch.ts";
import type { Worktree } from "../../git/snapshot.ts";
import { ignoredFiles } from "../../git/status.ts";
import { inTurn } from "../../git/turn.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { readMade, stampOf, writeMade } from "./made-note.ts";
import { baseRefOf, branchOf, refsOf, repositoryNote, worktreePath } from "./names.ts";
import { headOfSave, restoreFiles } from "./restore.ts";
import { saveWork } from "./save.ts";
import { startOf } from "./start.ts";
import { noteUser, userOf, WorktreeTaken } from "./worktree-user.ts";

export interface WorktreeOrder {
  /** The task whose worktree it is. */
  id: string;
  /** The task that works there. */
  user: string;
  /** Whether this task waits or runs. */
  isUnfinished: (id: string) => boolean;
  attempt: number;
  /** Where the task would run without a worktree. */
  dir: string;
  /** A branch whose work it needs, without `refs/heads/`. */
  buildsOn: string | undefined;
  /** Of all worktrees of the state tree. */
  worktreesDir: string;
  env: Readonly<Record<string, string>>;
}

export interface MadeWorktree {
  repository: Repository;
  worktree: Worktree & { path: string };
  /** The directory in it that `dir` is in the repository. */
  cwd: string;
  /** It is ready, from an earlier run. */
  isReady: boolean;
}

/** @throws ErrGit and system errors; a later call goes on from there */
export async function makeWorktree(order: WorktreeOrder): Promise<MadeWorktree> {
  const { id, dir, worktreesDir } = order;
  const repository = await openRepository(dir, order.env);
  const path = worktreePath(fs.realpathSync(makeFolder(worktreesDir)), id);
  noteRepository(worktreesDir, repository.commonDir);
  const branch = branchOf(id);
  const gitDir = await inTurn(repository, async () => {
    refuseTaken(order, repository, path);
    const made = await register(order, repository, path);
    noteUser(made, id, order.user);
    return made;
  });
  const worktree = { path, gitDir, branch };
  const isReady = readMade(gitDir) !== undefined;
  if (!fs.existsSync(join(gitDir, "index"))) await checkOut(order, repository, worktree);
  else await saveEarlier(order, repository, worktree);
  const cwd = join(path, repository.prefix);
  if (!fs.existsSync(cwd))
    throw new ErrGit(`${repository.prefix} is in no commit, so it is not in the worktree`, {
      path: cwd,
      hint: "commit that directory first, or give the task another cwd",
    });
  return { repository, worktree, cwd, isReady };
}

/** Call it when `setup` has succeeded: what is ignored now is of no worth to a person. */
export async function markReady(
  id: string,
  { repository, worktree: { path, gitDir } }: MadeWorktree,
): Promise<void> {
  const ignored = await ignoredFiles({ cwd: path, gitDir, env: repository.env });
  const stamps = ignored.map((name) => [name, stampOf(join(path, name))] as const);
  const settings = await readSettings(repository);
  writeMade(gitDir, { v: 1, task_id: id, ignored: Object.fromEntries(stamps), settings });
}

/**
 * Removes lock files that a killed git left at the task's own refs and in its worktree; git would wait for them for ever. Call it in turn,
 * when no program of the task runs: then no git holds them.
 */
export function dropStaleLocks({ commonDir }: Repository, id: string, gitDir?: string): void {
  const branch = join(commonDir, "refs", "heads", `${branchOf(id)}.lock`);
  const refs = join(commonDir, refsOf(id));
  const saves = fs.existsSync(refs) ? fs.readdirSync(refs) : [];
  const own = saves.filter((name) => name.endsWith(".lock")).map((name) => join(refs, name));
  const inWorktree =
    gitDir === undefined ? [] : ["index.lock", "HEAD.lock"].map((name) => join(gitDir, name));
  for (const lock of [branch, ...own, ...inWorktree]) fs.rmSync(lock, { force: true });
}

/** Makes git know the worktree. @returns its git directory */
async function register(
  order: WorktreeOrder,
  repository: Repository,
  path: string,
): Promise<string> {
  const branch = branchOf(order.id);
  const known = findGitDir(repository, path);
  dropStaleLocks(repository, order.id, known);
  if (known !== undefined && isWhole(known, path)) return known;
  if (known !== undefined) await forget(order, repository, known, path);
  else if (fs.existsSync(path) && fs.readdirSync(path).length > 0)
    throw new ErrGit(`${path} is there, and is no worktree of ${repository.commonDir}`, {
      path,
      hint: "move it away, or give the task another id",
    });
  const call = atCommonDir(repository);
  const name = `refs/heads/${branch}`;
  const existing = await commitOf(call, name);
  const saved =
    existing === undefined && isContinued(order)
      ? await headOfSave(repository, order.id)
      : undefined;
  const base = existing ?? saved ?? (await startOf(repository, order.dir, order.buildsOn));
  await checkLargeFiles(repository, base);
  if (existing === undefined) await makeRef(repository, { name, commit: base });
  // Where the branch has been from its start; a branch that an earlier task left begins where it is.
  await makeRef(repository, { name: baseRefOf(order.id), commit: base });
  await askGit(call, "worktree", "add", "--quiet", "--no-checkout", path, branch);
  const gitDir = findGitDir(repository, path);
  if (gitDir === undefined)
    throw new ErrGit(`git does not know its new worktree ${path}`, { path });
  return gitDir;
}

/** git had made it to the end: killed before, it leaves the mark "initializing". */
function isWhole(gitDir: string, path: string): boolean {
  return fs.existsSync(join(path, ".git")) && !isInitializing(gitDir);
}

function isInitializing(gitDir: string): boolean {
  try {
    return fs.readFileSync(join(gitDir, "locked"), "utf8").trim() === "initializing";
  } catch {
    return false;
  }
}

/** Its directory is gone, or git was killed while it made it. What its index and its head hold is saved first. */
async function forget(
  { id, attempt }: WorktreeOrder,
  repository: Repository,
  gitDir: string,
  path: string,
): Promise<void> {
  const left = fs.existsSync(path) ? fs.readdirSync(path) : [];
  if (left.some((name) => name !== ".git"))
    throw new ErrGit(`${path} has files, and its .git is gone or broken`, {
      path,
      hint: `write "gitdir: ${gitDir}" into its file .git, or move the directory away`,
    });
  if (fs.existsSync(join(gitDir, "index"))) {
    const worktree = { path: undefined, gitDir, branch: branchOf(id) };
    await saveWork({ repository, worktree, id, attempt: attempt - 1, withoutFilters: true });
  }
  // git itself removes no directory that it has marked. Files of a run are only in one that has been checked out.
  fs.rmSync(gitDir, { recursive: true, force: true });
  fs.rmSync(join(path, ".git"), { force: true });
}

/** Writes the files of the branch. Only before the first run: without an index nothing has been done in it. */
async function checkOut(
  order: WorktreeOrder,
  repository: Repository,
  worktree: Worktree & { path: string },
): Promise<void> {
  if (isContinued(order)) await restoreFiles(repository, order.id, worktree);
  const { path, gitDir } = worktree;
  if (fs.existsSync(join(gitDir, "index"))) return;
  await askGit({ cwd: path, gitDir, env: repository.env }, "reset", "--hard", "--quiet");
}

function isContinued({ id, user }: WorktreeOrder): boolean {
  return id !== user;
}

/** @throws WorktreeTaken */
function refuseTaken(order: WorktreeOrder, repository: Repository, path: string): void {
  const known = findGitDir(repository, path);
  const last = known === undefined ? order.user : userOf(known, order.id);
  if (last !== order.user && order.isUnfinished(last)) throw new WorktreeTaken(path, last);
}

/** A run before this one may have been killed: its work is saved, and stays as it is. */
async function saveEarlier(
  { id, attempt }: WorktreeOrder,
  repository: Repository,
  worktree: Worktree,
): Promise<void> {
  const { gitDir } = worktree;
  const made = readMade(gitDir);
  if (made === undefined) return;
  const changed = changesBetween(made.settings, await readSettings(repository));
  const withoutFilters = changed.length > 0;
  await saveWork({ repository, worktree, id, attempt: attempt - 1, withoutFilters });
}

function makeFolder(dir: string): string {
  makeDirs(dir, 2);
  const ignore = join(dir, ".gitignore");
  // The state tree may lie in a person's repository.
  if (!fs.existsSync(ignore)) fs.writeFileSync(ignore, "*\n");
  return dir;
}

function noteRepository(worktreesDir: string, commonDir: string): void {
  const note = repositoryNote(worktreesDir, commonDir);
  makeDirs(dirname(note), 1);
  if (!fs.existsSync(note) || fs.readFileSync(note, "utf8") !== commonDir)
    fs.writeFileSync(note, commonDir);
}

/** The commit at which the branch of a task began. */
export async function baseOf(repository: Repository, id: string): Promise<string | undefined> {
  return commitOf(atCommonDir(repository), baseRefOf(id));
}
