/** Finds the repository of a directory by its files, without running git: cheap, for a process that must not wait. Changes nothing. */
import fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { NAMED, statOf, tryReadText } from "../host/regular-file.ts";

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
  if (statOf(dotGit)?.isDirectory() === true) return realPath(dotGit);
  const text = tryReadText(dotGit, NAMED);
  if (text !== undefined) {
    const [, named = ""] = /^gitdir: (.+)$/m.exec(text) ?? [];
    const gitDir = resolve(dir, named.trim());
    const common = tryReadText(join(gitDir, "commondir"), NAMED) ?? "";
    return realPath(resolve(gitDir, common.trim()));
  }
  const isBare = ["HEAD", "objects", "refs"].every((name) => fs.existsSync(join(dir, name)));
  return isBare ? dir : undefined;
}

function realPath(path: string): string {
  try {
    return fs.realpathSync(path);
  } catch {
    return resolve(path);
  }
}
