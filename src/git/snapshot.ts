/**
 * Puts everything that only a worktree holds into one commit: its files, including untracked ones, its index, commits that no branch
 * contains, and stash entries of its branch. Changes neither the worktree nor its index.
 */
import fs from "node:fs";
import { join } from "node:path";
import { writeNew } from "../host/regular-file.ts";
import { explainLook, type FilesLook, lookAtFiles } from "./files-look.ts";
import {
  ALL_NAMES,
  entriesOfTree,
  isRefusal,
  newIndex,
  OwnIndex,
  pathList,
  storeBytes,
  type TreeEntry,
} from "./own-index.ts";
import { unreachable } from "./refs.ts";
import { atCommonDir, commitOf, type Repository } from "./repository.ts";
import { askGit, type GitCall, gitLines, gitText } from "./run-git.ts";
import { putIndexAside, unmergedIn } from "./status.ts";
import { type DiskUse, onDisk, shown } from "./walk-files.ts";
import type { Worktree } from "./worktree.ts";

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
  /** What git would commit. The snapshot may have more: files as they are on disk. */
  work: string;
  /** What its files take on the disk; undefined when they are gone. */
  use?: DiskUse | undefined;
  /** What git does not take into a commit, a sentence for each. The snapshot may have it. */
  uncommittable: readonly string[];
  /** Ignored files that `setup` did not make. The snapshot has only those that it was asked for. */
  ignored: readonly string[];
  /** Files that the snapshot has as they are on disk, because git would give back other contents (latin1 text). */
  bytes: readonly string[];
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
  /** Ignored files that the snapshot also takes. */
  more?: readonly string[];
}

/** @throws ErrGit, system errors */
export async function takeSnapshot(
  repository: Repository,
  worktree: Worktree,
  { more = [] }: SnapshotWish,
): Promise<Snapshot> {
  const { path, gitDir, branch, instead } = worktree;
  const others = instead === undefined ? [] : [instead];
  const call: GitCall = { cwd: path ?? gitDir, gitDir, env: repository.env };
  const head = await commitOf(call, "HEAD");
  const headTree = head === undefined ? undefined : await treeOf(call, head);
  const index = await treeOfIndex(call, gitDir);
  const look = path === undefined ? undefined : await lookAtFiles(call, gitDir, headTree);
  const files = look === undefined ? undefined : await treeOfFiles(call, gitDir, look, more);
  const held: [string, string][] = head === undefined ? [] : [["head", head]];
  const isStaged = index !== undefined && index !== headTree;
  if (isStaged) held.push(["index", await commitTree(call, index, "index", [])]);
  for (const commit of await earlierCommits(repository, call)) held.push(["earlier", commit]);
  for (const commit of await stashesOf(repository, branch)) held.push(["stash", commit]);
  const without = index ?? headTree ?? (await emptyTree(call));
  const tree = files?.tree ?? without;
  return {
    tree,
    work: look?.tree ?? without,
    uncommittable: look === undefined ? others : explainLook(look),
    ignored: look?.ignored.map(shown) ?? [],
    bytes: files?.bytes ?? [],
    parents: [...new Set(held.map(([, commit]) => commit))],
    held,
    isChanged: isStaged || (tree !== headTree && files !== undefined),
    missing: files?.missing ?? others,
    use: look?.use,
  };
}

/**
 * A snapshot of a worktree that a run has removed, with its branch.
 * @param tips commits that no ref has, the newest first. @param base what it holds without any
 */
export async function snapshotOfGone(
  repository: Repository,
  tips: readonly string[],
  base: string,
): Promise<Snapshot> {
  const tree = await treeOf(atCommonDir(repository), tips[0] ?? base);
  const held = tips.map((commit, n) => [n === 0 ? "head" : "earlier", commit] as const);
  const isChanged = tips.length > 0;
  const nothing = { missing: [], uncommittable: [], ignored: [], bytes: [] };
  return { ...nothing, tree, work: tree, parents: tips, held, isChanged };
}

/** Whether everything in it is also on a branch or in an earlier save. */
export function isEmpty({ isChanged, held, missing }: Snapshot): boolean {
  return !isChanged && missing.length === 0 && held.every(([what]) => what === "head");
}

/** Makes the commit. Its message says what each parent is. */
export async function commitSnapshot(
  repository: Repository,
  { tree, parents, held, missing, bytes }: Snapshot,
  title: string,
): Promise<string> {
  const lines = held.map(([what, commit]) => `${what} ${commit}`);
  const lacks = missing.map((name) => `missing ${JSON.stringify(name)}`);
  const asBytes = bytes.map((name) => `bytes ${JSON.stringify(name)}`);
  const message = `${title}\n\n${[...lines, ...lacks, ...asBytes].join("\n")}\n`;
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

/** Undefined when there is no index yet. One that names objects which are nowhere has nothing to save. */
async function treeOfIndex(call: GitCall, gitDir: string): Promise<string | undefined> {
  if (!fs.existsSync(join(gitDir, "index"))) return undefined;
  try {
    return await writeIndex(call, gitDir);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    await putIndexAside(call, gitDir);
    return writeIndex(call, gitDir);
  }
}

/** Puts unmerged entries under `.unmerged/<stage>/`. */
async function writeIndex(call: GitCall, gitDir: string): Promise<string> {
  if ((await unmergedIn(call, gitDir)).length === 0) return gitText(call, "write-tree");
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

/** The tree of all files that git does not ignore, and of the named ones: each file as git gives it back, or as it is on disk. */
async function treeOfFiles(
  call: GitCall,
  gitDir: string,
  look: FilesLook,
  more: readonly string[],
): Promise<{ tree: string | undefined; missing: string[]; bytes: string[] }> {
  const wanted = new Set(more);
  const ignored = look.ignored.filter((path) => wanted.has(shown(path)));
  const missing = explainLook({ ...look, refused: new Map() });
  const bytes = [...look.bytes.keys()];
  if (bytes.length + ignored.length === 0) return { tree: look.tree, missing, bytes };
  const index = await OwnIndex.open(call, gitDir, look.tree);
  try {
    const isLink = (path: string): boolean => fs.lstatSync(onDisk(call.cwd, path)).isSymbolicLink();
    const links = ignored.filter(isLink);
    const files = [...bytes, ...ignored.filter((path) => !links.includes(path))];
    const entries = new Map<string, TreeEntry>();
    for (const path of files) {
      const { mode } = fs.lstatSync(onDisk(call.cwd, path));
      const [oid] = await storeBytes(call, [path]).catch(() => []);
      if (oid === undefined) missing.push(`${shown(path)} cannot be stored`);
      else entries.set(path, { mode: (mode & 0o100) === 0 ? "100644" : "100755", oid });
    }
    const lacks = new Map([...(await index.take(links)), ...(await index.set(entries))]);
    for (const [path, why] of lacks) missing.push(`${shown(path)} cannot be stored: ${why}`);
    return { tree: await index.writeTree(), missing, bytes: [...entries.keys()] };
  } finally {
    index.close();
  }
}

/**
 * Writes the files of a save, or of another commit, into a directory.
 * @param into a call in the directory, with an index of its own (`GIT_INDEX_FILE`)
 */
export async function writeFilesOf(into: GitCall, commit: string): Promise<void> {
  const call = { ...into, settings: [...(into.settings ?? []), ...ALL_NAMES] };
  const bytes = await bytesOf(call, commit);
  await askGit(call, "read-tree", commit);
  const drop = ["update-index", "--force-remove", "-z", "--stdin"];
  if (bytes.size > 0) await askGit({ ...call, input: pathList(bytes.keys()) }, ...drop);
  await askGit(call, "checkout-index", "--all", "--force");
  for (const [path, { mode, oid }] of bytes) {
    const { out } = await askGit(call, "cat-file", "blob", oid);
    const file = onDisk(call.cwd, path);
    makeParents(call.cwd, path);
    fs.rmSync(file, { force: true, recursive: true });
    writeNew(file, out, { mode: mode === "100755" ? 0o777 : 0o666 });
  }
}

function makeParents(root: string, path: string): void {
  for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1)) {
    const dir = onDisk(root, path.slice(0, at));
    if (!fs.existsSync(dir)) fs.mkdirSync(dir);
  }
}

/** The files that a save has as they were on disk, by path (latin1 text). A checkout would write other contents. */
async function bytesOf(call: GitCall, commit: string): Promise<Map<string, TreeEntry>> {
  const text = await gitText(call, "show", "-s", "--format=%B", commit);
  const names = [...text.matchAll(/^bytes (".*")$/gm)].map(([, name = ""]) => JSON.parse(name));
  if (names.length === 0) return new Map();
  const entries = await entriesOfTree(call, commit);
  return new Map([...entries].filter(([path]) => names.includes(path)));
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
