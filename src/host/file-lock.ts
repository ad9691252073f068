/**
 * A lock between processes that read, change and write small files. It only saves retries. Its users must be correct without
 * it, because two processes may take a lock that looks old at once.
 */
import fs from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { systemCode } from "../core/errors.ts";
import { judgeOwner, ownerSequence } from "./identity.ts";
import { privateFs } from "./private-fs.ts";
import { readRegularText, writeRegularText } from "./regular-file.ts";

const STALE_MS = 5000;
const UPDATE_MS = 1000;
/** The lock of a dead process on another machine looks alive for less than this time (ms). */
const WAIT_MS = 8000;
const PAUSE_MS_MAX = 100;
/** The time between taking a lock and writing its owner (ms). */
const INTRODUCTION_MS = 100;

let nextOwner: (() => string) | undefined;

/**
 * Waits for the lock. A lock whose owner is known to be dead is taken at once.
 * @param path of the lock; its directory must exist
 * @param waitMs how long to wait for others, when there may be many of them
 * @returns a function that releases the lock and never throws, because the work is done by then. Undefined: the lock was not free
 *   in time; continue without it
 */
export async function lockFile(
  path: string,
  waitMs = WAIT_MS,
): Promise<(() => Promise<void>) | undefined> {
  // Loaded on first use: most worker processes never lock anything.
  const { default: lockfile } = await import("proper-lockfile");
  const deadline = performance.now() + waitMs;
  for (let pauseMs = 4; ; pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 1.5)) {
    try {
      // The library keys its locks by the first path. With the path of the directory, releasing one would drop another.
      const release = await lockfile.lock(path, {
        lockfilePath: path,
        realpath: false,
        fs: privateFs,
        stale: STALE_MS,
        update: UPDATE_MS,
        retries: 0,
        // Called when another process judged this one dead. Each writer reads again what it has written.
        onCompromised: () => {},
      });
      try {
        nextOwner ??= ownerSequence();
        writeRegularText(ownerPath(path), nextOwner());
      } catch (error) {
        // The disk is full. A lock that is kept would be renewed as long as this process lives.
        await release().catch(() => {});
        throw error;
      }
      return async () => {
        try {
          fs.rmSync(ownerPath(path), { force: true });
        } catch {
          // The file names a past owner until the next owner writes its own name.
        }
        await release().catch(() => {});
      };
    } catch (error) {
      // ENOENT: another process judged the last owner dead and removed the lock at this moment.
      const code = systemCode(error);
      if (code !== "ELOCKED" && code !== "ENOENT") throw error;
    }
    if (isAbandoned(path)) fs.rmSync(path, { recursive: true, force: true });
    else if (performance.now() > deadline) return undefined;
    else await wait(pauseMs * (0.5 + Math.random()));
  }
}

/** Calls `work` under the lock, or without it if the lock stays taken for too long. @param path as for `lockFile` */
export async function underLock<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  const release = await lockFile(path);
  try {
    return await work();
  } finally {
    await release?.();
  }
}

/** Whether the owner is dead. False for a young lock: its new owner may not have written its name yet. */
function isAbandoned(path: string): boolean {
  try {
    const { mtimeMs } = fs.statSync(path);
    if (Math.abs(Date.now() - mtimeMs) < INTRODUCTION_MS) return false;
    return judgeOwner(readRegularText(ownerPath(path))) === "dead";
  } catch {
    return false;
  }
}

function ownerPath(path: string): string {
  return `${path}.owner`;
}
