/** The storage port on the real file system. It only makes the calls and decides nothing of the protocol. */
import fs from "node:fs";
import { syncDir } from "../../host/documents.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import { lookInto, openNew, openToSync } from "../../host/regular-file.ts";
import type { FileFacts, Storage, Walk } from "./storage.ts";

/** How many files may be open at once to be synced. */
const SYNCS_MAX = 128;

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
    const fd = openToSync(path);
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
    const { stats, bytes } = lookInto(path, { bytesMax });
    return { facts: factsOf(stats), bytes };
  },
  create(path, bytes) {
    const fd = openNew(path);
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
  syncDirNow: syncDir,
};
