/** Makes our own index files in the git directory of a worktree, beside the one that the worktree uses. */
import fs from "node:fs";
import { join } from "node:path";

/** Removes an index that a killed git left there, and its lock, because git would wait for that for ever. @returns the path of the index */
export function newIndex(gitDir: string, name: string): string {
  const file = join(gitDir, name);
  for (const left of [file, `${file}.lock`]) fs.rmSync(left, { force: true });
  return file;
}
