/**
 * Commits what a completed run has left uncommitted in its worktree, on the branch of its task. So all work of a task is on one
 * branch, even if the sandbox of its agent forbids commits.
 */

import type { Task } from "../../core/task.ts";
import { atCommonDir, commitOf, isAncestor, type Repository } from "../../git/repository.ts";
import { askGit, type GitCall, gitList, gitText } from "../../git/run-git.ts";
import { statusOf, type WorktreeStatus } from "../../git/status.ts";
import { branchOf } from "./names.ts";
import { isGone, type SaveOrder, saveWork } from "./save.ts";

/** Longest subject (characters). */
const SUBJECT_MAX = 72;

/**
 * Call it when no program of the task runs. A kill at any step leaves staged files at most, or the whole commit.
 * @returns why work stays outside of the branch; undefined when the branch has it all
 * @throws ErrGit, system errors; then the worktree holds what it held before, perhaps staged
 */
export async function commitWork(order: SaveOrder, task: Task): Promise<string | undefined> {
  const { repository, worktree, id } = order;
  const { path, gitDir } = worktree;
  // The run has removed it: nothing is left to commit.
  if (isGone(worktree)) return undefined;
  if (path === undefined) return worktree.instead;
  const call: GitCall = { cwd: path, gitDir, env: repository.env };
  const branch = `refs/heads/${branchOf(id)}`;
  const status = await statusOf(repository, worktree);
  const isChanged = hasChanges(status);
  const elsewhere = await explainHead(call, branch, status.head);
  if (elsewhere !== undefined)
    return isChanged || !(await isIn(repository, status.head, branch)) ? elsewhere : undefined;
  const hindrance = explainStatus(status);
  if (hindrance !== undefined) return hindrance;
  const { tree, uncommittable } = status;
  // It commits what git takes; what git does not take is named.
  const [rest] = uncommittable;
  if (!isChanged || tree === undefined) return rest;
  if (await hasOwnIndex(call, tree)) await saveWork(order);
  await stage(call, tree);
  if (tree === (await gitText(call, "rev-parse", "HEAD^{tree}"))) return rest;
  const head = status.head ?? "";
  const parents = head === "" ? [] : ["-p", head];
  const env = { ...call.env, ...(await authorOf(call)) };
  const message = `${subjectOf(task)}\n\nWork that the task ${task.id} left uncommitted.\n\nMailchute-Task: ${task.id}\n`;
  const commit = await gitText({ ...call, env, input: message }, "commit-tree", tree, ...parents);
  await askGit(call, "update-ref", "-m", "commit: by mailchute", branch, commit, head);
  return rest;
}

function hasChanges(status: WorktreeStatus): boolean {
  const { modified, untracked, unmerged, uncommittable, operation } = status;
  const files = [modified, untracked, unmerged, uncommittable];
  return files.some((names) => names.length > 0) || operation !== undefined;
}

/** Why it may not commit: that would end an open operation. */
function explainStatus({ operation, unmerged }: WorktreeStatus): string | undefined {
  if (operation !== undefined) return `a ${operation} has not ended`;
  return unmerged.length > 0 ? `${unmerged[0]} is not merged` : undefined;
}

/** Makes the index of the worktree have these files. Leaves the files as they are. */
async function stage(call: GitCall, tree: string): Promise<void> {
  await askGit(call, "read-tree", "-i", "--reset", tree);
  await askGit({ ...call, answers: [1] }, "update-index", "-q", "--refresh");
}

/** Undefined when the worktree is on the branch. */
async function explainHead(
  call: GitCall,
  branch: string,
  head: string | undefined,
): Promise<string | undefined> {
  const { code, out } = await askGit({ ...call, answers: [1] }, "symbolic-ref", "-q", "HEAD");
  const name = out.toString().trim();
  if (code === 0 && name === branch) return undefined;
  return `the worktree is on ${code === 0 ? name.replace("refs/heads/", "the branch ") : `commit ${head?.slice(0, 12)}`}`;
}

async function isIn(repository: Repository, commit = "", branch: string): Promise<boolean> {
  const call = atCommonDir(repository);
  if (commit === "" || (await commitOf(call, branch)) === undefined) return false;
  return isAncestor(call, commit, branch);
}

/** True if a file was staged and changed after that. Then the index has contents that the commit would lack. */
async function hasOwnIndex(call: GitCall, tree: string): Promise<boolean> {
  const asked = ["diff-index", "--cached", "--name-only", "-z"];
  const staged = await gitList(call, ...asked, "HEAD");
  if (staged.length === 0) return false;
  const other = new Set(await gitList(call, ...asked, tree));
  return staged.some((name) => other.has(name));
}

/** The person in the settings of git; mailchute is the author when there is none. */
async function authorOf(call: GitCall): Promise<Record<string, string>> {
  const [name, email] = await Promise.all(
    ["user.name", "user.email"].map(async (key) => {
      const { out } = await askGit({ ...call, answers: [1] }, "config", "--get", key);
      return out.toString().trim();
    }),
  );
  if (!name || !email) return {};
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email };
}

/** The title of the task, or the first line of its prompt or description, on one line. */
function subjectOf({ id, title, prompt, description }: Task): string {
  const texts = [title, prompt, description].map((text) => firstLine(text ?? ""));
  const text = texts.find((one) => one !== "") ?? `Work of ${id}`;
  const chars = Array.from(text);
  return chars.length > SUBJECT_MAX ? `${chars.slice(0, SUBJECT_MAX - 1).join("")}…` : text;
}

function firstLine(text: string): string {
  const line = text.split(/[\r\n]/).find((one) => one.trim() !== "") ?? "";
  return line.replace(/\p{Cc}+/gu, " ").trim();
}
