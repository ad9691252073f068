/**
 * What a power cut may leave of the changes of names and times that nobody synced. The model is a disk that is weaker than any
 * file system we know: what it may leave holds what ext4 and XFS leave (a prefix of all changes), and what btrfs leaves.
 *
 * - Within one directory the changes survive in their order: a prefix of them.
 * - Changes of different directories survive in any combination, whatever their order was, unless a sync stood between them.
 * - A rename between two directories belongs to both, and happens as a whole or not at all: never are both names gone, or
 *   both there. It stands in the order of both directories.
 * - A link belongs to the directory of the new name alone. The file may come back under it, and without its first name.
 * - Nothing survives in a directory that does not survive itself.
 * - fsync of a directory makes its changes durable. fsync of a file makes its contents durable, and its name where it was
 *   opened, with what came before that in this directory. What these rest on by the rules above is durable with them; what
 *   happened elsewhere is not.
 * - fdatasync makes the contents durable, and no name.
 * - Bytes that were never synced come back whole, as their first half, or as nothing, whatever became of the name.
 *
 * Not modelled: half a rename, disks that lie about a flush, bytes of another file showing up in one.
 */

/** Never changed in place, like the maps that hold it: a copy of the disk shares all of them. */
export interface Inode {
  readonly ino: number;
  readonly dev: number;
  readonly kind: "file" | "directory";
  readonly bytes: Buffer;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly nlink: number;
  /** Only for directories: name to inode. */
  readonly entries: ReadonlyMap<string, number> | undefined;
  /** So many of its first bytes survive for certain. */
  readonly durableBytes: number;
}

export type Inodes = ReadonlyMap<number, Inode>;

/** One change of names or times. `file` is the inode as it was made: a name may survive that of its making. */
export type Change =
  | { kind: "make"; dir: number; name: string; file: Inode }
  | { kind: "link"; dir: number; name: string; file: Inode; nowMs: number }
  | { kind: "unlink"; dir: number; name: string; ino: number; nowMs: number }
  | {
      kind: "move";
      from: number;
      name: string;
      to: number;
      newName: string;
      ino: number;
      nowMs: number;
    }
  | { kind: "touch"; dir: number; ino: number; mtimeMs: number; nowMs: number };

/** The directories in whose order it stands. */
export function dirsOf(change: Change): readonly number[] {
  return change.kind === "move" ? [change.from, change.to] : [change.dir];
}

/** What it makes, if that is a directory: nothing in it survives without it. */
function madeDir(change: Change): number | undefined {
  return change.kind === "make" && change.file.kind === "directory" ? change.file.ino : undefined;
}

/** Whether it is one of those that fsync of this inode, opened in this directory, is about. */
export function isCovered(change: Change, { ino, kind }: Inode, dir: number): boolean {
  if (kind === "directory" && dirsOf(change).includes(ino)) return true;
  const own = change.kind === "make" || change.kind === "link" ? change.file.ino : change.ino;
  return own === ino && dirsOf(change).includes(dir);
}

/** The inodes after these changes. A file without a name stays: it may be open, and a power cut may bring its name back. */
export function withChanges(before: Inodes, changes: readonly Change[]): Inodes {
  const inodes = new Map(before);
  for (const change of changes) apply(inodes, change);
  return inodes;
}

function apply(inodes: Map<number, Inode>, change: Change): void {
  const edit = (ino: number, edited: Partial<Inode>): void => {
    const node = inodes.get(ino);
    if (node !== undefined) inodes.set(ino, { ...node, ...edited });
  };
  const editEntries = (dir: number, how: (entries: Map<string, number>) => void): void => {
    const entries = new Map(inodes.get(dir)?.entries);
    how(entries);
    edit(dir, { entries });
  };
  const release = (ino: number): void => {
    const node = inodes.get(ino);
    if (node !== undefined) edit(ino, { nlink: node.nlink - 1 });
  };
  switch (change.kind) {
    case "make":
      // A later name of it may have survived already.
      if (inodes.has(change.file.ino))
        edit(change.file.ino, { nlink: (inodes.get(change.file.ino)?.nlink ?? 0) + 1 });
      else inodes.set(change.file.ino, change.file);
      editEntries(change.dir, (entries) => entries.set(change.name, change.file.ino));
      return;
    case "link": {
      const { ino } = change.file;
      if (!inodes.has(ino)) inodes.set(ino, { ...change.file, nlink: 0 });
      edit(ino, { nlink: (inodes.get(ino)?.nlink ?? 0) + 1, ctimeMs: change.nowMs });
      editEntries(change.dir, (entries) => entries.set(change.name, ino));
      return;
    }
    case "unlink":
      editEntries(change.dir, (entries) => entries.delete(change.name));
      edit(change.ino, { ctimeMs: change.nowMs });
      release(change.ino);
      return;
    case "move": {
      const replaced = inodes.get(change.to)?.entries?.get(change.newName);
      editEntries(change.from, (entries) => entries.delete(change.name));
      editEntries(change.to, (entries) => entries.set(change.newName, change.ino));
      edit(change.ino, { ctimeMs: change.nowMs });
      if (replaced !== undefined) release(replaced);
      return;
    }
    case "touch":
      edit(change.ino, { mtimeMs: change.mtimeMs, ctimeMs: change.nowMs });
  }
}

/** These changes of a log, and all that they rest on: what came before in the same directories. By index, in order. */
export function withGrounds(
  log: readonly Change[],
  isWanted: (change: Change) => boolean,
): number[] {
  const found: number[] = [];
  const wantedDirs = new Set<number>();
  for (let at = log.length - 1; at >= 0; at--) {
    const change = log[at] as Change;
    const dirs = dirsOf(change);
    const isGround = [...dirs, madeDir(change) ?? 0].some((dir) => wantedDirs.has(dir));
    if (!isGround && !isWanted(change)) continue;
    for (const dir of dirs) wantedDirs.add(dir);
    found.push(at);
  }
  return found.reverse();
}

/** Goes through a log, and leaves out what rests on what was left out. @param isLost asked about each of the others */
function keepUnless(log: readonly Change[], isLost: (at: number) => boolean): number[] {
  const ended = new Set<number>();
  const kept: number[] = [];
  for (const [at, change] of log.entries()) {
    const dirs = dirsOf(change);
    if (!dirs.some((dir) => ended.has(dir)) && !isLost(at)) kept.push(at);
    else for (const dir of [...dirs, madeDir(change) ?? 0]) ended.add(dir);
  }
  return kept;
}

/** One of the ways in which a log may survive. @param chance 0 to below 1 */
export function keepByChance(log: readonly Change[], chance: () => number): number[] {
  const rate = [0, 0.03, 0.1, 0.3][Math.floor(chance() * 4)] ?? 0;
  return keepUnless(log, () => chance() < rate);
}

/**
 * The ways in which a log may survive: all of them, or, if they are more than `max`, the prefixes, what each directory may lose
 * alone, and others up to that number.
 */
export function waysToKeep(log: readonly Change[], max: number): number[][] {
  const ways = new Map<string, number[]>();
  const add = (kept: number[]): void => {
    ways.set(kept.join(), kept);
  };
  for (let end = 0; end <= log.length; end++) add(keepUnless(log, (at) => at >= end));
  for (let lost = 0; lost < log.length; lost++) add(keepUnless(log, (at) => at === lost));
  const extend = (lost: readonly number[], from: number): void => {
    for (let at = from; at < log.length && ways.size < max; at++) {
      const more = [...lost, at];
      const kept = keepUnless(log, (index) => more.includes(index));
      // What rests on an earlier loss is gone with it.
      if (ways.has(kept.join()) && lost.length > 0) continue;
      add(kept);
      extend(more, at + 1);
    }
  };
  extend([], 0);
  return [...ways.values()];
}

const prints = new WeakMap<object, string>();

/** The changes as text: what tells two logs apart. */
export function logText(log: readonly Change[]): string {
  const known = prints.get(log);
  if (known !== undefined) return known;
  const text = log.map(changeText).join("|");
  prints.set(log, text);
  return text;
}

function changeText(c: Change): string {
  switch (c.kind) {
    case "make":
      return `m${c.dir}${c.name}`;
    case "touch":
      return `t${c.ino}:${c.mtimeMs}`;
    case "move":
      return `r${c.ino}${c.newName}`;
    default:
      return `${c.kind}${c.dir}${c.name}`;
  }
}
