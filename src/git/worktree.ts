/** Where the files of a worktree of ours are, as a run has left them. */
import fs from "node:fs";

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
  if (stats === undefined || stats.isDirectory())
    return { path: stats === undefined ? undefined : path, gitDir, branch };
  const what = stats.isSymbolicLink() ? `a link to ${fs.readlinkSync(path)}` : "no directory";
  return { path: undefined, gitDir, branch, instead: `${path} is ${what}` };
}
