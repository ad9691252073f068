/** Keeps two mailchute processes from changing the plan at the same time. It only saves retries: without it no edit is lost. */
import { basename, dirname, join } from "node:path";
import { lockFile } from "../../../host/file-lock.ts";
import { makeDirs } from "../../../host/make-dirs.ts";

/** Runs `work` under this lock, or without it if the lock stays taken for too long. */
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
