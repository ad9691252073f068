/**
 * A lock between processes for read-change-write of small files. A convenience that saves tries: its users must lose
 * nothing without it, because a lock that looks old may be taken by two at once.
 */
import fs from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { systemCode } from "../core/errors.ts";
import { judgeOwner, ownerSequence } from "./identity.ts";
import { privateFs } from "./private-fs.ts";
import { readRegularText, writeRegularText } from "./regular-file.ts";

const STALE_MS = 5000;
const UPDATE_MS = 1000;
/** Longer than a lock of a process on another machine looks alive (ms). */
const WAIT_MS_MAX = 8000;
const PAUSE_MS_MAX = 100;
/** Between taking a lock and saying whose it is (ms). */
const INTRODUCTION_MS = 100;

const nextOwner = ownerSequence();

/**
 * Waits for the lock. A lock whose owner is known to be dead is taken at once.
 * @param path of the lock; the directory around it must be there
 * @returns how to give it back, which never throws: the work is done; undefined when it could not be had in time: then go on without it
 */
export async function lockFile(path: string): Promise<(() => Promise<void>) | undefined> {
  // Not before it is wanted: most worker processes never lock anything.
  const { default: lockfile } = await import("proper-lockfile");
  const deadline = performance.now() + WAIT_MS_MAX;
  for (let pauseMs = 4; ; pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 1.5)) {
    try {
      // The library knows its locks by the first path: with that of the directory, giving one back would drop another.
      const release = await lockfile.lock(path, {
        lockfilePath: path,
        realpath: false,
        fs: privateFs,
        stale: STALE_MS,
        update: UPDATE_MS,
        retries: 0,
        // Another process took us for dead. Each writer looks again at what it has written.
        onCompromised: () => {},
      });
      try {
        writeRegularText(ownerPath(path), nextOwner());
      } catch (error) {
        // A full disk: kept, it would be renewed as long as we live.
        await release().catch(() => {});
        throw error;
      }
      return async () => {
        try {
          fs.rmSync(ownerPath(path), { force: true });
        } catch {
          // Then it names a process that does not own the lock, until the next owner writes its own name.
        }
        await release().catch(() => {});
      };
    } catch (error) {
      // ENOENT: another process took its last owner for dead, and removed it under us.
      const code = systemCode(error);
      if (code !== "ELOCKED" && code !== "ENOENT") throw error;
    }
    if (isAbandoned(path)) fs.rmSync(path, { recursive: true, force: true });
    else if (performance.now() > deadline) return undefined;
    else await wait(pauseMs * (0.5 + Math.random()));
  }
}

/** Not for a lock so young that its new owner may not have said so yet. */
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
