/**
 * Makes the worktree of a task, one at a time in each repository, or finds the one of an earlier run. After a kill at any step the
 * next run goes on from there. Work in the worktree is saved before any of it is replaced.
 */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { ErrGit } from "../../core/errors.ts";
import { addWorktree, nameGitDir } from "../../git/add-worktree.ts";
import { noteCheckout, noteSetup } from "../../git/files-look.ts";
import { linkHeadLog } from "../../git/head-log.ts";
import { beginRun, endRun, type RunThere, type SettingsChange } from "../../git/kept-settings.ts";
import { TABLES_LOCK } from "../../git/left-locks.ts";
import { makeRef, refuseClash } from "../../git/refs.ts";
import {
  atCommonDir,
  checkLargeFiles,
  commitOf,
  findGitDir,
  openRepository,
  type Repository,
} from "../../git/repository.ts";
import { askGit, gitText } from "../../git/run-git.ts";
import { readSettings } from "../../git/settings-watch.ts";
import { startOf } from "../../git/start-of-work.ts";
import { inTurn } from "../../git/turn.ts";
import { type Worktree, worktreeAt } from "../../git/worktree.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { NAMED, tryReadText, writeRegularText } from "../../host/regular-file.ts";
import { readMade, writeMade } from "./made-note.ts";
import { baseRefOf, branchOf, headLogOf, refsOf, repositoryNote, worktreePath } from "./names.ts";
import { headOfSave, restoreFiles } from "./restore.ts";
import { isGone, saveWork } from "./save.ts";
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
  /** The branch that has work which the task needs, without `refs/heads/`. */
  buildsOn: string | undefined;
  /** The folder of all worktrees of the state tree. */
  worktreesDir: string;
  env: Readonly<Record<string, string>>;
  /** Called before a worktree is made that is not there. When it throws, none is made. */
  takeRoom: (commonDir: string) => Promise<void>;
}

export interface MadeWorktree {
  repository: Repository;
  /** What changed in the settings of the repository, and was not known before this run. */
  found: SettingsChange[];
  worktree: Worktree & { path: string };
  /** The directory in the worktree that corresponds to `dir` in the repository. */
  cwd: string;
  /** True if an earlier run has made it ready. */
  isReady: boolean;
  /** True if this call has begun its branch. No run was there, and no `setup`. */
  isNew: boolean;
}

/** Begins a run in the repository. @throws ErrGit and system errors; a later call continues after such an error */
export async function makeWorktree(order: WorktreeOrder): Promise<MadeWorktree> {
  const repository = await openRepository(order.dir, order.env);
  if (!fs.existsSync(worktreePath(order.worktreesDir, order.id)))
    await order.takeRoom(repository.commonDir);
  const run = runOf(order);
  const found = await beginRun(repository.commonDir, run);
  try {
    return { ...(await makeIn(order, repository)), found };
  } catch (error) {
    await endRun(repository.commonDir, run);
    throw error;
  }
}

/** What `makeWorktree` begins; the caller ends it. */
export function runOf({
  user,
  worktreesDir,
}: Pick<WorktreeOrder, "user" | "worktreesDir">): RunThere {
  return { id: user, tree: worktreesDir };
}

async function makeIn(
  order: WorktreeOrder,
  repository: Repository,
): Promise<Omit<MadeWorktree, "found">> {
  const { id, worktreesDir } = order;
  const path = worktreePath(fs.realpathSync(makeFolder(worktreesDir)), id);
  noteRepository(worktreesDir, repository.commonDir);
  const branch = branchOf(id);
  const { gitDir, isNew } = await inTurn(repository, async () => {
    refuseTaken(order, repository, path);
    const made = await register(order, repository, path);
    linkHeadLog(made.gitDir, headLogOf(repository.commonDir, id));
    noteUser(made.gitDir, id, order.user);
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
  return { repository, worktree, cwd, isReady, isNew };
}

/** Call it when `setup` has succeeded. The ignored files of that time do not matter to a person. */
export async function markReady(
  id: string,
  { repository, worktree: { path, gitDir } }: MadeWorktree,
): Promise<void> {
  const call = { cwd: path, gitDir, env: repository.env };
  const { watched: settings } = await readSettings(repository.commonDir);
  await noteSetup(call, gitDir, await gitText(call, "rev-parse", "HEAD^{tree}"));
  writeMade(gitDir, { v: 1, task_id: id, ignored: {}, settings });
}

/**
 * Removes lock files that a killed git left at the task's own refs and in its worktree, because git would wait for them for ever. Puts
 * back a head of the worktree that a run has broken.
 * Call it in turn and when no program of the task runs, so that no git holds them.
 */
export function dropStaleLocks({ commonDir }: Repository, id: string, gitDir?: string): void {
  const branch = join(commonDir, "refs", "heads", `${branchOf(id)}.lock`);
  const refs = join(commonDir, refsOf(id));
  const saves = fs.existsSync(refs) ? fs.readdirSync(refs) : [];
  const own = saves.filter((name) => name.endsWith(".lock")).map((name) => join(refs, name));
  const inWorktree =
    gitDir === undefined
      ? []
      : ["index.lock", "HEAD.lock", TABLES_LOCK].map((name) => join(gitDir, name));
  const locks = [branch, ...own, ...inWorktree];
  // A run may have made a folder of that name. Where refs are kept in tables, `refs/heads` is a file.
  for (const lock of locks)
    if (fs.existsSync(lock)) fs.rmSync(lock, { force: true, recursive: true });
  if (gitDir !== undefined && fs.existsSync(gitDir)) mendHead(gitDir, branchOf(id));
}

/** With a broken head git takes the worktree for no repository. */
function mendHead(gitDir: string, branch: string): void {
  const head = join(gitDir, "HEAD");
  if (/^(?:ref: refs\/\S+|[0-9a-f]{40,64})$/.test(tryReadText(head, NAMED)?.trim() ?? "")) return;
  fs.rmSync(`${head}.broken`, { force: true, recursive: true });
  if (fs.existsSync(head)) fs.renameSync(head, `${head}.broken`);
  writeRegularText(head, `ref: refs/heads/${branch}\n`);
}

/** Makes git know the worktree. @returns its git directory, and whether its branch is new */
async function register(
  order: WorktreeOrder,
  repository: Repository,
  path: string,
): Promise<{ gitDir: string; isNew: boolean }> {
  const branch = branchOf(order.id);
  const known = findGitDir(repository, path);
  refuseOther(path);
  dropStaleLocks(repository, order.id, known);
  if (known !== undefined && isWhole(known, path)) {
    nameGitDir(path, known);
    return { gitDir: known, isNew: false };
  }
  if (known === undefined) await saveRemoved(order, repository, path);
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
  await refuseClash(repository, name, baseRefOf(order.id));
  if (existing === undefined) await makeRef(repository, { name, commit: base });
  // The base is where the branch began. A branch that an earlier task left begins at its current commit.
  await makeRef(repository, { name: baseRefOf(order.id), commit: base });
  const gitDir = await addWorktree(repository, path, { options: [], start: branch });
  return { gitDir, isNew: existing === undefined && saved === undefined };
}

/** @throws ErrGit when something else stands in the place of the directory. A link may lead to files of a person, or to the work of a run */
function refuseOther(path: string): void {
  const { instead } = worktreeAt(path, "", "");
  if (instead === undefined) return;
  const hint = `bring the worktree back to ${path}, or move this away`;
  throw new ErrGit(`${instead}, where the worktree belongs`, { path, hint });
}

/** True if git has finished the worktree. A git that is killed before that leaves the mark "initializing". */
function isWhole(gitDir: string, path: string): boolean {
  return fs.existsSync(join(path, ".git")) && !isInitializing(gitDir);
}

function isInitializing(gitDir: string): boolean {
  return tryReadText(join(gitDir, "locked"))?.trim() === "initializing";
}

/** Drops a worktree whose directory is gone, or that a killed git left unfinished. Saves the contents of its index and head first. */
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
    await saveWork({ repository, worktree, id, attempt: attempt - 1 });
  }
  // git itself does not remove a directory with that mark. A run can only have left files in a worktree that was checked out.
  fs.rmSync(gitDir, { recursive: true, force: true });
  fs.rmSync(join(path, ".git"), { force: true });
}

/** Saves the commits of a worktree that an earlier run has removed with its branch. */
async function saveRemoved(
  { id, attempt }: WorktreeOrder,
  repository: Repository,
  path: string,
): Promise<void> {
  const { commonDir } = repository;
  if (!fs.existsSync(headLogOf(commonDir, id))) return;
  if ((await baseOf(repository, id)) === undefined) return;
  const gitDir = join(commonDir, "worktrees", basename(path));
  const worktree = { path: undefined, gitDir, branch: branchOf(id) };
  if (isGone(worktree)) await saveWork({ repository, worktree, id, attempt: attempt - 1 });
}

/** Writes the files of the branch. Called only before the first run: a worktree without an index was never used. */
async function checkOut(
  order: WorktreeOrder,
  repository: Repository,
  worktree: Worktree & { path: string },
): Promise<void> {
  if (isContinued(order)) await restoreFiles(repository, order.id, worktree);
  const { path, gitDir } = worktree;
  if (fs.existsSync(join(gitDir, "index"))) return;
  const call = { cwd: path, gitDir, env: repository.env };
  await askGit(call, "reset", "--hard", "--quiet");
  await noteCheckout(call, gitDir, await gitText(call, "rev-parse", "HEAD^{tree}"));
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

/** Saves the work of an earlier run, which may have been killed. Its files stay as they are. */
async function saveEarlier(
  { id, attempt }: WorktreeOrder,
  repository: Repository,
  worktree: Worktree,
): Promise<void> {
  const { gitDir } = worktree;
  if (readMade(gitDir) === undefined) return;
  await saveWork({ repository, worktree, id, attempt: attempt - 1 });
}

function makeFolder(dir: string): string {
  makeDirs(dir, 2);
  const ignore = join(dir, ".gitignore");
  // The state tree may lie in a person's repository.
  if (!fs.existsSync(ignore)) writeRegularText(ignore, "*\n");
  return dir;
}

function noteRepository(worktreesDir: string, commonDir: string): void {
  const note = repositoryNote(worktreesDir, commonDir);
  makeDirs(dirname(note), 1);
  if (tryReadText(note) !== commonDir) writeRegularText(note, commonDir);
}

/** The commit at which the branch of a task began. */
export async function baseOf(repository: Repository, id: string): Promise<string | undefined> {
  return commitOf(atCommonDir(repository), baseRefOf(id));
}
