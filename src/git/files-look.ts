/**
 * Compares all files of a worktree with a tree. It does not ask git which files to look at: a file that has the stamp of our own index
 * has not changed, and each other file is read. git only says which new files it ignores, and what it would commit.
 */
import fs from "node:fs";
import { setImmediate as othersTurn, setTimeout as wait } from "node:timers/promises";
import { type FilesIndex, readFilesIndex, writeFilesIndex } from "./files-index.ts";
import { hashOfFile } from "./hash-file.ts";
import { explainInner, type Inner, stampsOfInner } from "./inner-files.ts";
import { entriesOfTree, OwnIndex, pathList, type TreeEntry } from "./own-index.ts";
import { askGit, type GitCall, splitNul } from "./run-git.ts";
import {
  type DiskUse,
  type FoundFiles,
  lastingStamp,
  onDisk,
  shown,
  walkFiles,
} from "./walk-files.ts";

/** How a worktree differs from a tree. All paths are bytes, as latin1 text. */
export interface FilesLook {
  /** What git would commit: the tree with all changes that git takes. Undefined when there is no tree and no file. */
  tree: string | undefined;
  /** Changed and removed files of the tree. */
  modified: string[];
  /** New files that git does not ignore. */
  untracked: string[];
  /** New files that git ignores, without those that `setup` made. */
  ignored: string[];
  /** Changed or new files that git does not take, with its words. */
  refused: Map<string, string>;
  /** Files that `tree` would not give back as they are, with their modes: the refused ones, and those with odd line ends. */
  bytes: Map<string, string>;
  /** Directories that are repositories of their own and hold something that is not elsewhere, with the reason. */
  inner: Map<string, string>;
  unreadable: string[];
  use: DiskUse;
}

interface Seen {
  call: GitCall;
  gitDir: string;
  tree: string | undefined;
  entries: ReadonlyMap<string, TreeEntry>;
  found: FoundFiles;
  known: FilesIndex;
  /** The hash of each file that was read. */
  hashes: Map<string, string>;
  /** A file comes back as it is when git checks this blob out. */
  sources: Map<string, string>;
}

/** The smallest steps in which file systems count time (ms). */
const TICK_MS = 12;
/** After so many files, others have their turn. */
const PAUSE_FILES = 64;

/** @param tree undefined: no files. @throws ErrGit, system errors */
export async function lookAtFiles(
  call: GitCall,
  gitDir: string,
  tree: string | undefined,
): Promise<FilesLook> {
  const seen = await see(call, gitDir, tree);
  await othersTurn();
  const { found, known, entries } = seen;
  const { changed, fresh } = sort(seen);
  await readAll(seen, changed);
  const modes = await modesOf(seen, changed);
  const { ignored, others } = await splitIgnored(call, fresh);
  await readAll(seen, others);
  for (const path of others) modes.set(path, found.files.get(path)?.mode ?? "");
  const differ = [...changed, ...others].filter((path) => {
    const hash = seen.hashes.get(path);
    const { oid, mode } = entries.get(path) ?? {};
    return hash !== undefined && (hash !== oid || modes.get(path) !== mode);
  });
  const removed = await removedFiles(seen);
  const inner = await explainInner(call, gitDir, found.inner, known.inner, entries);
  const { unreadable, use } = found;
  const taken = await takeAll(seen, { differ, modes, removed, inner });
  await remember(seen);
  return { ...taken, ignored, inner: inner.kept, unreadable, use };
}

/** What no commit can take, a sentence for each. */
export function explainLook({
  inner,
  unreadable,
  refused,
}: Pick<FilesLook, "inner" | "unreadable" | "refused">): string[] {
  return [
    ...[...inner].map(([dir, why]) => `${shown(dir)} ${why}`),
    ...unreadable.map((name) => `${shown(name)} cannot be read`),
    ...[...refused].map(([name, why]) => `git does not take ${shown(name)}: ${why}`),
  ];
}

/** Call it when git has just written all files of the tree into a new worktree. */
export async function noteCheckout(call: GitCall, gitDir: string, tree: string): Promise<void> {
  const { found, entries } = await see(call, gitDir, tree);
  const known: FilesIndex = { files: new Map(), inner: new Map() };
  for (const [path, file] of found.files) {
    const oid = entries.get(path)?.oid;
    const { stamp, mode } = file;
    if (oid !== undefined) known.files.set(path, { stamp, mode, blobs: [oid], isSpare: false });
  }
  await pastTick(found);
  writeFilesIndex(gitDir, known);
}

/**
 * Call it when `setup` has succeeded. Its ignored files and repositories inside may be lost as long as they do not change.
 * @returns the ignored files
 */
export async function noteSetup(
  call: GitCall,
  gitDir: string,
  tree: string | undefined,
): Promise<string[]> {
  const seen = await see(call, gitDir, tree);
  const { found, known } = seen;
  const { ignored } = await splitIgnored(call, sort(seen).fresh);
  for (const path of ignored) {
    const file = found.files.get(path);
    if (file === undefined) continue;
    const stamp = file.isShared ? lastingStamp(file.stamp) : file.stamp;
    known.files.set(path, { stamp, mode: file.mode, blobs: [], isSpare: true });
  }
  await pastTick(found);
  writeFilesIndex(gitDir, { ...known, inner: await stampsOfInner(gitDir, found.inner) });
  return ignored;
}

async function see(call: GitCall, gitDir: string, tree: string | undefined): Promise<Seen> {
  const entries =
    tree === undefined ? new Map<string, TreeEntry>() : await entriesOfTree(call, tree);
  const links = new Set<string>();
  for (const [path, { mode }] of entries) if (mode === "160000") links.add(path);
  const found = await walkFiles(call.cwd, links);
  await othersTurn();
  return {
    call,
    gitDir,
    tree,
    entries,
    found,
    known: readFilesIndex(gitDir) ?? { files: new Map(), inner: new Map() },
    hashes: new Map(),
    sources: new Map(),
  };
}

/** Files of the tree that may differ from it, and files that the tree lacks. */
function sort({ found, entries, known }: Seen): { changed: string[]; fresh: string[] } {
  const changed: string[] = [];
  const fresh: string[] = [];
  for (const [path, { stamp, mode }] of found.files) {
    const before = known.files.get(path);
    const isSame = before?.stamp === stamp;
    const entry = entries.get(path);
    if (entry === undefined) {
      const isSpare = before?.isSpare === true && (isSame || before.stamp === lastingStamp(stamp));
      if (!isSpare) fresh.push(path);
      // An earlier look may have noted contents that the tree has, with another mode.
    } else if (!isSame || !before.blobs.includes(entry.oid) || mode !== entry.mode)
      changed.push(path);
  }
  return { changed, fresh };
}

async function readAll(
  { call, found, hashes, tree }: Seen,
  paths: readonly string[],
): Promise<void> {
  const algorithm = (tree ?? "").length === 64 ? "sha256" : "sha1";
  for (const [n, path] of paths.entries()) {
    const file = found.files.get(path);
    if (file === undefined || hashes.has(path)) continue;
    if (n % PAUSE_FILES === 0) await othersTurn();
    try {
      hashes.set(path, await hashOfFile(onDisk(call.cwd, path), file, algorithm));
    } catch {
      found.unreadable.push(path);
    }
  }
}

/**
 * The modes that git would commit. On a file system without modes or links, those of the tree stay for each file that has stood like
 * this since it was checked out.
 */
async function modesOf(
  { call, found, entries, known }: Seen,
  paths: readonly string[],
): Promise<Map<string, string>> {
  const modes = new Map<string, string>();
  let settings: { hasModes: boolean; hasLinks: boolean } | undefined;
  for (const path of paths) {
    const { mode = "" } = found.files.get(path) ?? {};
    const before = entries.get(path)?.mode ?? "";
    modes.set(path, mode);
    const asBefore = known.files.get(path)?.mode ?? mode;
    if (mode === before || mode !== asBefore || mode === "120000" || before === "160000") continue;
    settings ??= { hasModes: await isOn(call, "fileMode"), hasLinks: await isOn(call, "symlinks") };
    if (before === "120000" ? !settings.hasLinks : !settings.hasModes) modes.set(path, before);
  }
  return modes;
}

async function isOn(call: GitCall, name: string): Promise<boolean> {
  const asked = ["config", "--type=bool", "--get", `core.${name}`];
  const { out } = await askGit({ ...call, answers: [1] }, ...asked);
  return out.toString().trim() !== "false";
}

/** A file that the index of the worktree has does not count as ignored. */
async function splitIgnored(
  call: GitCall,
  paths: readonly string[],
): Promise<{ ignored: string[]; others: string[] }> {
  if (paths.length === 0) return { ignored: [], others: [] };
  // A name that begins with a colon would mean something else.
  const input = pathList(paths.map((path) => `./${path}`));
  const asked = { ...call, input, answers: [1] };
  const { out } = await askGit(asked, "check-ignore", "-z", "--stdin").catch(() =>
    // Its index cannot be read.
    askGit(asked, "check-ignore", "-z", "--stdin", "--no-index"),
  );
  const all = new Set(splitNul(out.toString("latin1")));
  const isIgnored = (path: string): boolean => all.has(`./${path}`);
  return {
    ignored: paths.filter(isIgnored),
    others: paths.filter((path) => !isIgnored(path)),
  };
}

/** Files of the tree that are gone. One that git was told to leave out was not removed by anyone, and its contents are in the tree. */
async function removedFiles({ call, found, entries }: Seen): Promise<string[]> {
  const hidden = [...found.inner.keys()].map((dir) => `${dir}/`);
  hidden.push(...found.unreadable);
  const gone: string[] = [];
  for (const [path, { mode }] of entries) {
    if (found.files.has(path) || (mode === "160000" && isThere(call.cwd, path))) continue;
    if (!hidden.some((dir) => path === dir || path.startsWith(dir))) gone.push(path);
  }
  if (gone.length === 0) return [];
  const { out } = await askGit({ ...call, answers: [128] }, "ls-files", "-t", "-z");
  const left = splitNul(out.toString("latin1")).filter((line) => line.startsWith("S "));
  const leftOut = new Set(left.map((line) => line.slice(2)));
  return gone.filter((path) => !leftOut.has(path));
}

function isThere(root: string, path: string): boolean {
  return fs.lstatSync(onDisk(root, path), { throwIfNoEntry: false }) !== undefined;
}

interface Differences {
  differ: readonly string[];
  modes: ReadonlyMap<string, string>;
  removed: readonly string[];
  inner: Inner;
}

/** Makes the tree that git would commit, and finds the files that it would not give back as they are. */
async function takeAll(
  seen: Seen,
  { differ, modes, removed, inner }: Differences,
): Promise<Pick<FilesLook, "tree" | "modified" | "untracked" | "refused" | "bytes">> {
  const { call, gitDir, tree, entries, hashes } = seen;
  const none = { tree, modified: [], untracked: [], refused: new Map(), bytes: new Map() };
  if (differ.length + removed.length + inner.links.length === 0) return none;
  const index = await OwnIndex.open(call, gitDir, tree);
  try {
    await index.remove(removed);
    const refused = await index.take([...differ, ...inner.links]);
    for (const dir of inner.links)
      if (refused.delete(dir)) inner.kept.set(dir, "is a repository that git does not take");
    const taken = await index.changesFrom(tree);
    // git leaves out such a name without an error.
    for (const path of differ)
      if (!refused.has(path) && !taken.has(path) && !entries.has(path))
        refused.set(path, "on another system its name could mean .git");
    const oidOf = (path: string): string => taken.get(path)?.oid ?? entries.get(path)?.oid ?? "";
    const fixed = new Map<string, TreeEntry>();
    for (const path of differ) {
      const mode = modes.get(path) ?? "";
      const now = taken.get(path)?.mode ?? entries.get(path)?.mode;
      // A link as a file: its filter would be that of a file.
      const oid = mode === "120000" ? (hashes.get(path) ?? "") : oidOf(path);
      if (!refused.has(path) && now !== mode) fixed.set(path, { mode, oid });
    }
    await index.set(fixed);
    const changes = fixed.size === 0 ? taken : await index.changesFrom(tree);
    const converted = differ.filter(
      (path) => !refused.has(path) && !fixed.has(path) && oidOf(path) !== hashes.get(path),
    );
    const back = await givenBack(seen, index, converted);
    const odd = converted.filter((path) => !back.has(path));
    for (const path of converted) if (back.has(path)) seen.sources.set(path, oidOf(path));
    return {
      tree: await index.writeTree(),
      modified: [...changes.keys()].filter((path) => entries.has(path)),
      untracked: [...changes.keys()].filter((path) => !entries.has(path)),
      refused,
      bytes: new Map([...refused.keys(), ...odd].map((path) => [path, modes.get(path) ?? ""])),
    };
  } finally {
    index.close();
  }
}

/** Those of the files that a checkout of the index would write as they are. */
async function givenBack(
  { hashes }: Seen,
  index: OwnIndex,
  paths: readonly string[],
): Promise<Set<string>> {
  if (paths.length === 0) return new Set();
  return index.checkOutAside(paths, async (path, copy) => {
    const hash = hashes.get(path) ?? "";
    const algorithm = hash.length === 64 ? "sha256" : "sha1";
    return (await hashOfFile(copy, { mode: "100644" }, algorithm)) === hash;
  });
}

/** Notes the contents of all files that were read, so that the next look need not read them. */
async function remember(seen: Seen): Promise<void> {
  const { gitDir, found, known, hashes, sources } = seen;
  if (hashes.size === 0) return;
  for (const [path, hash] of hashes) {
    const file = found.files.get(path);
    if (file === undefined) continue;
    const source = sources.get(path);
    const blobs = source === undefined ? [hash] : [hash, source];
    const { mode = file.mode } = known.files.get(path) ?? {};
    known.files.set(path, { stamp: file.stamp, mode, blobs, isSpare: false });
  }
  await pastTick(found);
  writeFilesIndex(gitDir, known);
}

/** Waits until a later change of a file gets a later time, or for a turn of others. */
async function pastTick({ newestMs }: FoundFiles): Promise<void> {
  await othersTurn();
  const restMs = newestMs + TICK_MS - Date.now();
  if (restMs > 0) await wait(Math.min(restMs, TICK_MS));
}
