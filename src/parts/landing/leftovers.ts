/** Finds work in a worktree that its branch lacks. mailchute commits after a run, but a person may have worked there since. */
import { lostLinks } from "../../git/lost-links.ts";
import {
  atCommonDir,
  commitOf,
  findGitDir,
  isAncestor,
  type Repository,
} from "../../git/repository.ts";
import { statusOf } from "../../git/status.ts";
import { worktreeAt } from "../../git/worktree.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";

/** @returns why the branch lacks a part of the work; undefined when it has all. @throws ErrGit */
export async function explainLeftovers(
  repository: Repository,
  { worktree: path, branch }: LandingOrder,
): Promise<string | undefined> {
  const gitDir = findGitDir(repository, path);
  if (gitDir === undefined) return undefined;
  const worktree = worktreeAt(path, gitDir, branch);
  if (worktree.path === undefined)
    return worktree.instead && `${worktree.instead}: bring the worktree back there, or remove this`;
  const status = await statusOf(repository, worktree);
  if (status.operation !== undefined) return `a ${status.operation} in ${path} has not ended`;
  const { modified, unmerged, untracked, uncommittable } = status;
  const [fault] = uncommittable;
  if (fault !== undefined) return `${path} has work that is not committed: ${fault}`;
  const [first, ...more] = [...unmerged, ...modified, ...untracked];
  if (first === undefined) return explainHead(repository, path, branch, status.head);
  const others = more.length === 0 ? "" : ` and ${more.length} more`;
  return `${first}${others} in ${path} is not committed: commit or remove it`;
}

/**
 * Why the work names commits of submodules that others could not get.
 * @param target the commit of the target; what it names, too, is not of this work. @throws ErrGit
 */
export async function explainLinks(
  repository: Repository,
  { worktree, branch, base, task_id }: LandingOrder,
  tip: string,
  target = base,
): Promise<string | undefined> {
  const [lost] = await lostLinks(repository, { tip, known: [base, target], worktree });
  if (lost === undefined) return undefined;
  const { path, commit } = lost;
  return `${branch} names the commit ${commit.slice(0, 12)} of the submodule ${path}, which is in no repository here and on no remote that they know: push it there, and fetch it into your own checkout of ${path} (git -C ${path} fetch), then: mailchute land ${task_id}`;
}

/** An agent may end on no branch or on one of its own. Then the worktree has commits that the branch lacks. */
async function explainHead(
  repository: Repository,
  path: string,
  branch: string,
  head: string | undefined,
): Promise<string | undefined> {
  const call = atCommonDir(repository);
  const tip = await commitOf(call, `refs/heads/${branch}`);
  if (head === undefined || tip === undefined || (await isAncestor(call, head, tip)))
    return undefined;
  return `${path} is at the commit ${head.slice(0, 12)}, which is not on ${branch}: bring it there (git checkout ${branch}; git merge ${head.slice(0, 12)})`;
}
