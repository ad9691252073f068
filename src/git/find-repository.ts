/** Finds the repository of a directory by its files, without running git: cheap, for a process that must not wait. Changes nothing. */
import fs from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { NAMED, tryReadText, tryStatOf } from "../host/regular-file.ts";

/** Where a directory is in a repository. */
export interface Checkout {
  /** The directory that names the project: the top of the first worktree; of the bare `app.git` it is `app`. */
  root: string;
  /** The top directory of this worktree; undefined for a bare repository. */
  top: string | undefined;
  /** Where git keeps HEAD of this worktree. */
  gitDir: string;
  /** The git directory that all worktrees of the repository share, by its real path. */
  commonDir: string;
}

/** @returns undefined outside of a repository, and for a directory that cannot be read */
export function findCheckout(dir: string): Checkout | undefined {
  for (let at = realPath(dir); ; at = dirname(at)) {
    const found = checkoutAt(at);
    if (found !== undefined || at === dirname(at)) return found;
  }
}

/** @returns the git directory that all worktrees of the repository share; without a repository the directory itself */
export function repositoryOf(dir: string): string {
  return findCheckout(dir)?.commonDir ?? realPath(dir);
}

/** The first line of a small file; undefined when there is no such file. */
export function readLine(path: string): string | undefined {
  return tryReadText(path, NAMED)?.split("\n", 1)[0]?.trimEnd();
}

/** The repository or worktree with this top directory, or the bare repository there; undefined if there is none. */
function checkoutAt(dir: string): Checkout | undefined {
  const dotGit = join(dir, ".git");
  const stats = tryStatOf(dotGit);
  if (stats?.isDirectory() === true)
    return isGitDir(dotGit)
      ? { root: dir, top: dir, gitDir: dotGit, commonDir: realPath(dotGit) }
      : undefined;
  if (stats === undefined && isBare(dir))
    return { root: rootOf(dir), top: undefined, gitDir: dir, commonDir: dir };
  const [, target] = /^gitdir: (.+)$/.exec(readLine(dotGit) ?? "") ?? [];
  if (target === undefined) return undefined;
  const gitDir = resolve(dir, target);
  // Only an additional worktree has this file. A submodule also has a `.git` file, but is a project of its own.
  const common = readLine(join(gitDir, "commondir"));
  if (common === undefined) return { root: dir, top: dir, gitDir, commonDir: realPath(gitDir) };
  const commonDir = realPath(resolve(gitDir, common));
  return { root: rootOf(commonDir), top: dir, gitDir, commonDir };
}

/** The directory that names the project of a git directory: `app` of `app/.git`, of `app/.bare` and of the bare `app.git`. */
function rootOf(commonDir: string): string {
  return basename(commonDir).startsWith(".") ? dirname(commonDir) : commonDir.replace(/\.git$/, "");
}

function isGitDir(dir: string): boolean {
  return fs.lstatSync(join(dir, "HEAD"), { throwIfNoEntry: false }) !== undefined;
}

function isBare(dir: string): boolean {
  return ["HEAD", "objects", "refs"].every((name) => fs.existsSync(join(dir, name)));
}

/** The path itself when there is nothing. */
export function realPath(path: string): string {
  try {
    return fs.realpathSync(path);
  } catch {
    return resolve(path);
  }
}
