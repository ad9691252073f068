/**
 * Removes a worktree after it has saved everything that only the worktree holds. A kill at any step does no harm: the directory is
 * renamed away first, so a half-removed one is never taken for work. The next call goes on.
 */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { setImmediate as othersTurn } from "node:timers/promises";
import { systemCode } from "../../core/errors.ts";
import { branchesWith, deleteRefs, listRefs } from "../../git/refs.ts";
import { atCommonDir, commitOf, type Repository } from "../../git/repository.ts";
import { askGit, gitText } from "../../git/run-git.ts";
import { parentsOfPlainMerge } from "../../git/start-of-work.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { removeTree } from "../../host/remove-tree.ts";
import { baseRefOf, branchOf, endedRefOf, headLogOf, trashDir, worktreePath } from "./names.ts";
import { dropPorts } from "./ports.ts";
import { type Saved, type SaveOrder, savesOf, saveWork } from "./save.ts";

export interface Removed extends Saved {
  /** Where files of it are left that this user may not remove, with what to do. They hold nothing that is not elsewhere. */
  left?: string;
}

/**
 * Call it in turn (`inTurn`), and when no program of the task runs.
 * @param worktreesDir the folder that holds the worktree
 * @returns what was saved. When the snapshot misses something, the worktree stays
 * @throws ErrGit, system errors
 */
export async function removeWorktree(order: SaveOrder, worktreesDir: string): Promise<Removed> {
  const { repository, worktree, id } = order;
  const saved = await saveWork(order);
  if (saved.snapshot.missing.length > 0) return saved;
  const path = worktree.path ?? worktreePath(worktreesDir, id);
  const name = `${basename(path)}-${randomBytes(4).toString("hex")}`;
  const aside = join(trashDir(worktreesDir), name);
  if (worktree.path !== undefined) {
    makeDirs(dirname(aside), 1);
    // A folder that its owner may not write cannot move to another one. A run may have put a link in its place.
    if (fs.lstatSync(path).isDirectory()) fs.chmodSync(path, 0o700);
    fs.renameSync(path, aside);
  }
  // The directory is gone, so git only forgets the worktree. That needs no --force, and git removes no file of the worktree.
  await askGit(atCommonDir(repository), "worktree", "remove", path);
  await dropSpareBranch(repository, id);
  dropPorts(path);
  fs.rmSync(headLogOf(repository.commonDir, id), { force: true });
  const stays = (await emptyTrash(worktreesDir)).includes(aside);
  return stays ? { ...saved, left: leftText(aside) } : saved;
}

/**
 * Deletes the branch of a task when no worktree has it checked out, and it has no commits that other branches lack. Otherwise it
 * stays.
 * @returns whether the branch is gone
 */
export async function dropSpareBranch(repository: Repository, id: string): Promise<boolean> {
  const name = `refs/heads/${branchOf(id)}`;
  const call = atCommonDir(repository);
  const commit = await commitOf(call, name);
  const base = (await listRefs(repository, baseRefOf(id)))[0];
  const bases = base === undefined ? [] : [base];
  if (commit === undefined) {
    await deleteRefs(repository, bases);
    return true;
  }
  const where = await gitText(call, "for-each-ref", "--format=%(worktreepath)", name);
  if (where !== "") return false;
  // The branch at which this one began may be gone. Then only this branch names even its first commit.
  if (!(await isOfOthers(repository, id, commit, commit === base?.commit))) return false;
  if (commit !== base?.commit) await noteEnded(repository, id, commit);
  await deleteRefs(repository, [{ name, commit }, ...bases]);
  return true;
}

/**
 * Whether a commit holds no work of a task that has not landed: a branch has it that is of no task.
 * @param isBase whether the work of the task begins there. That may be a merge, which holds nothing of its own when such branches have
 *   both of its parents
 */
export async function isOfOthers(
  repository: Repository,
  id: string,
  commit: string,
  isBase: boolean,
): Promise<boolean> {
  const own = `refs/heads/${branchOf(id)}`;
  const isOnOther = async (one: string): Promise<boolean> =>
    (await branchesWith(repository, one)).some((other) => !isOfTask(other, own));
  if (await isOnOther(commit)) return true;
  const parents = isBase ? await parentsOfPlainMerge(atCommonDir(repository), commit) : [];
  for (const parent of parents) if (!(await isOnOther(parent))) return false;
  return parents.length > 0;
}

/** Deletes the branch of a task whose work has landed, when no worktree has it checked out and it is at this commit. */
export async function dropLandedBranch(
  repository: Repository,
  id: string,
  commit: string,
): Promise<void> {
  const name = `refs/heads/${branchOf(id)}`;
  const call = atCommonDir(repository);
  const where = await gitText(call, "for-each-ref", "--format=%(objectname)%(worktreepath)", name);
  if (where !== commit) return;
  const base = (await listRefs(repository, baseRefOf(id)))[0];
  await noteEnded(repository, id, commit);
  await deleteRefs(repository, [{ name, commit }, ...(base === undefined ? [] : [base])]);
}

/** Writes the ref `ended`. Only a task with saves needs it. */
async function noteEnded(repository: Repository, id: string, commit: string): Promise<void> {
  if ((await savesOf(repository, id)).length === 0) return;
  await askGit(atCommonDir(repository), "update-ref", endedRefOf(id), commit);
}

/** True for the branch itself, and for that of another task, which may be deleted as well. */
function isOfTask(other: string, own: string): boolean {
  const isIntegration = other === "refs/heads/mailchute/integration";
  return other === own || (other.startsWith("refs/heads/mailchute/") && !isIntegration);
}

/** What to tell people about files that stay. */
export function leftText(path: string): string {
  return `files of a removed worktree stay in ${path}, because this user may not remove them. They hold nothing that is not elsewhere: remove them as their owner`;
}

/**
 * Removes a file or folder in the cache. It is renamed first, so half of it is never taken for an entry; a crash leaves it for the next
 * housekeeping.
 * @returns false when it was not there. @throws a system error
 */
export async function discard(path: string): Promise<boolean> {
  const aside = join(dirname(path), `gone-${randomBytes(8).toString("hex")}`);
  try {
    fs.renameSync(path, aside);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    return false;
  }
  await removeClosed(aside);
  return true;
}

/** Deletes the files of removed worktrees. They hold nothing that is not elsewhere. @returns the folders that it cannot remove */
export async function emptyTrash(worktreesDir: string): Promise<string[]> {
  const trash = trashDir(worktreesDir);
  const stays: string[] = [];
  for (const name of fs.existsSync(trash) ? fs.readdirSync(trash) : []) {
    const path = join(trash, name);
    try {
      await fs.promises.rm(path, { recursive: true, force: true, maxRetries: 3 });
    } catch {
      if (!(await removeClosed(path))) stays.push(path);
    }
  }
  if (stays.length === 0) await fs.promises.rm(trash, { recursive: true, force: true });
  return stays;
}

/** Removes also what is in closed folders. @returns whether nothing is left */
async function removeClosed(path: string): Promise<boolean> {
  const steps = removeTree(path);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value;
    await othersTurn();
  }
}
