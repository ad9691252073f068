/** The worktrees of landings and of reviewers. They have no branch, and hold nothing that is not elsewhere, too. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { addWorktree } from "../../git/add-worktree.ts";
import { findGitDir, type Repository } from "../../git/repository.ts";
import { askGit } from "../../git/run-git.ts";
import { inTurn } from "../../git/turn.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";

export interface LandingWorktree {
  path: string;
  gitDir: string;
}

/** Makes a fresh worktree, and removes the one of an earlier run. @throws ErrGit, system errors */
export async function makeLandingWorktree(
  repository: Repository,
  path: string,
  commit: string,
): Promise<LandingWorktree> {
  await removeLandingWorktree(repository, path);
  const gitDir = await inTurn(repository, async () => {
    makeDirs(dirname(path), 1);
    return addWorktree(repository, path, { options: ["--detach"], start: commit });
  });
  await askGit({ cwd: path, gitDir, env: repository.env }, "reset", "--hard", "--quiet");
  return { path, gitDir };
}

export async function removeLandingWorktree(repository: Repository, path: string): Promise<void> {
  if (findGitDir(repository, path) === undefined && !fs.existsSync(path)) return;
  await inTurn(repository, async () => {
    const gitDir = findGitDir(repository, path);
    fs.rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    // git itself does not remove a worktree that a killed git has marked as "initializing".
    if (gitDir !== undefined) fs.rmSync(gitDir, { recursive: true, force: true });
  });
}

/** The path is beside the worktrees of tasks, in a folder that is no worktree. */
export function landingPathOf({ worktree, task_id }: LandingOrder): string {
  return join(dirname(worktree), ".landing", task_id);
}

/** @param reviewId the id of the reviewing task */
export function reviewPathOf({ worktree }: LandingOrder, reviewId: string): string {
  return join(dirname(worktree), ".review", reviewId);
}
