/** Where the files of a worktree of ours are, as a run has left them. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { NAMED, tryReadText } from "../host/regular-file.ts";

export interface Worktree {
  /** Undefined when its directory is gone. */
  path: string | undefined;
  gitDir: string;
  /** Its branch, without `refs/heads/`. */
  branch: string;
  /** What stands in the place of its directory, in a sentence. It is not ours: a link may lead to files of a person. */
  instead?: string;
}

/** @param path where it was made */
export function worktreeAt(path: string, gitDir: string, branch: string): Worktree {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) {
    const moved = dirname(tryReadText(join(gitDir, "gitdir"), NAMED)?.trim() || path);
    const isMoved = moved !== dirname(path) && moved !== path && fs.existsSync(moved);
    const instead = isMoved ? { instead: `${path} was moved to ${moved}` } : {};
    return { path: undefined, gitDir, branch, ...instead };
  }
  if (stats.isDirectory()) return { path, gitDir, branch };
  const what = stats.isSymbolicLink() ? `a link to ${fs.readlinkSync(path)}` : "no directory";
  return { path: undefined, gitDir, branch, instead: `${path} is ${what}` };
}
