/**
 * The storage port over a file system in memory: inodes, hard links, directories, and what a power cut may leave of them
 * (change-log.ts). Behaves as the real one does (test/mailbox/storage-conformance.test.ts); holds no decisions of the protocol.
 */
import type { FileFacts, Storage, Walk } from "../../src/mailbox/files/storage.ts";
import {
  type Change,
  type Inode,
  type Inodes,
  isCovered,
  keepByChance,
  logText,
  waysToKeep,
  withChanges,
  withGrounds,
} from "./change-log.ts";

/** What survives of the bytes that nobody synced. */
export type TornData = "whole" | "half" | "nothing";

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
    durableBytes: 0,
  };
}

const prints = new WeakMap<object, string>();

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
      file: newInode(this.nextIno, dir.dev + 1, "directory", this.nowMs),
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

  /** fstat, of an open file. */
  lookAt(ino: number): FileFacts {
    const node = this.inodes.get(ino);
    if (node === undefined) throw new SystemError("EBADF", String(ino));
    return factsOf(node);
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
    const file = newInode(ino, dir.dev, "file", this.nowMs);
    this.change({ kind: "make", dir: dir.ino, name, file });
    return ino;
  }

  /** The second half: whoever holds the file open writes it, even if its name is gone. */
  fill(ino: number, bytes: Buffer): void {
    this.edit(ino, { bytes, durableBytes: 0 });
  }

  /** Writes at the end of an open file, even if its name is gone. */
  append(ino: number, more: Buffer): void {
    this.edit(ino, { bytes: Buffer.concat([this.bytesOf(ino), more]) });
  }

  link(from: string, to: string): void {
    const node = this.find(from);
    if (node === undefined) throw new SystemError("ENOENT", from);
    const { dir, name } = this.parent(to);
    if (dir.entries.has(name)) throw new SystemError("EEXIST", to);
    if (dir.dev !== node.dev) throw new SystemError("EXDEV", to);
    if (node.kind === "directory") throw new SystemError("EPERM", from);
    this.change({ kind: "link", dir: dir.ino, name, file: node, nowMs: this.nowMs });
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
    const dir = this.parent(path).dir.ino;
    this.change({ kind: "touch", dir, ino: node.ino, mtimeMs, nowMs: this.nowMs });
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
      const file = newInode(this.nextIno++, dir.dev, "directory", this.nowMs);
      this.change({ kind: "make", dir: dir.ino, name, file });
    }
  }

  /** fsync, of a file or a directory. */
  sync(path: string): void {
    const node = this.find(path);
    if (node === undefined) throw new SystemError("ENOENT", path);
    this.syncData(node.ino);
    const dir = node.ino === ROOT ? ROOT : this.parent(path).dir.ino;
    this.commit(withGrounds(this.log, (change) => isCovered(change, node, dir)));
  }

  /** fdatasync, of an open file: its bytes, and no name of it. */
  syncData(ino: number): void {
    this.edit(ino, { durableBytes: this.bytesOf(ino).length });
  }

  /** All that was written so far is on the disk: a kernel keeps nothing back for hours. */
  syncAll(): void {
    for (const ino of this.inodes.keys()) this.syncData(ino);
    this.commit([...this.log.keys()]);
  }

  /** The ways in which the changes that nobody synced may survive: `max`, or a few more. Each is for `cutPower`. */
  waysToCut(max: number): number[][] {
    return waysToKeep(this.log, max);
  }

  /** One of them. @param chance 0 to below 1 */
  wayByChance(chance: () => number): number[] {
    return keepByChance(this.log, chance);
  }

  /**
   * The power goes, and comes back.
   * @param kept which of the changes that nobody synced survive
   * @param tear what survives of the bytes of a file that nobody synced
   */
  cutPower(kept: readonly number[], tear: (ino: number) => TornData): void {
    this.commit(kept);
    const inodes = new Map<number, Inode>();
    const counts = countNames(this.durable);
    for (const [ino, node] of this.durable) {
      const nlink = node.kind === "directory" ? node.nlink : (counts.get(ino) ?? 0);
      if (nlink === 0) continue;
      const { bytes, durableBytes } = this.inodes.get(ino) ?? node;
      const rest = bytes.length - durableBytes;
      const left = rest === 0 ? "whole" : tear(ino);
      const more = left === "half" ? rest >> 1 : 0;
      const kept = left === "whole" ? bytes : bytes.subarray(0, durableBytes + more);
      const isSame = kept === node.bytes && node.durableBytes === kept.length;
      if (isSame && nlink === node.nlink) inodes.set(ino, node);
      else inodes.set(ino, { ...node, bytes: kept, durableBytes: kept.length, nlink });
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
        text += `|${name}:${file.ino},${file.mtimeMs},${file.bytes.length},${file.durableBytes}`;
      }
    }
    prints.set(this.inodes, text);
    return `${this.nowMs}${text}`;
  }

  /** The changes that are not durable yet, as text: part of the fingerprint where power may be cut. */
  logFingerprint(): string {
    return logText(this.log);
  }

  /** These of the changes become durable. */
  private commit(kept: readonly number[]): void {
    const chosen = new Set(kept);
    const changes = this.log.filter((_change, at) => chosen.has(at));
    const durable = new Map(withChanges(this.durable, changes));
    for (const [ino, node] of durable) {
      const now = this.inodes.get(ino);
      if (now === undefined) continue;
      const { bytes, durableBytes } = now;
      if (bytes !== node.bytes || durableBytes !== node.durableBytes)
        durable.set(ino, { ...node, bytes, durableBytes });
    }
    this.durable = durable;
    if (chosen.size > 0) this.log = this.log.filter((_change, at) => !chosen.has(at));
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

/** How many names each inode has. */
function countNames(inodes: Inodes): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { entries } of inodes.values())
    for (const ino of entries?.values() ?? []) counts.set(ino, (counts.get(ino) ?? 0) + 1);
  return counts;
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
    syncDirNow: (path) => disk.sync(path),
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
