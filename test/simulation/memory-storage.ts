/**
 * The storage port over a file system in memory: inodes, hard links, directories, and what a power cut may leave of them.
 * Behaves as the real one does (test/mailbox/storage-conformance.test.ts); holds no decisions of the protocol.
 *
 * The model of durability is that of a journalled file system (ext4 in ordered mode, XFS):
 * - Changes of names and times form one log for the whole file system; a power cut keeps a prefix of it.
 * - fsync of a file or directory makes everything durable up to the last change of that very inode, and nothing after it
 *   (XFS promises no more; ext4 keeps more).
 * - fsync of a file makes its bytes durable. Bytes that were never synced may come back whole, as the first half, or as nothing,
 *   whatever became of the name.
 * - A rename or link is in the log as a whole or not at all, also between two directories.
 * Not modelled: file systems without a journal, disks that lie about a flush, bytes of another file showing up in one.
 */
import type { FileFacts, Storage, Walk } from "../../src/mailbox/storage.ts";

/** Never changed in place, like the maps that hold it: a copy of the disk shares all of them. */
interface Inode {
  readonly ino: number;
  readonly dev: number;
  readonly kind: "file" | "directory";
  readonly bytes: Buffer;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly nlink: number;
  /** Only for directories: name to inode. */
  readonly entries: ReadonlyMap<string, number> | undefined;
  readonly isDataDurable: boolean;
}

/** One change of names or times, as the journal of the file system holds it. */
type Change =
  | { kind: "make"; dir: number; name: string; inode: Inode }
  | { kind: "link"; dir: number; name: string; ino: number; nowMs: number }
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
  | { kind: "touch"; ino: number; mtimeMs: number; nowMs: number };

/** What survives of the bytes that nobody synced. */
export type TornData = "whole" | "half" | "nothing";

type Inodes = ReadonlyMap<number, Inode>;

export class SystemError extends Error {
  readonly code: string;
  constructor(code: string, path: string) {
    super(`${code}: ${path}`);
    this.code = code;
  }
}

const ROOT = 1;
const NO_BYTES = Buffer.alloc(0);

function newInode(ino: number, dev: number, kind: Inode["kind"], nowMs: number): Inode {
  return {
    ino,
    dev,
    kind,
    bytes: NO_BYTES,
    mtimeMs: nowMs,
    ctimeMs: nowMs,
    nlink: kind === "file" ? 1 : 2,
    entries: kind === "directory" ? new Map() : undefined,
    isDataDurable: kind === "directory",
  };
}

/** The inodes after these changes. */
function withChanges(before: Inodes, changes: readonly Change[]): Inodes {
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
    if (node === undefined) return;
    if (node.nlink <= (node.kind === "directory" ? 2 : 1)) inodes.delete(ino);
    else edit(ino, { nlink: node.nlink - 1 });
  };
  switch (change.kind) {
    case "make":
      inodes.set(change.inode.ino, change.inode);
      editEntries(change.dir, (entries) => entries.set(change.name, change.inode.ino));
      return;
    case "link":
      edit(change.ino, { nlink: (inodes.get(change.ino)?.nlink ?? 0) + 1, ctimeMs: change.nowMs });
      editEntries(change.dir, (entries) => entries.set(change.name, change.ino));
      return;
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

function isTouched(change: Change, ino: number): boolean {
  switch (change.kind) {
    case "make":
      return change.dir === ino || change.inode.ino === ino;
    case "link":
    case "unlink":
      return change.dir === ino || change.ino === ino;
    case "move":
      return change.from === ino || change.to === ino || change.ino === ino;
    case "touch":
      return change.ino === ino;
  }
}

const prints = new WeakMap<object, string>();

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

export class MemoryDisk {
  nowMs = 0;
  /** The number of the next inode; who explores sets it, so that it does not depend on the order of things. */
  nextIno = ROOT + 1;
  private inodes: Inodes;
  /** What a power cut leaves at least, and the changes after it, in their order. */
  private durable: Inodes;
  private log: readonly Change[];

  constructor() {
    const root = newInode(ROOT, 1, "directory", 0);
    this.inodes = new Map([[ROOT, root]]);
    this.durable = this.inodes;
    this.log = [];
  }

  /** An independent copy. */
  copy(): MemoryDisk {
    const other = new MemoryDisk();
    other.nowMs = this.nowMs;
    other.nextIno = this.nextIno;
    other.inodes = this.inodes;
    other.durable = this.durable;
    other.log = this.log;
    return other;
  }

  /** A directory that lies on another file system: links and renames to and from it fail with EXDEV. */
  mount(path: string): void {
    const { dir, name } = this.parent(path);
    this.change({
      kind: "make",
      dir: dir.ino,
      name,
      inode: newInode(this.nextIno, dir.dev + 1, "directory", this.nowMs),
    });
    this.nextIno++;
  }

  list(path: string): string[] {
    return [...this.dirAt(path).keys()].sort();
  }

  /** The files of a directory, without a copy: for who looks at all of them after every step. */
  entriesOf(path: string): ReadonlyMap<string, number> {
    return this.dirAt(path);
  }

  /** The bytes of an inode that is there. */
  bytesOf(ino: number): Buffer {
    return this.inodes.get(ino)?.bytes ?? NO_BYTES;
  }

  look(path: string): FileFacts | undefined {
    const node = this.find(path);
    return node === undefined ? undefined : factsOf(node);
  }

  read(path: string, bytesMax: number): { facts: FileFacts; bytes: Buffer | undefined } {
    const node = this.find(path);
    if (node === undefined) throw new SystemError("ENOENT", path);
    const facts = factsOf(node);
    const isReadable = node.kind === "file" && node.bytes.length <= bytesMax;
    return { facts, bytes: isReadable ? node.bytes : undefined };
  }

  /** The first half of `create`: the name is there, and nothing in the file. */
  createEmpty(path: string): number {
    const { dir, name } = this.parent(path);
    if (dir.entries.has(name)) throw new SystemError("EEXIST", path);
    const ino = this.nextIno++;
    const inode = newInode(ino, dir.dev, "file", this.nowMs);
    this.change({ kind: "make", dir: dir.ino, name, inode });
    return ino;
  }

  /** The second half: whoever holds the file open writes it, even if its name is gone. */
  fill(ino: number, bytes: Buffer): void {
    this.edit(ino, { bytes, isDataDurable: bytes.length === 0 });
  }

  link(from: string, to: string): void {
    const node = this.find(from);
    if (node === undefined) throw new SystemError("ENOENT", from);
    const { dir, name } = this.parent(to);
    if (dir.entries.has(name)) throw new SystemError("EEXIST", to);
    if (dir.dev !== node.dev) throw new SystemError("EXDEV", to);
    if (node.kind === "directory") throw new SystemError("EPERM", from);
    this.change({ kind: "link", dir: dir.ino, name, ino: node.ino, nowMs: this.nowMs });
  }

  rename(from: string, to: string): void {
    const source = this.parent(from);
    const target = this.parent(to);
    const ino = source.dir.entries.get(source.name);
    const node = ino === undefined ? undefined : this.inodes.get(ino);
    if (node === undefined) throw new SystemError("ENOENT", from);
    if (target.dir.dev !== node.dev) throw new SystemError("EXDEV", to);
    if (to.startsWith(`${from}/`)) throw new SystemError("EINVAL", to);
    if (from.startsWith(`${to}/`)) throw new SystemError("ENOTEMPTY", to);
    const replacedIno = target.dir.entries.get(target.name);
    const replaced = replacedIno === undefined ? undefined : this.inodes.get(replacedIno);
    // Two names of one file: nothing happens, and both stay.
    if (replaced === node) return;
    if (replaced !== undefined) {
      if (node.kind === "file" && replaced.kind === "directory")
        throw new SystemError("EISDIR", to);
      if (node.kind === "directory" && replaced.kind === "file")
        throw new SystemError("ENOTDIR", to);
      if (replaced.entries !== undefined && replaced.entries.size > 0)
        throw new SystemError("ENOTEMPTY", to);
    }
    this.change({
      kind: "move",
      from: source.dir.ino,
      name: source.name,
      to: target.dir.ino,
      newName: target.name,
      ino: node.ino,
      nowMs: this.nowMs,
    });
  }

  unlink(path: string): void {
    const { dir, name } = this.parent(path);
    const ino = dir.entries.get(name);
    const node = ino === undefined ? undefined : this.inodes.get(ino);
    if (node === undefined) throw new SystemError("ENOENT", path);
    if (node.kind === "directory") throw new SystemError("EISDIR", path);
    this.change({ kind: "unlink", dir: dir.ino, name, ino: node.ino, nowMs: this.nowMs });
  }

  touch(path: string, mtimeMs: number): void {
    const node = this.find(path);
    if (node === undefined) throw new SystemError("ENOENT", path);
    this.change({ kind: "touch", ino: node.ino, mtimeMs, nowMs: this.nowMs });
  }

  makeDir(path: string, missingMax?: number): void {
    if (missingMax !== undefined) {
      const above = path.split("/").slice(0, -missingMax).join("/");
      if (above !== "" && this.find(above) === undefined) throw new SystemError("ENOENT", path);
    }
    let at = "";
    for (const part of path.split("/").filter((p) => p !== "")) {
      at += `/${part}`;
      const known = this.find(at);
      if (known?.kind === "file") throw new SystemError(at === path ? "EEXIST" : "ENOTDIR", path);
      if (known !== undefined) continue;
      const { dir, name } = this.parent(at);
      const inode = newInode(this.nextIno++, dir.dev, "directory", this.nowMs);
      this.change({ kind: "make", dir: dir.ino, name, inode });
    }
  }

  /** fsync, of a file or a directory. */
  sync(path: string): void {
    const node = this.find(path);
    if (node === undefined) throw new SystemError("ENOENT", path);
    this.edit(node.ino, { isDataDurable: true });
    let keep = this.log.length;
    while (keep > 0 && !isTouched(this.log[keep - 1] as Change, node.ino)) keep--;
    this.commit(keep);
  }

  /** How many changes a power cut may lose: 0 to this many of the last ones. */
  get unsyncedCount(): number {
    return this.log.length;
  }

  /**
   * The power goes, and comes back.
   * @param kept how many of the changes that nobody synced survive
   * @param tear what survives of the bytes of a file that nobody synced
   */
  cutPower(kept: number, tear: (ino: number) => TornData): void {
    this.commit(kept);
    const inodes = new Map(this.durable);
    for (const [ino, node] of inodes) {
      const { bytes, isDataDurable } = this.inodes.get(ino) ?? node;
      const left = isDataDurable ? "whole" : tear(ino);
      const half = bytes.length >> 1;
      const kept = left === "whole" ? bytes : left === "half" ? bytes.subarray(0, half) : NO_BYTES;
      if (kept !== node.bytes || !node.isDataDurable)
        inodes.set(ino, { ...node, bytes: kept, isDataDurable: true });
    }
    this.inodes = inodes;
    this.durable = inodes;
    this.log = [];
  }

  /** All that matters for what may happen next, as text. */
  fingerprint(): string {
    const known = prints.get(this.inodes);
    if (known !== undefined) return `${this.nowMs}${known}`;
    let text = "";
    for (const [ino, node] of this.inodes) {
      if (node.entries === undefined || node.entries.size === 0) continue;
      text += `;${ino}`;
      for (const name of [...node.entries.keys()].sort()) {
        const file = this.inodes.get(node.entries.get(name) ?? 0);
        if (file === undefined) continue;
        text += `|${name}:${file.ino},${file.mtimeMs},${file.bytes.length},${file.isDataDurable ? 1 : 0}`;
      }
    }
    prints.set(this.inodes, text);
    return `${this.nowMs}${text}`;
  }

  /** The changes that are not durable yet, as text: part of the fingerprint where power may be cut. */
  logFingerprint(): string {
    const known = prints.get(this.log);
    if (known !== undefined) return known;
    const text = this.log.map(changeText).join("|");
    prints.set(this.log, text);
    return text;
  }

  private commit(keep: number): void {
    if (keep === 0) return;
    const durable = new Map(withChanges(this.durable, this.log.slice(0, keep)));
    for (const [ino, node] of durable) {
      const now = this.inodes.get(ino);
      if (now === undefined) continue;
      const { bytes, isDataDurable } = now;
      if (bytes !== node.bytes || isDataDurable !== node.isDataDurable)
        durable.set(ino, { ...node, bytes, isDataDurable });
    }
    this.durable = durable;
    this.log = this.log.slice(keep);
  }

  private change(change: Change): void {
    this.inodes = withChanges(this.inodes, [change]);
    this.log = [...this.log, change];
  }

  private edit(ino: number, edited: Partial<Inode>): void {
    const node = this.inodes.get(ino);
    if (node !== undefined) this.inodes = new Map(this.inodes).set(ino, { ...node, ...edited });
  }

  private dirAt(path: string): ReadonlyMap<string, number> {
    const node = this.find(path);
    if (node === undefined) throw new SystemError("ENOENT", path);
    if (node.entries === undefined) throw new SystemError("ENOTDIR", path);
    return node.entries;
  }

  private parent(path: string): {
    dir: Inode & { entries: ReadonlyMap<string, number> };
    name: string;
  } {
    const cut = path.lastIndexOf("/");
    const dir = this.find(path.slice(0, cut) || "/");
    if (dir === undefined) throw new SystemError("ENOENT", path);
    const { entries } = dir;
    if (entries === undefined) throw new SystemError("ENOTDIR", path);
    return { dir: { ...dir, entries }, name: path.slice(cut + 1) };
  }

  private find(path: string): Inode | undefined {
    let node = this.inodes.get(ROOT);
    for (const part of path.split("/")) {
      if (part === "") continue;
      if (node === undefined) return undefined;
      if (node.entries === undefined) throw new SystemError("ENOTDIR", path);
      node = this.inodes.get(node.entries.get(part) ?? 0);
    }
    return node;
  }
}

function factsOf(node: Inode): FileFacts {
  return {
    dev: node.dev,
    ino: node.ino,
    size: node.bytes.length,
    mtimeMs: node.mtimeMs,
    ctimeMs: node.ctimeMs,
    nlink: node.nlink,
    uid: 0,
    mode: node.kind === "file" ? 0o100600 : 0o040700,
    kind: node.kind,
  };
}

/** The port itself, for one process that is never interrupted. */
export function memoryStorage(disk: MemoryDisk): Storage {
  return {
    list: (dir) => disk.list(dir),
    walk: (dir) => walkNames(disk.list(dir)),
    rawName: (dir, shown) =>
      disk.list(dir).includes(shown) ? Buffer.from(shown, "utf8") : undefined,
    look: (path) => disk.look(String(path)),
    read: (path, bytesMax) => disk.read(path, bytesMax),
    create: (path, bytes) => disk.fill(disk.createEmpty(path), bytes),
    link: (from, to) => disk.link(from, to),
    rename: (from, to) => disk.rename(String(from), to),
    unlink: (path) => disk.unlink(path),
    touch: (path, mtimeMs) => disk.touch(path, mtimeMs),
    makeDir: (path, missingMax) => disk.makeDir(path, missingMax),
    async syncFiles(paths) {
      for (const path of paths) disk.sync(path);
    },
    async syncDirs(paths) {
      for (const path of paths) disk.sync(path);
    },
  };
}

/** A walk over names that were listed at once. */
export function walkNames(names: string[]): Walk {
  let left = names;
  return {
    next(max) {
      const some = left.slice(0, max);
      left = left.slice(max);
      return some;
    },
    close() {
      left = [];
    },
  };
}
