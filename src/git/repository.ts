/** Finds the repository of a directory, and says early what keeps mailchute from working in it. Changes nothing. */
import fs from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { ErrGit } from "../core/errors.ts";
import { findProgram } from "../host/find-program.ts";
import { NAMED, readRegularText } from "../host/regular-file.ts";
import { keptCommonDir } from "./kept-settings.ts";
import { askGit, type GitCall, gitLines, gitText } from "./run-git.ts";

export interface Repository {
  /** The git directory that all its worktrees share. */
  commonDir: string;
  /** The path of the directory in the worktree, with a slash at the end; "" at the top. */
  prefix: string;
  /** Variables for all calls: git obeys the settings that are kept. */
  env: Readonly<Record<string, string>>;
}

/** @throws ErrGit when the directory is in no repository */
export async function openRepository(
  dir: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Repository> {
  if (!fs.existsSync(dir)) throw new ErrGit(`there is no directory ${dir}`, { path: dir });
  let found: string;
  try {
    const call: GitCall = { cwd: dir, env, isPlain: true };
    found = await gitText(call, "rev-parse", "--show-prefix", "--git-common-dir");
  } catch (error) {
    if (!/not a git repository/.test((error as Error).message)) throw error;
    throw new ErrGit(`${dir} is in no git repository`, {
      path: dir,
      hint: "name the repository as cwd (`enqueue --cwd DIR`), make one there with `git init` and a first commit, or leave out worktree: auto",
    });
  }
  const [prefix = "", common = ""] = found.split(/\n(.*)/s);
  const commonDir = fs.realpathSync(resolve(dir, common));
  return { commonDir, prefix, env: { ...env, GIT_COMMON_DIR: await keptCommonDir(commonDir) } };
}

/** For calls that need no worktree. */
export function atCommonDir({ commonDir, env }: Repository): GitCall {
  // The call does not use the worktree of a person, so it cannot change that person's files.
  return { cwd: commonDir, env: { ...env, GIT_DIR: commonDir } };
}

/** The commit that a ref names; undefined when there is none. */
export async function commitOf(call: GitCall, ref: string): Promise<string | undefined> {
  const asked = ["rev-parse", "--quiet", "--verify", `${ref}^{commit}`];
  const { code, out } = await askGit({ ...call, answers: [1, 128] }, ...asked);
  return code === 0 ? out.toString().trim() : undefined;
}

/** Whether a commit is an ancestor of another one, or the same commit. @throws ErrGit */
export async function isAncestor(call: GitCall, commit: string, of: string): Promise<boolean> {
  const { code } = await askGit(
    { ...call, answers: [1] },
    "merge-base",
    "--is-ancestor",
    commit,
    of,
  );
  return code === 0;
}

/** The commit at which new work begins: that of the directory's own worktree. @throws ErrGit when there is none yet */
export async function headOf(dir: string, { env }: Repository): Promise<string> {
  const head = await commitOf({ cwd: dir, env, isPlain: true }, "HEAD");
  if (head !== undefined) return head;
  throw new ErrGit(`the repository of ${dir} has no commit yet`, {
    path: dir,
    hint: "make the first commit; a worktree begins at one",
  });
}

/**
 * Refuses a repository with LFS files when the LFS filter cannot run: an agent would get pointers in place of the files.
 * @throws ErrGit
 */
export async function checkLargeFiles(repository: Repository, commit: string): Promise<void> {
  const call = { ...atCommonDir(repository), answers: [1] };
  const files = [":(top,glob)**/.gitattributes"];
  const found = await gitLines(call, "grep", "-l", "-I", "filter=lfs", commit, "--", ...files);
  if (found.length === 0) return;
  const asked = ["config", "--get-regexp", "^filter\\.lfs\\.(process|smudge)$"];
  const filters = await gitLines(call, ...asked);
  const fault =
    (filters.length === 0 ? "git has no filter for them" : undefined) ??
    (await explainFilter(call, filters));
  if (fault === undefined) return;
  throw new ErrGit(`the repository keeps files with git LFS, and ${fault}`, {
    path: repository.commonDir,
    hint: "install git-lfs and run `git lfs install`",
  });
}

/** @param filters lines of settings: a name, a command */
async function explainFilter(
  call: GitCall,
  filters: readonly string[],
): Promise<string | undefined> {
  const set = new Map(filters.map((line) => line.split(" ", 2) as [string, string]));
  const program = set.get("filter.lfs.process") ?? set.get("filter.lfs.smudge") ?? "";
  // Only a shell can read a command with quotes or variables.
  if (!/^[\w./+-]+$/.test(program)) return undefined;
  const path = [await gitText(call, "--exec-path"), process.env["PATH"]].join(delimiter);
  if (findProgram(program, path, call.cwd) !== undefined) return undefined;
  return `their filter ${program} is not there`;
}

/** The directory in which git keeps the data of one worktree; undefined when git knows no worktree at this path. */
export function findGitDir({ commonDir }: Repository, path: string): string | undefined {
  return listWorktrees(commonDir).find((one) => one.path === path)?.gitDir;
}

/** All worktrees of the repository that git knows, except the main one. Includes those whose directory is gone. */
export function listWorktrees(commonDir: string): { path: string; gitDir: string }[] {
  const dir = join(commonDir, "worktrees");
  let names: string[] = [];
  try {
    names = fs.readdirSync(dir);
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const gitDir = join(dir, name);
    try {
      const file = resolve(gitDir, readRegularText(join(gitDir, "gitdir"), NAMED).trim());
      return [{ path: file.replace(/\/\.git$/, ""), gitDir }];
    } catch {
      // Another process is making or removing it just now.
      return [];
    }
  });
}
