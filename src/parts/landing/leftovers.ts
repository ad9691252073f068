/** Says what a worktree holds that its branch lacks: after a run mailchute has committed all of it, but a person or an agent may go on there. */
import fs from "node:fs";
import { findGitDir, type Repository } from "../../git/repository.ts";
import { statusOf } from "../../git/status.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";

/** @returns why the branch is not all of the work; undefined: it is. @throws ErrGit */
export async function explainLeftovers(
  repository: Repository,
  { worktree: path, branch }: LandingOrder,
): Promise<string | undefined> {
  const gitDir = findGitDir(repository, path);
  if (gitDir === undefined || !fs.existsSync(path)) return undefined;
  const status = await statusOf(repository, { path, gitDir, branch });
  if (status.operation !== undefined) return `a ${status.operation} in ${path} has not ended`;
  const { modified, unmerged, untracked } = status;
  const [first, ...more] = [...unmerged, ...modified, ...untracked];
  if (first === undefined) return undefined;
  const others = more.length === 0 ? "" : ` and ${more.length} more`;
  return `${first}${others} in ${path} is not committed: commit or remove it`;
}
