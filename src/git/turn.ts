/** Takes turns: processes make and remove the worktrees of a repository one at a time, because git has one lock for all of them. */
import { join } from "node:path";
import { ErrGit } from "../core/errors.ts";
import { lockFile } from "../host/file-lock.ts";
import { awaitLockOfMany } from "./left-locks.ts";
import type { Repository } from "./repository.ts";

/** How long a process waits for others that make or remove worktrees of the repository (ms). */
const TURN_WAIT_MS = 10 * 60_000;

/** Calls `run` while no other process makes or removes a worktree of the repository. @throws ErrGit when its turn does not come */
export async function inTurn<T>(repository: Repository, run: () => Promise<T>): Promise<T> {
  const file = join(repository.commonDir, "mailchute-worktrees.lock");
  const release = await lockFile(file, TURN_WAIT_MS);
  if (release === undefined)
    throw new ErrGit("another process has made or removed worktrees for ten minutes", {
      path: file,
      hint: "see which one it is; if none is, remove this file",
    });
  try {
    await awaitLockOfMany(repository.commonDir);
    return await run();
  } finally {
    await release();
  }
}
