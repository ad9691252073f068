/**
 * Removes the lock of a ref that a killed git has left. git holds such a lock only for an instant, but waits for ever for the lock of a
 * dead process. Locks of an index or a head stay: git may hold them as long as a person writes a message.
 */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemCode } from "../core/errors.ts";
import { statOf } from "../host/regular-file.ts";
import { runningGits } from "./running-gits.ts";

/** A lock younger than this (ms) may be in use, even by a git that we cannot see, such as one in another container. */
const LEFT_MS = 5000;
const WAIT_MS_MAX = 10_000;
const PAUSE_MS = 50;
/** Finds in git's message the lock of one ref or of `packed-refs`, and the git directory before it. */
const REF_LOCK =
  /cannot lock ref '(refs\/.+?)': Unable to create '(.+?)\/\1\.lock': File exists|Unable to create '(.+?)\/packed-refs\.lock': File exists/;
/** Says git of a repository that keeps its refs in tables (reftable), without the path of the lock. */
const TABLES_LOCKED = /cannot lock references/;
/** The lock of all refs that are kept in tables. A worktree has such a table of its own, for its head. */
export const TABLES_LOCK = "reftable/tables.list.lock";
const LOCKS_OF_MANY = ["packed-refs.lock", TABLES_LOCK];

/** An old lock. `holders` are the gits that ran there when the lock was first seen: all must end before the lock may be removed. */
export interface SeenLock {
  path: string;
  inode: number;
  mtimeMs: number;
  holders: readonly string[];
}

/** Whether git's message says that it waits for a lock. */
export function isLocked(said: string): boolean {
  return /\.lock': File exists/.test(said) || TABLES_LOCKED.test(said);
}

/** What a person can do about the lock. */
export function hintForLock(said: string): string | undefined {
  const [, lock] = /Unable to create '(.+\.lock)'/.exec(said) ?? [];
  if (lock !== undefined) return `if no git runs in the repository, remove ${lock}`;
  if (!TABLES_LOCKED.test(said)) return undefined;
  return `if no git runs in the repository, remove ${TABLES_LOCK} in its git directory`;
}

/**
 * Call this each time that git reports that it waits for a lock.
 * @param said the message of git
 * @param gitDirs the common git directory, and that of the worktree
 * @param before the return value of the last call
 */
export function dropLeftLock(
  said: string,
  gitDirs: readonly string[],
  before?: SeenLock,
): SeenLock | undefined {
  const [commonDirOfTables] = gitDirs;
  if (TABLES_LOCKED.test(said) && commonDirOfTables !== undefined) {
    const locks = gitDirs.map((dir) => join(dir, TABLES_LOCK));
    const lock = locks.find((path) => fs.existsSync(path));
    return lock === undefined ? undefined : dropLeft(commonDirOfTables, lock, before);
  }
  const [, ref, ofRef, ofMany] = REF_LOCK.exec(said) ?? [];
  const commonDir = ofRef ?? ofMany;
  if (commonDir === undefined) return undefined;
  return dropLeft(commonDir, `${commonDir}/${ref ?? "packed-refs"}.lock`, before);
}

/** Waits while all refs are locked, so that a step leaves no lock of a killed git. If the lock stays, the next call of git reports it. */
export async function awaitLockOfMany(commonDir: string): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX;
  for (const name of LOCKS_OF_MANY) {
    const path = join(commonDir, name);
    let seen: SeenLock | undefined;
    while (fs.existsSync(path) && performance.now() < deadline) {
      seen = dropLeft(commonDir, path, seen);
      await wait(PAUSE_MS);
    }
  }
}

function dropLeft(commonDir: string, path: string, before?: SeenLock): SeenLock | undefined {
  const { ino: inode, mtimeMs } = statOf(path) ?? {};
  if (inode === undefined || mtimeMs === undefined || Date.now() - mtimeMs < LEFT_MS)
    return undefined;
  const running = runningGits(commonDir);
  // This system lists no processes.
  if (running === undefined) return undefined;
  const isSame = before?.path === path && before.inode === inode && before.mtimeMs === mtimeMs;
  const holders = isSame ? running.filter((one) => before.holders.includes(one)) : running;
  if (holders.length === 0) removeLock(path, inode, `${commonDir}/mailchute-left-${process.pid}`);
  return { path, inode, mtimeMs, holders };
}

/**
 * Moves the lock aside first, then checks that it is the one that was left: another process may have removed that one, and a git may have
 * made a new one. A new one is put back.
 * @param aside a path in the same file system
 */
export function removeLock(path: string, inode: number, aside: string): void {
  try {
    fs.renameSync(path, aside);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return;
    throw error;
  }
  try {
    if (statOf(aside)?.ino !== inode) fs.linkSync(aside, path);
  } finally {
    fs.rmSync(aside, { force: true });
  }
}
