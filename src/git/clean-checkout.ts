/** Clean checkouts of one commit, for landings, reviewers and checks. They have no branch, and hold nothing that is not elsewhere, too. */
import fs from "node:fs";
import { dirname } from "node:path";
import { makeDirs } from "../host/make-dirs.ts";
import { addWorktree } from "./add-worktree.ts";
import { findGitDir, type Repository } from "./repository.ts";
import { askGit } from "./run-git.ts";
import { inTurn } from "./turn.ts";

export interface CleanCheckout {
  path: string;
  gitDir: string;
}

/** Makes a fresh worktree, and removes the one of an earlier run. @throws ErrGit, system errors */
export async function makeCleanCheckout(
  repository: Repository,
  path: string,
  commit: string,
): Promise<CleanCheckout> {
  await removeCleanCheckout(repository, path);
  const gitDir = await inTurn(repository, async () => {
    makeDirs(dirname(path), 1);
    return addWorktree(repository, path, { options: ["--detach"], start: commit });
  });
  await askGit({ cwd: path, gitDir, env: repository.env }, "reset", "--hard", "--quiet");
  return { path, gitDir };
}

export async function removeCleanCheckout(repository: Repository, path: string): Promise<void> {
  if (findGitDir(repository, path) === undefined && !fs.existsSync(path)) return;
  await inTurn(repository, async () => {
    const gitDir = findGitDir(repository, path);
    fs.rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    // git itself does not remove a worktree that a killed git has marked as "initializing".
    if (gitDir !== undefined) fs.rmSync(gitDir, { recursive: true, force: true });
  });
}
