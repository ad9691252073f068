/**
 * Removes the lock of a ref that a killed git has left. git holds such a lock for an instant, and waits for that of a dead process for ever.
 * Not for locks of an index or a head, which a git holds as long as a person writes a message.
 */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemCode } from "../core/errors.ts";
import { runningGits } from "./running-gits.ts";

/** A younger lock may be held (ms), also by a git that we cannot see, such as that of another container. */
const LEFT_MS = 5000;
const WAIT_MS_MAX = 10_000;
const PAUSE_MS = 50;
/** Of one ref, or of the file that has many of them. Before it is the git directory. */
const REF_LOCK =
  /cannot lock ref '(refs\/.+?)': Unable to create '(.+?)\/\1\.lock': File exists|Unable to create '(.+?)\/packed-refs\.lock': File exists/;

/** An old lock, and every git that ran there when it was seen first: the one that has it must end before the lock may go. */
export interface SeenLock {
  path: string;
  inode: number;
  mtimeMs: number;
  holders: readonly string[];
}

/**
 * Call it each time that git says that it waits for a lock.
 * @param said what git says
 * @param before what the last call returned
 */
export function dropLeftLock(said: string, before?: SeenLock): SeenLock | undefined {
  const [, ref, ofRef, ofMany] = REF_LOCK.exec(said) ?? [];
  const commonDir = ofRef ?? ofMany;
  if (commonDir === undefined) return undefined;
  return dropLeft(commonDir, `${commonDir}/${ref ?? "packed-refs"}.lock`, before);
}

/** Waits while all refs are locked, so that no lock of a killed git is left when a step has ended. Whether it is still there: the next call says so. */
export async function awaitPackedRefs(commonDir: string): Promise<void> {
  const path = join(commonDir, "packed-refs.lock");
  const deadline = performance.now() + WAIT_MS_MAX;
  let seen: SeenLock | undefined;
  while (fs.existsSync(path) && performance.now() < deadline) {
    seen = dropLeft(commonDir, path, seen);
    await wait(PAUSE_MS);
  }
}

function dropLeft(commonDir: string, path: string, before?: SeenLock): SeenLock | undefined {
  const { ino: inode, mtimeMs } = fs.statSync(path, { throwIfNoEntry: false }) ?? {};
  if (inode === undefined || mtimeMs === undefined || Date.now() - mtimeMs < LEFT_MS)
    return undefined;
  const running = runningGits(commonDir);
  // Nothing is known of processes here.
  if (running === undefined) return undefined;
  const isSame = before?.path === path && before.inode === inode && before.mtimeMs === mtimeMs;
  const holders = isSame ? running.filter((one) => before.holders.includes(one)) : running;
  if (holders.length === 0) removeLock(path, inode, `${commonDir}/mailchute-left-${process.pid}`);
  return { path, inode, mtimeMs, holders };
}

/**
 * Moves it aside first, then looks whether it is the one that was left: another process may have removed that, and a git may have made its own.
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
    if (fs.statSync(aside).ino !== inode) fs.linkSync(aside, path);
  } finally {
    fs.rmSync(aside, { force: true });
  }
}
