/** Finds the repository of a directory by its files, without running git: cheap, for a process that must not wait. Changes nothing. */
import fs from "node:fs";
import { dirname, join, resolve } from "node:path";

/** @returns the git directory that all worktrees of the repository share; without a repository the directory itself */
export function repositoryOf(dir: string): string {
  let at = realPath(dir);
  for (;;) {
    const found = commonDirAt(at);
    if (found !== undefined) return found;
    const above = dirname(at);
    if (above === at) return realPath(dir);
    at = above;
  }
}

function commonDirAt(dir: string): string | undefined {
  const dotGit = join(dir, ".git");
  const stats = fs.statSync(dotGit, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return realPath(dotGit);
  if (stats?.isFile() === true) {
    const [, named = ""] = /^gitdir: (.+)$/m.exec(readText(dotGit)) ?? [];
    const gitDir = resolve(dir, named.trim());
    return realPath(resolve(gitDir, readText(join(gitDir, "commondir")).trim()));
  }
  const isBare = ["HEAD", "objects", "refs"].every((name) => fs.existsSync(join(dir, name)));
  return isBare ? dir : undefined;
}

function readText(path: string): string {
  try {
    return fs.readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function realPath(path: string): string {
  try {
    return fs.realpathSync(path);
  } catch {
    return resolve(path);
  }
}
