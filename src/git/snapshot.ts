/**
 * Puts everything that only a worktree holds into one commit: its files, including untracked ones, its index, commits that no branch
 * contains, and stash entries of its branch. Changes neither the worktree nor its index.
 */
import fs from "node:fs";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { gitlinksIn, innerWork } from "./inner-repository.ts";
import { newIndex } from "./own-index.ts";
import { unreachable } from "./refs.ts";
import { atCommonDir, commitOf, type Repository } from "./repository.ts";
import { askGit, type GitAnswer, type GitCall, gitLines, gitList, gitText } from "./run-git.ts";
import { stageAll } from "./stage.ts";

export interface Worktree {
  /** Undefined when its directory is gone. */
  path: string | undefined;
  gitDir: string;
  /** Its branch, without `refs/heads/`. */
  branch: string;
}

/** What a snapshot holds, for its message: each commit with a word for it. */
export type Held = readonly (readonly [what: string, commit: string])[];

export interface Snapshot {
  tree: string;
  /** The parents of its commit. The first one is the head of the worktree, if it has one. */
  parents: readonly string[];
  held: Held;
  /** True when files or the index differ from the head, or the index has unmerged entries. */
  isChanged: boolean;
  /** What the snapshot lacks: files that could not be read, and directories that are repositories of their own. */
  missing: readonly string[];
}

/** Commits that a stopped rebase, merge or bisect needs, besides the head. */
const OPERATIONS = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "ORIG_HEAD"];
/** The refs of earlier saves. */
const SAVES = "refs/mailchute";
const OWN_REFS = ["refs/worktree", "refs/bisect", "refs/rewritten"];
/** The name of the index for snapshots. The worktree never uses it. */
const INDEX = "mailchute-index";
/** With fixed dates, the same snapshot is the same commit, so a repeat makes nothing new. */
const SAME_TIME = { GIT_AUTHOR_DATE: "@0 +0000", GIT_COMMITTER_DATE: "@0 +0000" };
/** A snapshot names at most this many commits besides the head and the index. */
const EARLIER_MAX = 1000;

export interface SnapshotWish {
  /** True: stores files without filters, because an agent may have set up a filter, which would run here. */
  withoutFilters: boolean;
  /** Ignored files that the snapshot also takes. */
  more?: readonly string[];
}

/** @throws ErrGit, system errors */
export async function takeSnapshot(
  repository: Repository,
  worktree: Worktree,
  { withoutFilters, more = [] }: SnapshotWish,
): Promise<Snapshot> {
  const { path, gitDir, branch } = worktree;
  const settings = withoutFilters ? await switchFiltersOff(repository) : [];
  const call: GitCall = { cwd: path ?? gitDir, gitDir, env: repository.env, settings };
  const head = await commitOf(call, "HEAD");
  const headTree = head === undefined ? undefined : await treeOf(call, head);
  const index = await treeOfIndex(call, gitDir);
  const files = path === undefined ? undefined : await treeOfFiles(call, gitDir, more);
  const held: [string, string][] = head === undefined ? [] : [["head", head]];
  const isStaged = index !== undefined && index !== headTree;
  if (isStaged) held.push(["index", await commitTree(call, index, "index", [])]);
  for (const commit of await earlierCommits(repository, call)) held.push(["earlier", commit]);
  for (const commit of await stashesOf(repository, branch)) held.push(["stash", commit]);
  const tree = files?.tree ?? index ?? headTree ?? (await emptyTree(call));
  return {
    tree,
    parents: [...new Set(held.map(([, commit]) => commit))],
    held,
    isChanged: isStaged || (tree !== headTree && files !== undefined),
    missing: files?.missing ?? [],
  };
}

/** Whether everything in it is also on a branch or in an earlier save. */
export function isEmpty({ isChanged, held, missing }: Snapshot): boolean {
  return !isChanged && missing.length === 0 && held.every(([what]) => what === "head");
}

/** Makes the commit. Its message says what each parent is. */
export async function commitSnapshot(
  repository: Repository,
  { tree, parents, held, missing }: Snapshot,
  title: string,
): Promise<string> {
  const lines = held.map(([what, commit]) => `${what} ${commit}`);
  const lacks = missing.map((name) => `missing ${JSON.stringify(name)}`);
  const message = `${title}\n\n${[...lines, ...lacks].join("\n")}\n`;
  const call = { ...atCommonDir(repository), input: message };
  return gitText(call, "commit-tree", tree, ...parents.flatMap((one) => ["-p", one]));
}

/** What a commit of `commitSnapshot` holds. */
export function readHeld(message: string): Held {
  return [...message.matchAll(/^(head|index|earlier|stash) ([0-9a-f]{40,64})$/gm)].map(
    ([, what = "", commit = ""]) => [what, commit] as const,
  );
}

async function treeOf(call: GitCall, commit: string): Promise<string> {
  return gitText(call, "rev-parse", `${commit}^{tree}`);
}

async function emptyTree(call: GitCall): Promise<string> {
  return gitText({ ...call, input: "" }, "mktree");
}

async function commitTree(
  call: GitCall,
  tree: string,
  message: string,
  parents: readonly string[],
): Promise<string> {
  const fixed = { ...call, env: { ...call.env, ...SAME_TIME }, input: `${message}\n` };
  return gitText(fixed, "commit-tree", tree, ...parents.flatMap((one) => ["-p", one]));
}

/** Undefined when there is no index yet. Puts unmerged entries under `.unmerged/<stage>/`. */
async function treeOfIndex(call: GitCall, gitDir: string): Promise<string | undefined> {
  if (!fs.existsSync(join(gitDir, "index"))) return undefined;
  const unmerged = await askGit(call, "ls-files", "--unmerged", "-z");
  if (unmerged.out.length === 0) return gitText(call, "write-tree");
  const { out } = await askGit(call, "ls-files", "--stage", "-z");
  // Bytes, because paths need not be UTF-8: "<mode> <object> <stage>\t<path>".
  const entries = out
    .toString("latin1")
    .split("\0")
    .flatMap((entry) => {
      const [, mode = "", object = "", stage = "0", path = ""] =
        /^(\d+) ([0-9a-f]+) (\d)\t([\s\S]*)$/.exec(entry) ?? [];
      if (mode === "") return [];
      return [`${mode} ${object}\t${stage === "0" ? path : `.unmerged/${stage}/${path}`}\0`];
    });
  const file = newIndex(gitDir, INDEX);
  const own: GitCall = { ...call, env: { ...call.env, GIT_INDEX_FILE: file } };
  const input = Buffer.from(entries.join(""), "latin1");
  await askGit({ ...own, input }, "update-index", "-z", "--index-info");
  const tree = await gitText(own, "write-tree");
  fs.rmSync(file, { force: true });
  return tree;
}

/** The tree of all files that git does not ignore. */
async function treeOfFiles(
  call: GitCall,
  gitDir: string,
  more: readonly string[],
): Promise<{ tree: string; missing: string[] }> {
  const file = newIndex(gitDir, INDEX);
  // The worktree's index knows which files have not changed since, so git need not read them again.
  if (fs.existsSync(join(gitDir, "index"))) fs.copyFileSync(join(gitDir, "index"), file);
  const own: GitCall = { ...call, env: { ...call.env, GIT_INDEX_FILE: file } };
  await lookAtAllFiles(own);
  const missing: string[] = [];
  try {
    await stageAll(own);
  } catch (error) {
    // Git cannot read a file, or there is a repository without a commit. Save everything else.
    const { code } = await addWhatItCan(own, file);
    // Exit code 0: the first call failed only because a killed git had left a lock.
    if (code !== 0) missing.push(messageOf(error));
  }
  if (more.length > 0) {
    const input = more.map((name) => `:(literal)${name}\0`).join("");
    const named = ["--pathspec-from-file=-", "--pathspec-file-nul"];
    await askGit({ ...own, input }, "add", "--force", ...named);
  }
  // The tree only names their commits. The look at them must not use the index of the snapshot.
  for (const path of await innerWork(call, await gitlinksIn(own)))
    missing.push(`${path} is a repository of its own`);
  const tree = await gitText(own, "write-tree");
  fs.rmSync(file, { force: true });
  return { tree, missing };
}

async function addWhatItCan(own: GitCall, index: string): Promise<GitAnswer> {
  // A killed git left this lock.
  fs.rmSync(`${index}.lock`, { force: true });
  return stageAll({ ...own, answers: [1] }, "--ignore-errors");
}

/** Makes git look at all files, even those that a person or an agent told it to skip. */
async function lookAtAllFiles(call: GitCall): Promise<void> {
  const marked = (await gitList(call, "ls-files", "-v", "-z")).filter((line) =>
    /^[a-z]/.test(line),
  );
  if (marked.length === 0) return;
  const input = marked.map((line) => `${line.slice(2)}\0`).join("");
  await askGit({ ...call, input }, "update-index", "--no-assume-unchanged", "-z", "--stdin");
}

/** Commits that this worktree knows and that no branch contains. */
async function earlierCommits(repository: Repository, call: GitCall): Promise<string[]> {
  const answers = [1, 128];
  const log = await askGit({ ...call, answers }, "reflog", "show", "--format=%H", "HEAD");
  const known = log.code === 0 ? log.out.toString().split("\n") : [];
  for (const name of OPERATIONS) known.push((await commitOf(call, name)) ?? "");
  known.push(...(await gitLines(call, "for-each-ref", "--format=%(objectname)", ...OWN_REFS)));
  const head = await commitOf(call, "HEAD");
  const commits = new Set([head ?? "", ...known].filter((one) => one !== ""));
  return unreachable(repository, [...commits].slice(0, EARLIER_MAX), SAVES);
}

/** Stash entries that were made on the branch. git keeps those of all worktrees in one list. */
async function stashesOf(repository: Repository, branch: string): Promise<string[]> {
  const call = atCommonDir(repository);
  if ((await commitOf(call, "refs/stash")) === undefined) return [];
  const lines = await gitLines(call, "reflog", "show", "--format=%H %gs", "refs/stash");
  return lines
    .filter((line) => {
      const subject = line.slice(line.indexOf(" ") + 1);
      return subject.startsWith(`WIP on ${branch}: `) || subject.startsWith(`On ${branch}: `);
    })
    .map((line) => line.slice(0, line.indexOf(" ")));
}

/** Settings that switch off every filter that the repository or the user has. */
async function switchFiltersOff(repository: Repository): Promise<string[]> {
  const call = { ...atCommonDir(repository), answers: [1] };
  const names = await gitList(call, "config", "-z", "--name-only", "--get-regexp", "^filter\\.");
  return [...new Set(names.map((name) => name.replace(/\.[^.]+$/, "")))].flatMap((filter) => [
    `${filter}.clean=`,
    `${filter}.process=`,
    `${filter}.required=false`,
  ]);
}
