/** Keeps our own processes from changing the plan at the same time. It saves tries; nothing is lost without it. */
import { basename, dirname, join } from "node:path";
import { lockFile } from "../../../host/file-lock.ts";
import { makeDirs } from "../../../host/make-dirs.ts";

/** Does the work alone under this lock, or without the lock after a wait that is long enough. */
export async function withRoadmapLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const dir = join(dirname(path), ".tmp");
  makeDirs(dir);
  const release = await lockFile(join(dir, `${basename(path)}.lock`));
  try {
    return await work();
  } finally {
    await release?.();
  }
}
