/**
 * Lists the files of a worktree as they are on disk, with a stamp of each one. Asks no git, so no mark, cone or attribute hides a
 * file. Files of repositories inside are listed apart. Names are bytes, written as latin1 text, because they need not be UTF-8.
 */
import fs from "node:fs";
import { setImmediate as othersTurn } from "node:timers/promises";
import { systemCode } from "../core/errors.ts";

export type FileMode = "100644" | "100755" | "120000";

export interface FoundFile {
  /** Inode, size, times and rights. Each change of the contents changes it, also if a program sets the time of the file back. */
  stamp: string;
  mode: FileMode;
  /** True if it has other names. */
  isShared: boolean;
}

/** What files take on the disk. Bytes that a file system shares by itself (reflinks) count for each file. */
export interface DiskUse {
  bytes: number;
  /** Bytes of files that have other names elsewhere. They are not in `bytes`. */
  shared_bytes: number;
}

export interface FoundFiles {
  /** By path, without the files of repositories inside, and without sockets, pipes and devices. */
  files: Map<string, FoundFile>;
  /** The files of each repository inside, with its git directory, by the path of its directory. */
  inner: Map<string, Map<string, FoundFile>>;
  unreadable: string[];
  use: DiskUse;
  /** When the newest of them changed (ms). */
  newestMs: number;
}

/** How long a walk keeps the thread before others have their turn (ms), and after how many files it looks at the clock. */
const TURN_MS = 10;
const LOOK_FILES = 64;
/** How many names of a folder are read at once. */
const NAMES = 512;

/** A name that git takes into no tree. Such a file or folder makes its directory a repository of its own. */
export function isGitName(name: string): boolean {
  return name.toLowerCase() === ".git";
}

/** @param links directories that are repositories of their own although they have no `.git` */
export async function walkFiles(root: string, links: ReadonlySet<string>): Promise<FoundFiles> {
  const found: FoundFiles = {
    files: new Map(),
    inner: new Map(),
    unreadable: [],
    use: { bytes: 0, shared_bytes: 0 },
    newestMs: 0,
  };
  const names = new SharedNames(found.use);
  const turn = newTurn();
  const dirs: { path: string; repository: string | undefined }[] = [
    { path: "", repository: undefined },
  ];
  for (let dir = dirs.pop(); dir !== undefined; dir = dirs.pop()) {
    const entries = await entriesOf(root, dir.path, found, turn);
    names.count(fs.lstatSync(onDisk(root, dir.path), { bigint: true, throwIfNoEntry: false }));
    const isOwn = dir.path !== "" && entries.some(({ name }) => isGitName(name));
    const repository = dir.repository ?? (isOwn || links.has(dir.path) ? dir.path : undefined);
    for (const [n, entry] of entries.entries()) {
      if (n % LOOK_FILES === 0 && turn.isOver()) await turn.pass();
      // A folder here is a repository that a run has made in the place of ours.
      if (dir.path === "" && entry.name === ".git" && !entry.isDirectory()) continue;
      const path = dir.path === "" ? entry.name : `${dir.path}/${entry.name}`;
      // At the top, the name `.GIT` is a file that git takes into no tree.
      const owner = repository ?? (isGitName(entry.name) ? path : undefined);
      if (entry.isDirectory()) dirs.push({ path, repository: owner });
      else names.count(note(root, path, owner, found));
    }
  }
  return found;
}

/** The path of a file as `fs` takes it. */
export function onDisk(root: string, path: string): string | Buffer {
  const isPlain = /^[\x20-\x7e]*$/.test(path);
  return isPlain
    ? `${root}/${path}`
    : Buffer.concat([Buffer.from(`${root}/`), Buffer.from(path, "latin1")]);
}

/** A path as people read it. */
export function shown(path: string): string {
  return Buffer.from(path, "latin1").toString();
}

interface Turn {
  isOver(): boolean;
  /** Lets others work. */
  pass(): Promise<void>;
}

/** Cheap: no promise for each file. */
function newTurn(): Turn {
  let endMs = performance.now() + TURN_MS;
  return {
    isOver: () => performance.now() > endMs,
    async pass() {
      await othersTurn();
      endMs = performance.now() + TURN_MS;
    },
  };
}

async function entriesOf(
  root: string,
  path: string,
  found: FoundFiles,
  turn: Turn,
): Promise<fs.Dirent[]> {
  const entries: fs.Dirent[] = [];
  try {
    const options = { encoding: "latin1", bufferSize: NAMES } as const;
    const dir = fs.opendirSync(onDisk(root, path) as string, options);
    try {
      for (let entry = dir.readSync(); entry !== null; entry = dir.readSync()) {
        entries.push(entry);
        if (entries.length % NAMES === 0 && turn.isOver()) await turn.pass();
      }
    } finally {
      dir.closeSync();
    }
  } catch (error) {
    if (systemCode(error) !== "ENOENT") found.unreadable.push(`${path}/`);
  }
  return entries;
}

/** @returns undefined when it cannot be looked at */
function note(
  root: string,
  path: string,
  owner: string | undefined,
  found: FoundFiles,
): fs.BigIntStats | undefined {
  let stats: fs.BigIntStats;
  try {
    stats = fs.lstatSync(onDisk(root, path), { bigint: true });
  } catch (error) {
    if (systemCode(error) !== "ENOENT") found.unreadable.push(path);
    return undefined;
  }
  const file = describe(stats);
  if (file === undefined) return undefined;
  found.newestMs = Math.max(found.newestMs, Number(stats.ctimeMs));
  if (owner === undefined) {
    found.files.set(path, file);
    return stats;
  }
  const files = found.inner.get(owner) ?? new Map<string, FoundFile>();
  files.set(path, file);
  found.inner.set(owner, files);
  return stats;
}

/** Counts a file with several names once: as its own when all of its names were found, else as shared. */
class SharedNames {
  private readonly found = new Map<bigint, number>();

  constructor(private readonly use: DiskUse) {}

  count(stats: fs.BigIntStats | undefined): void {
    if (stats === undefined) return;
    const bytes = Number(stats.blocks) * 512;
    if (stats.isDirectory() || stats.nlink === 1n) {
      this.use.bytes += bytes;
      return;
    }
    const names = (this.found.get(stats.ino) ?? 0) + 1;
    this.found.set(stats.ino, names);
    if (names === 1) this.use.shared_bytes += bytes;
    if (BigInt(names) < stats.nlink) return;
    this.use.shared_bytes -= bytes;
    this.use.bytes += bytes;
  }
}

/** The stamp of a file without what changes when one of its other names comes or goes. */
export function lastingStamp(stamp: string): string {
  const [ino, size, mtime, , mode] = stamp.split(" ");
  return `${ino} ${size} ${mtime} - ${mode}`;
}

function describe(stats: fs.BigIntStats): FoundFile | undefined {
  const { ino, size, mtimeNs, ctimeNs, mode } = stats;
  const stamp = `${ino} ${size} ${mtimeNs} ${ctimeNs} ${mode}`;
  const isShared = stats.nlink > 1n;
  if (stats.isSymbolicLink()) return { stamp, isShared, mode: "120000" };
  if (!stats.isFile()) return undefined;
  return { stamp, isShared, mode: (mode & 0o100n) === 0n ? "100644" : "100755" };
}
