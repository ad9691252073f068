/** The storage port on the real file system. It only makes the calls and decides nothing of the protocol. */
import fs from "node:fs";
import { systemCode } from "../../core/errors.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import type { FileFacts, Storage, Walk } from "./storage.ts";

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOATIME } = fs.constants;
/** How many files may be open at once to be synced. */
const SYNCS_MAX = 128;
const READ_FLAGS = O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);

export function factsOf(stats: fs.Stats): FileFacts {
  return {
    dev: stats.dev,
    ino: stats.ino,
    size: stats.size,
    mtimeMs: stats.mtimeMs,
    ctimeMs: stats.ctimeMs,
    nlink: stats.nlink,
    uid: stats.uid,
    mode: stats.mode,
    kind: stats.isFile() ? "file" : stats.isDirectory() ? "directory" : "other",
  };
}

/** Writes all bytes: a short write is continued, a write of no bytes is an error. */
export function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) {
    const written = fs.writeSync(fd, bytes, at, bytes.length - at);
    if (written === 0)
      throw Object.assign(new Error("ENOSPC: the file system took no bytes"), { code: "ENOSPC" });
    at += written;
  }
}

function walkDir(dir: string): Walk {
  const handle = fs.opendirSync(dir, { bufferSize: 256 });
  let isOpen = true;
  const close = (): void => {
    if (isOpen) handle.closeSync();
    isOpen = false;
  };
  return {
    next(max) {
      const names: string[] = [];
      while (isOpen && names.length < max) {
        const entry = handle.readSync();
        if (entry === null) close();
        else names.push(entry.name);
      }
      return names;
    },
    close,
  };
}

function syncPath(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fd = fs.openSync(path, "r");
    fs.fsync(fd, (error) => {
      fs.closeSync(fd);
      if (error === null) resolve();
      else reject(error);
    });
  });
}

/** Syncs many files at once: a journalling file system makes one commit for all waiting syncs. Resolves when no sync is running any more. */
async function syncPaths(paths: Iterable<string>): Promise<void> {
  const faults: unknown[] = [];
  const left = paths[Symbol.iterator]();
  const lane = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true && faults.length === 0; next = left.next())
      await syncPath(next.value).catch((error: unknown) => faults.push(error));
  };
  await Promise.all(Array.from({ length: SYNCS_MAX }, lane));
  if (faults.length > 0) throw faults[0];
}

/** Opens without updating the access time: nothing reads it, and each update would be one more disk write. */
function openToRead(path: string): number {
  try {
    return fs.openSync(path, READ_FLAGS | (O_NOATIME ?? 0));
  } catch (error) {
    // Only the owner of a file may open it with this flag.
    if (systemCode(error) !== "EPERM") throw error;
    return fs.openSync(path, READ_FLAGS);
  }
}

export const nodeStorage: Storage = {
  list: (dir) => fs.readdirSync(dir),
  walk: walkDir,
  rawName: (dir, shown) =>
    fs.readdirSync(dir, { encoding: "buffer" }).find((raw) => raw.toString("utf8") === shown),
  look(path) {
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    return stats === undefined ? undefined : factsOf(stats);
  },
  read(path, bytesMax) {
    let fd: number;
    try {
      fd = openToRead(path);
    } catch (error) {
      const facts = nodeStorage.look(path);
      // We do not open links (ELOOP), sockets or devices (ENXIO).
      if (facts !== undefined && facts.kind !== "file") return { facts, bytes: undefined };
      throw error;
    }
    try {
      const facts = factsOf(fs.fstatSync(fd));
      if (facts.kind !== "file" || facts.size > bytesMax) return { facts, bytes: undefined };
      // Ask for one byte more than the size, which shows whether the file grows while it is read. If the read returns no more than
      // the size, it has reached the end.
      const buffer = Buffer.allocUnsafe(facts.size + 1);
      let at = 0;
      do {
        const got = fs.readSync(fd, buffer, at, buffer.length - at, at);
        if (got === 0) break;
        at += got;
      } while (at < facts.size);
      return { facts, bytes: buffer.subarray(0, at) };
    } finally {
      fs.closeSync(fd);
    }
  },
  create(path, bytes) {
    const fd = fs.openSync(path, "wx", 0o600);
    try {
      writeWhole(fd, bytes);
    } catch (error) {
      fs.closeSync(fd);
      fs.rmSync(path, { force: true });
      throw error;
    }
    fs.closeSync(fd);
  },
  link: (from, to) => fs.linkSync(from, to),
  rename: (from, to) => fs.renameSync(from, to),
  unlink: (path) => fs.unlinkSync(path),
  touch: (path, mtimeMs) => fs.utimesSync(path, mtimeMs / 1000, mtimeMs / 1000),
  makeDir: (path, missingMax = Number.POSITIVE_INFINITY) => makeDirs(path, missingMax),
  syncFiles: (paths) => syncPaths(paths),
  syncDirs: (paths) => syncPaths(new Set(paths)),
  syncDirNow(path) {
    const fd = fs.openSync(path, "r");
    try {
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  },
};
