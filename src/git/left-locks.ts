/**
 * Removes the lock of a ref that a killed git has left. git holds such a lock for an instant, and waits for that of a dead process for ever.
 * Not for locks of an index or a head, which a git holds as long as a person writes a message.
 */
import fs from "node:fs";
import { runningGits } from "./running-gits.ts";

/** A younger lock may be held (ms), also by a git that we cannot see, such as that of another container. */
const LEFT_MS = 5000;
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
  const path = `${commonDir}/${ref ?? "packed-refs"}.lock`;
  const { ino: inode, mtimeMs } = fs.statSync(path, { throwIfNoEntry: false }) ?? {};
  if (inode === undefined || mtimeMs === undefined || Date.now() - mtimeMs < LEFT_MS)
    return undefined;
  const running = runningGits(commonDir);
  // Nothing is known of processes here.
  if (running === undefined) return undefined;
  const isSame = before?.path === path && before.inode === inode && before.mtimeMs === mtimeMs;
  const holders = isSame ? running.filter((one) => before.holders.includes(one)) : running;
  if (holders.length === 0 && fs.statSync(path, { throwIfNoEntry: false })?.ino === inode)
    fs.rmSync(path, { force: true });
  return { path, inode, mtimeMs, holders };
}
