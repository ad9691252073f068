/**
 * Looks at a repository inside a worktree, such as a submodule, as a heap of files. A run may have written its settings, and git starts
 * programs that settings name. So git never works in there: it reads the objects and refs through a git directory of ours.
 */
import fs from "node:fs";
import { join, resolve } from "node:path";
import { readRegularText, writeRegularText } from "../host/regular-file.ts";
import type { Repository } from "./repository.ts";
import { askGit, type GitCall, gitList, gitText } from "./run-git.ts";

/** What git reads of the inner repository: no settings, no hooks, no index with marks. */
const SHARED = ["objects", "refs", "packed-refs", "logs", "reftable", "shallow"];
/** Settings that say how objects and refs are stored. They name no program. */
const FORMAT = /^extensions\.(?:objectformat|refstorage)$/;
const NAME = "mailchute-inner";
/** How deep repositories may lie in each other. */
const DEPTH_MAX = 20;

/**
 * Those repositories in a worktree that hold work which their remotes do not have.
 * @param call one in the worktree; it names the git directory
 * @param links see `gitlinksIn`
 */
export async function innerWork(
  { cwd, gitDir = cwd, env }: GitCall,
  links: readonly string[],
): Promise<string[]> {
  const found: string[] = [];
  for (const path of links) {
    const dir = join(cwd, path);
    if (fs.existsSync(join(dir, ".git")) && !(await isElsewhere(dir, gitDir, env)))
      found.push(path);
  }
  return found;
}

/** Paths of the index that name a commit of another repository. */
export async function gitlinksIn(call: GitCall): Promise<string[]> {
  const entries = await gitList(call, "ls-files", "--stage", "-z");
  return entries
    .filter((entry) => entry.startsWith("160000 "))
    .map((entry) => entry.slice(entry.indexOf("\t") + 1));
}

/** @param gitDir the git directory of the worktree around it, for a folder of ours */
async function isElsewhere(
  dir: string,
  gitDir: string,
  env: GitCall["env"] = {},
  depth = 1,
): Promise<boolean> {
  const inner = gitDirOf(dir);
  if (inner === undefined || depth > DEPTH_MAX) return false;
  const own = join(gitDir, `${NAME}-${depth}`);
  try {
    await makeOwn(own, inner, gitDir, env);
    const call: GitCall = { cwd: dir, gitDir: own, env: { ...env, GIT_COMMON_DIR: own } };
    // An index without the marks of a run, such as skip-worktree.
    await askGit(call, "read-tree", "HEAD");
    const asked = ["status", "--porcelain", "--ignored", "-uall", "--ignore-submodules=all"];
    if ((await gitText(call, ...asked)) !== "") return false;
    const known = ["--max-count=1", "--all", "--reflog", "HEAD", "--not", "--remotes"];
    if ((await gitText(call, "rev-list", ...known)) !== "") return false;
    for (const path of await gitlinksIn(call)) {
      const deeper = join(dir, path);
      if (isEmptyDir(deeper)) continue;
      if (!(await isElsewhere(deeper, gitDir, env, depth + 1))) return false;
    }
    return true;
  } catch {
    return false;
  } finally {
    fs.rmSync(own, { recursive: true, force: true });
  }
}

/**
 * Whether the refs of another repository keep a commit. One call at a time, because it has one folder.
 * @param kept which refs, as `git rev-list` takes them
 */
export async function hasCommit(
  { commonDir, env }: Repository,
  inner: string,
  commit: string,
  kept: string,
): Promise<boolean> {
  const own = join(commonDir, NAME);
  try {
    await makeOwn(own, inner, commonDir, env);
    const call: GitCall = { cwd: own, gitDir: own, env: { ...env, GIT_COMMON_DIR: own } };
    return (await gitText(call, "rev-list", "--max-count=1", commit, "--not", kept)) === "";
  } catch {
    // It lacks the commit, or is broken.
    return false;
  } finally {
    fs.rmSync(own, { recursive: true, force: true });
  }
}

/** Undefined when it is a worktree of another repository, or broken. */
export function gitDirOf(dir: string): string | undefined {
  const dotGit = join(dir, ".git");
  const stats = fs.lstatSync(dotGit, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return dotGit;
  if (stats?.isFile() !== true) return undefined;
  const [, named] = /^gitdir: (.+?)\n*$/.exec(readRegularText(dotGit)) ?? [];
  if (named === undefined) return undefined;
  const found = resolve(dir, named);
  return fs.existsSync(join(found, "commondir")) ? undefined : found;
}

async function makeOwn(
  own: string,
  inner: string,
  gitDir: string,
  env: GitCall["env"] = {},
): Promise<void> {
  fs.rmSync(own, { recursive: true, force: true });
  fs.mkdirSync(own);
  for (const name of SHARED)
    if (fs.existsSync(join(inner, name))) fs.symlinkSync(join(inner, name), join(own, name));
  writeRegularText(join(own, "HEAD"), readRegularText(join(inner, "HEAD")));
  const input = readRegularText(join(inner, "config"));
  const call: GitCall = { cwd: gitDir, env, input, isPlain: true };
  const asked = ["config", "--file", "-", "--no-includes", "--list", "-z"];
  const lines = (await gitList(call, ...asked)).map((entry) => entry.split("\n", 2));
  const format = lines.flatMap(([key = "", value = ""]) =>
    FORMAT.test(key) && /^\w+$/.test(value)
      ? [`\t${key.slice("extensions.".length)} = ${value}`]
      : [],
  );
  const text = [
    "[core]",
    "\trepositoryformatversion = 1",
    "\tbare = false",
    "[extensions]",
    ...format,
  ];
  writeRegularText(join(own, "config"), `${text.join("\n")}\n`);
}

function isEmptyDir(dir: string): boolean {
  try {
    return fs.readdirSync(dir).length === 0;
  } catch {
    // Another program has removed it, or it is no directory: `status` tells that.
    return !fs.existsSync(dir);
  }
}
