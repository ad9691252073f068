/** Reads what a worktree holds, without changing anything. */
import fs from "node:fs";
import { join } from "node:path";
import { commitOf, type Repository } from "./repository.ts";
import { type GitCall, gitList, OWN_FILES } from "./run-git.ts";
import type { Worktree } from "./snapshot.ts";

export interface WorktreeStatus {
  modified: string[];
  untracked: string[];
  ignored: string[];
  unmerged: string[];
  /** The operation that was begun and has not ended: `rebase`, `merge`, … */
  operation: string | undefined;
  head: string | undefined;
}

/** Files and folders of a git directory that show an operation that has stopped. */
const OPERATIONS = {
  "rebase-merge": "rebase",
  "rebase-apply": "rebase",
  MERGE_HEAD: "merge",
  CHERRY_PICK_HEAD: "cherry-pick",
  REVERT_HEAD: "revert",
  BISECT_LOG: "bisect",
} as const;

/** @throws ErrGit */
export async function statusOf(
  { env }: Repository,
  { path, gitDir }: Worktree,
): Promise<WorktreeStatus> {
  const call: GitCall = { cwd: path ?? gitDir, gitDir, env };
  const files = ["--untracked-files=all", "--ignored=matching"];
  const asked = ["status", "--porcelain=v2", "-z", ...OWN_FILES, ...files];
  const entries = path === undefined ? [] : await gitList(call, ...asked);
  const begun = Object.entries(OPERATIONS).find(([name]) => fs.existsSync(join(gitDir, name)));
  return { ...parseStatus(entries), operation: begun?.[1], head: await commitOf(call, "HEAD") };
}

/** Files that git ignores, one by one. For a nested repository, it lists only the directory, with a slash at the end. */
export async function ignoredFiles(call: GitCall): Promise<string[]> {
  return gitList(call, "ls-files", "--others", "--ignored", "--exclude-standard", "-z");
}

/** Files that are in no commit, and that git would ignore if these were the only patterns. */
export async function filesThatFit(call: GitCall, patterns: readonly string[]): Promise<string[]> {
  const excludes = patterns.map((pattern) => `--exclude=${pattern}`);
  return gitList(call, "ls-files", "--others", "--ignored", ...excludes, "-z");
}

/** @param entries of `git status --porcelain=v2 -z` */
export function parseStatus(
  entries: readonly string[],
): Pick<WorktreeStatus, "modified" | "untracked" | "ignored" | "unmerged"> {
  const status = {
    modified: [] as string[],
    untracked: [] as string[],
    ignored: [] as string[],
    unmerged: [] as string[],
  };
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] ?? "";
    const path = (fields: number): string => entry.split(" ").slice(fields).join(" ");
    switch (entry[0]) {
      case "1":
        status.modified.push(path(8));
        break;
      case "2":
        status.modified.push(path(9));
        // The next value is the old name of a renamed file.
        index++;
        break;
      case "u":
        status.unmerged.push(path(10));
        break;
      case "?":
        status.untracked.push(entry.slice(2));
        break;
      case "!":
        status.ignored.push(entry.slice(2));
        break;
      default:
    }
  }
  return status;
}
