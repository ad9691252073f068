/**
 * Builds trees in an index of our own, in the git directory of a worktree. The index of the worktree stays as it is, and no mark in it
 * and no cone has a say. git takes files through its filters; a file that it refuses does not keep it from taking the others.
 */
import fs from "node:fs";
import { join } from "node:path";
import { ErrGit, messageOf } from "../core/errors.ts";
import { statOf } from "../host/regular-file.ts";
import { askGit, type GitCall, gitText, isDiskFull } from "./run-git.ts";
import { onDisk } from "./walk-files.ts";

/** With these settings git looks at each file that it is told of, and takes its name and mode as they are. */
const NO_MARKS = [
  "core.sparseCheckout=false",
  "core.ignoreStat=false",
  "core.untrackedCache=false",
  "core.splitIndex=false",
  "core.fileMode=true",
  "core.symlinks=true",
  "core.ignoreCase=false",
  "index.sparse=false",
];
/** Names that git does not take into a commit because they mean `.git` on other systems. A save has them, too. */
export const ALL_NAMES = ["core.protectNTFS=false", "core.protectHFS=false"];

const NAME = "mailchute-index-";
/** An index of ours that is older than this (ms) was left by a process that was killed. */
const LEFT_MS = 3_600_000;

export interface TreeEntry {
  mode: string;
  /** The id of its object. */
  oid: string;
}

/** Files that git does not take, with its words. */
type Refused = Map<string, string>;

/** Removes an index that a killed git left there, and its lock, because git would wait for that for ever. @returns the path of the index */
export function newIndex(gitDir: string, name: string): string {
  const file = join(gitDir, name);
  for (const left of [file, `${file}.lock`]) fs.rmSync(left, { force: true, recursive: true });
  return file;
}

/** The files of a tree, by path (latin1 text). Also has its links to submodules, with the mode 160000. */
export async function entriesOfTree(call: GitCall, tree: string): Promise<Map<string, TreeEntry>> {
  const { out } = await askGit(call, "ls-tree", "-r", "-z", "--full-tree", tree);
  const entries = new Map<string, TreeEntry>();
  for (const line of out.toString("latin1").split("\0")) {
    const tab = line.indexOf("\t");
    if (tab === -1) continue;
    const oid = line.slice(line.lastIndexOf(" ", tab) + 1, tab);
    entries.set(line.slice(tab + 1), { mode: line.slice(0, line.indexOf(" ")), oid });
  }
  return entries;
}

/** Paths for git's standard input, each with a NUL at its end. */
export function pathList(paths: Iterable<string>): Buffer {
  return Buffer.from([...paths].map((path) => `${path}\0`).join(""), "latin1");
}

/** An index that begins with a tree and changes. Call `close` at the end. */
export class OwnIndex {
  private readonly call: GitCall;
  /** git itself decides which names belong into a commit. */
  private readonly taking: GitCall;
  private readonly file: string;
  /** git wants an id, also for an entry that is removed. */
  private readonly noId: string;

  private constructor(call: GitCall, file: string, tree: string | undefined) {
    this.file = file;
    this.noId = "0".repeat(tree?.length ?? 40);
    const env = { ...call.env, GIT_INDEX_FILE: file };
    this.taking = { ...call, env, settings: [...(call.settings ?? []), ...NO_MARKS] };
    this.call = { ...this.taking, settings: [...(this.taking.settings ?? []), ...ALL_NAMES] };
  }

  /** @param call one in the worktree. @param tree the files that it begins with; undefined for none */
  static async open(call: GitCall, gitDir: string, tree: string | undefined): Promise<OwnIndex> {
    dropLeft(gitDir);
    // Two processes may look at a worktree at once.
    const index = new OwnIndex(call, newIndex(gitDir, `${NAME}${process.pid}`), tree);
    await askGit(index.call, "read-tree", ...(tree === undefined ? ["--empty"] : [tree]));
    return index;
  }

  close(): void {
    for (const left of [this.file, `${this.file}.lock`]) fs.rmSync(left, { force: true });
  }

  /** Takes files from the worktree, as `git add` does, also ignored ones. */
  async take(paths: readonly string[]): Promise<Refused> {
    const asked = ["update-index", "--add", "--replace", "-z", "--stdin"];
    return this.change(this.taking, paths, (path) => `${path}\0`, asked);
  }

  /** Sets entries to objects that are in the repository. */
  async set(entries: ReadonlyMap<string, TreeEntry>): Promise<Refused> {
    const lineOf = (path: string): string => {
      const { mode, oid } = entries.get(path) ?? { mode: "0", oid: this.noId };
      return `${mode} ${oid}\t${path}\0`;
    };
    return this.change(this.call, [...entries.keys()], lineOf, [
      "update-index",
      "-z",
      "--index-info",
    ]);
  }

  async remove(paths: readonly string[]): Promise<void> {
    await this.set(new Map(paths.map((path) => [path, { mode: "0", oid: this.noId }])));
  }

  /**
   * Writes files of the index into a new directory, as a checkout would, and removes them again.
   * @returns those for which the question has the answer true
   */
  async checkOutAside(
    paths: readonly string[],
    ask: (path: string, copy: string | Buffer) => Promise<boolean>,
  ): Promise<Set<string>> {
    const dir = `${this.file}.files`;
    fs.rmSync(dir, { recursive: true, force: true });
    fs.mkdirSync(dir);
    try {
      const asked = ["checkout-index", "--force", "--quiet", `--prefix=${dir}/`, "-z", "--stdin"];
      // A filter that fails leaves out its file.
      const answers = [1, 128];
      await askGit({ ...this.call, answers, input: pathList(paths) }, ...asked);
      const found = new Set<string>();
      for (const path of paths)
        if (isThere(dir, path) && (await ask(path, onDisk(dir, path)))) found.add(path);
      return found;
    } finally {
      fs.rmSync(dir, { recursive: true, force: true });
    }
  }

  /** How it differs from a tree; a removed file has the mode 000000. */
  async changesFrom(tree: string | undefined): Promise<Map<string, TreeEntry>> {
    const from = tree ?? (await gitText({ ...this.call, input: "" }, "mktree"));
    const asked = ["diff-index", "--cached", "-z", "--no-renames", "--ignore-submodules=none"];
    const { out } = await askGit(this.call, ...asked, from);
    const parts = out.toString("latin1").split("\0");
    const changes = new Map<string, TreeEntry>();
    for (let at = 0; at + 1 < parts.length; at += 2) {
      const [, mode = "", , oid = ""] = (parts[at] ?? "").split(" ");
      changes.set(parts[at + 1] ?? "", { mode, oid });
    }
    return changes;
  }

  async writeTree(): Promise<string> {
    return gitText(this.call, "write-tree");
  }

  /** git takes all files of a call or none, so a call that fails is made again with each half of its files. */
  private async change(
    call: GitCall,
    paths: readonly string[],
    lineOf: (path: string) => string,
    asked: readonly string[],
  ): Promise<Refused> {
    if (paths.length === 0) return new Map();
    try {
      const input = Buffer.from(paths.map(lineOf).join(""), "latin1");
      await askGit({ ...call, input }, ...asked);
      return new Map();
    } catch (error) {
      fs.rmSync(`${this.file}.lock`, { force: true });
      if (!isRefusal(error)) throw error;
      if (paths.length === 1) return new Map([[paths[0] ?? "", messageOf(error)]]);
      const half = Math.ceil(paths.length / 2);
      const first = await this.change(call, paths.slice(0, half), lineOf, asked);
      return new Map([...first, ...(await this.change(call, paths.slice(half), lineOf, asked))]);
    }
  }
}

/** Stores files as they are on disk, without any filter. @throws ErrGit */
export async function storeBytes(call: GitCall, paths: readonly string[]): Promise<string[]> {
  if (paths.length === 0) return [];
  const input = Buffer.from(paths.map((path) => `${quoted(path)}\n`).join(""), "latin1");
  const asked = ["hash-object", "-w", "--no-filters", "--stdin-paths"];
  const { out } = await askGit({ ...call, input }, ...asked);
  return out.toString().trim().split("\n");
}

/** Removes what killed processes have left. One that works now has begun a moment ago. */
function dropLeft(gitDir: string): void {
  for (const name of fs.readdirSync(gitDir)) {
    if (!name.startsWith(NAME)) continue;
    const { mtimeMs = Date.now() } = statOf(join(gitDir, name)) ?? {};
    if (Date.now() - mtimeMs > LEFT_MS)
      fs.rmSync(join(gitDir, name), { recursive: true, force: true });
  }
}

function isThere(dir: string, path: string): boolean {
  return fs.lstatSync(onDisk(dir, path), { throwIfNoEntry: false })?.isFile() === true;
}

/** Whether git itself ended with an error that is about a file. A full disk or a killed git says nothing about a file. */
export function isRefusal(error: unknown): boolean {
  return (
    error instanceof ErrGit && /ended with exit code/.test(error.message) && !isDiskFull(error)
  );
}

/** git reads one name a line. A name that it could not read so goes into quotes. */
function quoted(path: string): string {
  if (!/^"|\n|\r$/.test(path)) return path;
  const text = path.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n").replaceAll("\r", "\\r");
  return `"${text}"`;
}
