/** Puts saved files into a new worktree, for a task that continues the work of another one. */
import fs from "node:fs";
import { newIndex } from "../../git/own-index.ts";
import { atCommonDir, commitOf, isAncestor, type Repository } from "../../git/repository.ts";
import { askGit, type GitCall, gitText } from "../../git/run-git.ts";
import { readHeld, writeFilesOf } from "../../git/snapshot.ts";
import type { Worktree } from "../../git/worktree.ts";
import { endedRefOf } from "./names.ts";
import { savesOf } from "./save.ts";

const INDEX = "mailchute-restore";

/** The newest save of a task. */
interface Newest {
  commit: string;
  /** The head of the worktree at the time of the save. */
  head: string;
}

async function newestSave(repository: Repository, id: string): Promise<Newest | undefined> {
  const save = (await savesOf(repository, id)).at(-1);
  if (save === undefined) return undefined;
  const text = await gitText(atCommonDir(repository), "show", "-s", "--format=%B", save.commit);
  const head = readHeld(text).find(([what]) => what === "head")?.[1];
  return head === undefined ? undefined : { commit: save.commit, head };
}

/** The commit at which a deleted branch of a task begins again; undefined without a save that is newer than the branch's end. */
export async function headOfSave(repository: Repository, id: string): Promise<string | undefined> {
  const head = (await newestSave(repository, id))?.head;
  const call = atCommonDir(repository);
  const ended = await commitOf(call, endedRefOf(id));
  if (head === undefined || ended === undefined || ended === head) return head;
  return (await isAncestor(call, head, ended)) ? undefined : head;
}

/**
 * Writes the files of the newest save, if the branch is at the same commit as then. Stages nothing. Call it before the worktree has
 * an index, so that after a kill in the middle it is called again.
 */
export async function restoreFiles(
  repository: Repository,
  id: string,
  { path, gitDir, branch }: Worktree & { path: string },
): Promise<void> {
  const newest = await newestSave(repository, id);
  const tip = await commitOf(atCommonDir(repository), `refs/heads/${branch}`);
  if (newest === undefined || newest.head !== tip) return;
  const call: GitCall = { cwd: path, gitDir, env: repository.env };
  const index = newIndex(gitDir, INDEX);
  const own = { ...call, env: { ...call.env, GIT_INDEX_FILE: index } };
  await writeFilesOf(own, newest.commit);
  fs.rmSync(index, { force: true });
  // Sets the index to the branch, so that git sees the restored files as changes that are not staged.
  await askGit(call, "reset", "--quiet");
}
