/** Reads what a worktree holds, without changing anything in it. */
import fs from "node:fs";
import { join, relative } from "node:path";
import { messageOf } from "../core/errors.ts";
import { exactStatOf } from "../host/regular-file.ts";
import { explainLook, lookAtFiles } from "./files-look.ts";
import { findCheckout } from "./find-repository.ts";
import { commitOf, openRepository, type Repository } from "./repository.ts";
import { askGit, type GitCall, gitList, gitText } from "./run-git.ts";
import { type DiskUse, shown } from "./walk-files.ts";
import type { Worktree } from "./worktree.ts";

export interface WorktreeStatus {
  modified: string[];
  untracked: string[];
  ignored: string[];
  unmerged: string[];
  /** Work that no commit can take, a sentence for each: repositories inside, files that git refuses or that cannot be read. */
  uncommittable: string[];
  /** The operation that was begun and has not ended: `rebase`, `merge`, … */
  operation: string | undefined;
  head: string | undefined;
  /** What git would commit: see `FilesLook`. */
  tree: string | undefined;
  use: DiskUse;
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

/** How a worktree of ours differs from its head. Looks at all files, whatever git was told about them. @throws ErrGit */
export async function statusOf(
  { env }: Repository,
  { path, gitDir, instead }: Worktree,
): Promise<WorktreeStatus> {
  const call: GitCall = { cwd: path ?? gitDir, gitDir, env };
  const head = await commitOf(call, "HEAD");
  const from = head === undefined ? undefined : await gitText(call, "rev-parse", `${head}^{tree}`);
  const status = {
    modified: [],
    untracked: [],
    ignored: [],
    unmerged: [],
    uncommittable: instead === undefined ? [] : [instead],
    operation: operationIn(gitDir),
    head,
    tree: from,
    use: { bytes: 0, shared_bytes: 0 },
  };
  if (path === undefined) return status;
  const look = await lookAtFiles(call, gitDir, from);
  const unmerged = await unmergedIn(call, gitDir);
  const asked = ["diff-index", "--cached", "--name-only", "-z"];
  const staged = head === undefined ? [] : await gitList(call, ...asked, "HEAD");
  const isMerged = (name: string): boolean => !unmerged.includes(name);
  const modified = new Set([...look.modified.map(shown), ...staged].filter(isMerged));
  const untracked = look.untracked.map(shown).filter(isMerged);
  return {
    ...status,
    modified: [...modified],
    untracked: untracked.filter((name) => !modified.has(name)),
    ignored: look.ignored.map(shown),
    unmerged,
    uncommittable: explainLook(look),
    tree: look.tree,
    use: look.use,
  };
}

/** How a checkout of a person differs from its head. */
export async function statusOfCheckout(
  { env }: Repository,
  path: string,
): Promise<Pick<WorktreeStatus, "modified" | "unmerged" | "operation">> {
  const gitDir = findCheckout(path)?.gitDir ?? join(path, ".git");
  const call: GitCall = { cwd: path, gitDir, env };
  const unmerged = await unmergedFiles(call);
  const asked = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=no"];
  const entries = await gitList(call, ...asked);
  const modified = entries.map((entry) => entry.slice(3)).filter((one) => !unmerged.includes(one));
  return { modified, unmerged, operation: operationIn(gitDir) };
}

/**
 * A text that changes with the head, the branch, the index and each file that git does not ignore. It tells what a program has changed that does
 * not hide it.
 * @param but a folder that does not count
 * @returns undefined outside of a checkout
 */
export async function stampOfCheckout(dir: string, but: string): Promise<string | undefined> {
  const found = findCheckout(dir);
  if (found?.top === undefined) return undefined;
  const { top, gitDir } = found;
  const { env } = await openRepository(top);
  const call: GitCall = { cwd: top, gitDir, env };
  const inside = relative(top, but);
  const rest = inside.startsWith("..") ? [] : ["--", ".", `:(exclude,top,literal)${inside}`];
  const asked = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"];
  const lines = await gitList(call, ...asked, "--no-renames", ...rest);
  const stamps = lines.map((line) => {
    // The names of a changed and of an untracked file stand behind eight fields and one.
    const [, name = ""] = /^(?:1 (?:\S+ ){7}|u (?:\S+ ){9}|\? )(.+)$/s.exec(line) ?? [];
    const stats = name === "" ? undefined : exactStatOf(join(top, name));
    return `${line} ${stats?.size ?? ""} ${stats?.mtimeNs ?? ""}`;
  });
  return stamps.join("\n");
}

/** Files that are in no commit, and that git would ignore if these were the only patterns. */
export async function filesThatFit(call: GitCall, patterns: readonly string[]): Promise<string[]> {
  const excludes = patterns.map((pattern) => `--exclude=${pattern}`);
  return gitList(call, "ls-files", "--others", "--ignored", ...excludes, "-z");
}

/**
 * Files of a worktree of ours that a merge has left for the run to solve. If a run has broken the index, there is nothing in it to
 * save: it is put aside, and a new one has the files of the head.
 */
export async function unmergedIn(call: GitCall, gitDir: string): Promise<string[]> {
  try {
    return await unmergedFiles(call);
  } catch (error) {
    if (!/\bindex\b/.test(messageOf(error))) throw error;
    await putIndexAside(call, gitDir);
    return unmergedFiles(call);
  }
}

/** The next index has the files of the head. */
export async function putIndexAside(call: GitCall, gitDir: string): Promise<void> {
  const index = join(gitDir, "index");
  fs.rmSync(`${index}.broken`, { force: true, recursive: true });
  fs.renameSync(index, `${index}.broken`);
  await askGit(call, "read-tree", "HEAD");
}

async function unmergedFiles(call: GitCall): Promise<string[]> {
  const entries = await gitList(call, "ls-files", "--unmerged", "-z");
  return [...new Set(entries.map((entry) => entry.slice(entry.indexOf("\t") + 1)))];
}

function operationIn(gitDir: string): string | undefined {
  return Object.entries(OPERATIONS).find(([name]) => fs.existsSync(join(gitDir, name)))?.[1];
}
