/** Index files of our own in the git directory of a worktree, beside the one that the worktree uses. */
import fs from "node:fs";
import { join } from "node:path";

/** Removes what a git that was killed has left of it, also its lock, for which git would wait for ever. @returns its path */
export function newIndex(gitDir: string, name: string): string {
  const file = join(gitDir, name);
  for (const left of [file, `${file}.lock`]) fs.rmSync(left, { force: true });
  return file;
}
