/** Finds the commit at which the branch of a task begins. */
import { atCommonDir, commitOf, headOf, isAncestor, type Repository } from "./repository.ts";
import { askGit, type GitCall, gitText } from "./run-git.ts";

/**
 * The commit that `dir` has checked out. Work that builds on a branch begins at the tip of that branch if it is ahead. If both have
 * commits that the other lacks, it begins at a merge of both, or at the branch if they are in conflict.
 * @param branch without `refs/heads/`
 * @throws ErrGit
 */
export async function startOf(
  repository: Repository,
  dir: string,
  branch?: string,
): Promise<string> {
  const head = await headOf(dir, repository);
  if (branch === undefined) return head;
  const call = atCommonDir(repository);
  const tip = await commitOf(call, `refs/heads/${branch}`);
  if (tip === undefined || (await isAncestor(call, tip, head))) return head;
  if (await isAncestor(call, head, tip)) return tip;
  return (await mergeOf(call, tip, head, branch)) ?? tip;
}

/**
 * The parents of a merge that holds nothing of its own: git makes the same merge of them again. Empty for any other commit.
 * @throws ErrGit
 */
export async function parentsOfPlainMerge(call: GitCall, commit: string): Promise<string[]> {
  const parts = await gitText(call, "rev-parse", `${commit}^{tree}`, `${commit}^@`);
  const [tree, ...parents] = parts.split("\n");
  const [tip, head] = parents;
  if (tip === undefined || head === undefined || parents.length > 2) return [];
  return (await mergedTree(call, tip, head)) === tree ? parents : [];
}

/** Undefined when they are in conflict. */
export async function mergeOf(
  call: GitCall,
  tip: string,
  head: string,
  branch: string,
): Promise<string | undefined> {
  const tree = await mergedTree(call, tip, head);
  if (tree === undefined) return undefined;
  const input = `Merge commit '${head.slice(0, 12)}' into ${branch}\n`;
  return gitText({ ...call, input }, "commit-tree", tree, "-p", tip, "-p", head);
}

/** Undefined when they are in conflict, or when this git is older than 2.38 and cannot merge without a worktree. */
async function mergedTree(call: GitCall, tip: string, head: string): Promise<string | undefined> {
  const asked = ["merge-tree", "--write-tree", "--allow-unrelated-histories", tip, head];
  const { code, out } = await askGit({ ...call, answers: [1, 129] }, ...asked);
  return code === 0 ? out.toString().split("\n", 1)[0] : undefined;
}
