/** Stages all files of a worktree. `git add` alone would start git in each repository inside, with settings that a run may have written. */
import { gitlinksIn } from "./inner-repository.ts";
import { askGit, type GitAnswer, type GitCall } from "./run-git.ts";

/** Like `git add --all`. @param more options, such as `--ignore-errors`. @throws ErrGit */
export async function stageAll(call: GitCall, ...more: string[]): Promise<GitAnswer> {
  const links = await gitlinksIn(call);
  const paths = [".", ...links.map((path) => `:(top,exclude,literal)${path}`)];
  const named = ["--pathspec-from-file=-", "--pathspec-file-nul"];
  const input = paths.map((path) => `${path}\0`).join("");
  const added = await askGit({ ...call, input }, "add", "--all", ...more, ...named);
  // This only reads which commit such a repository has checked out.
  const asked = ["update-index", "--add", "--remove", "-z", "--stdin"];
  if (links.length > 0)
    await askGit({ ...call, input: links.map((path) => `${path}\0`).join("") }, ...asked);
  return added;
}
