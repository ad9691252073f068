/** Keeps our own processes from changing the plan at once. A convenience that saves tries; nothing is lost without it. */
import { dirname } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import lockfile from "proper-lockfile";
import { systemCode } from "../core/errors.ts";

const STALE_MS = 5000;
const UPDATE_MS = 1000;
/** Longer than a lock of a dead process looks alive (ms). */
const WAIT_MS_MAX = 8000;

/** Does the work while no other process of ours does work under this lock, or after having waited long enough. */
export async function withRoadmapLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const release = await acquire(path);
  try {
    return await work();
  } finally {
    await release();
  }
}

async function acquire(path: string): Promise<() => Promise<void>> {
  const deadline = performance.now() + WAIT_MS_MAX;
  for (let pauseMs = 5; ; pauseMs = Math.min(100, pauseMs * 2)) {
    try {
      const release = await lockfile.lock(dirname(path), {
        lockfilePath: `${path}.lock`,
        realpath: false,
        stale: STALE_MS,
        update: UPDATE_MS,
        retries: 0,
        // Taken for dead: the other one goes on too, and whoever comes second sees that the file has changed.
        onCompromised: () => {},
      });
      return async () => {
        await release().catch(() => {});
      };
    } catch (error) {
      if (systemCode(error) !== "ELOCKED") throw error;
      if (performance.now() > deadline) return async () => {};
    }
    await wait(pauseMs * (0.5 + Math.random()));
  }
}
