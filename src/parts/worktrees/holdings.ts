/** Finds what a worktree holds, and whether it may be removed. Only reads. */
import { join } from "node:path";
import { takePrivateGit } from "../../git/private-git.ts";
import { branchesWith, countOwnCommits, listRefs, unreachable } from "../../git/refs.ts";
import { atCommonDir, commitOf, type Repository } from "../../git/repository.ts";
import type { GitCall } from "../../git/run-git.ts";
import { filesThatFit, statusOf, type WorktreeStatus } from "../../git/status.ts";
import type { DiskUse } from "../../git/walk-files.ts";
import type { Worktree } from "../../git/worktree.ts";
import { tryReadText } from "../../host/regular-file.ts";
import { readMade, stampOf } from "./made-note.ts";
import { baseOf } from "./make.ts";
import { changedRefOf } from "./names.ts";
import { savesOf } from "./save.ts";

export interface Holdings extends DiskUse {
  id: string;
  /** Undefined when its directory is gone and git still knows it. */
  path: string | undefined;
  branch: string;
  modified: string[];
  untracked: string[];
  unmerged: string[];
  /** What no commit can take, a sentence for each. */
  uncommittable: string[];
  /** Ignored files that keep it: `setup` did not make them, or they have changed since. */
  ignored: string[];
  operation: string | undefined;
  /** Commits of its branch that no other branch has. */
  commits: number;
  /** Other branches that have all of its commits. */
  merged_into: string[];
  /** True if its head is on no branch. */
  is_head_lost: boolean;
  /** Refs of its saves so far. */
  saves: string[];
  has_changed_settings: boolean;
  /** Why a person has locked it with `git worktree lock`. */
  lock: string | undefined;
}

/** @param mayGo setting `worktree_ignored_may_go` */
export async function lookAt(
  repository: Repository,
  worktree: Worktree,
  id: string,
  mayGo: readonly string[],
): Promise<Holdings> {
  await takePrivateGit(repository, worktree);
  const status = await statusOf(repository, worktree);
  const { branch, path, gitDir } = worktree;
  const own = `refs/heads/${branch}`;
  const tip = await commitOf(atCommonDir(repository), own);
  const base = await baseOf(repository, id);
  const holders = tip === undefined ? [] : await branchesWith(repository, tip);
  const mergedInto = holders.filter((name) => name !== own);
  const isEmpty = tip === undefined || tip === base || mergedInto.length > 0;
  const { head } = status;
  return {
    id,
    path,
    branch,
    ...filesOf(status),
    ...status.use,
    ignored: await ignoredOf(repository, worktree, status.ignored, mayGo),
    operation: status.operation,
    commits: isEmpty ? 0 : await countOwnCommits(repository, branch),
    merged_into: mergedInto,
    is_head_lost: head !== undefined && (await unreachable(repository, [head])).length > 0,
    saves: (await savesOf(repository, id)).map(({ ref }) => ref),
    lock: lockOf(gitDir),
    has_changed_settings: (await listRefs(repository, changedRefOf(id))).length > 0,
  };
}

/** Why the worktree stays. With an empty list it may be removed, because it holds nothing that is not elsewhere. Pure. */
export function reasonsToStay(holdings: Holdings): string[] {
  const { modified, untracked, unmerged, ignored, operation, commits, uncommittable } = holdings;
  const reasons: string[] = [];
  const add = (names: readonly string[], what: string): void => {
    if (names.length > 0) reasons.push(`${names.length} ${what} (${firstOf(names)})`);
  };
  add(modified, "modified");
  add(unmerged, "unmerged");
  add(untracked, "untracked");
  add(ignored, "ignored that setup did not make");
  reasons.push(...uncommittable);
  if (operation !== undefined) reasons.push(`a ${operation} that was not ended`);
  if (holdings.lock !== undefined) reasons.push(`locked: ${holdings.lock}`);
  if (holdings.is_head_lost) reasons.push("commits that are on no branch");
  if (commits > 0)
    reasons.push(
      `${commits} ${commits === 1 ? "commit" : "commits"} on ${holdings.branch} that no other branch has`,
    );
  return reasons;
}

function firstOf(names: readonly string[]): string {
  return names.length === 1 ? (names[0] ?? "") : `${names[0]}, …`;
}

function filesOf({
  modified,
  untracked,
  unmerged,
  uncommittable,
}: WorktreeStatus): Pick<Holdings, "modified" | "untracked" | "unmerged" | "uncommittable"> {
  return { modified, untracked, unmerged, uncommittable };
}

function lockOf(gitDir: string): string | undefined {
  return tryReadText(join(gitDir, "locked"))?.trim();
}

/** Ignored files that `setup` did not make and that may not be removed. */
async function ignoredOf(
  { env }: Repository,
  { path, gitDir }: Worktree,
  names: readonly string[],
  mayGo: readonly string[],
): Promise<string[]> {
  if (path === undefined || names.length === 0) return [];
  // An older version has noted here what `setup` made.
  const made = readMade(gitDir)?.ignored ?? {};
  const call: GitCall = { cwd: path, gitDir, env };
  const spare = new Set(mayGo.length === 0 ? [] : await filesThatFit(call, mayGo));
  return names.filter((name) => {
    const stamp = stampOf(join(path, name));
    return !spare.has(name) && (stamp === "" || made[name] !== stamp);
  });
}
