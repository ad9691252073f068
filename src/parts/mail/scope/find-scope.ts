/** Finds the scope of a directory in the files of its git repository. Starts git only if these files do not name the branch. */
import fs from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { ErrInvalidMessage } from "../../../core/errors.ts";
import { readRegularText } from "../../../host/regular-file.ts";
import { OUTSIDE, parseScope, type Scope, scopeOf } from "./scope.ts";

/** If no branch is checked out, this many characters of the commit stand for it. */
const COMMIT_CHARS = 7;
/** Git writes this into HEAD when it keeps branches in another form (reftable). */
const ELSEWHERE = ".invalid";

interface Checkout {
  /** The directory of the first worktree. Its base name is the project. */
  root: string;
  /** Where git keeps HEAD of this worktree. */
  gitDir: string;
}

/**
 * The scope in which a command works: `named`, else `MAILCHUTE_SCOPE` (`project:branch`), else the scope of the directory.
 * @throws ErrInvalidMessage when the named text is no scope
 */
export async function currentScope(
  cwd: string,
  env: NodeJS.ProcessEnv,
  named?: string,
): Promise<Scope> {
  const said = named ?? env["MAILCHUTE_SCOPE"] ?? "";
  if (said === "" && named === undefined) return await findScope(cwd);
  const scope = parseScope(said);
  if (scope !== undefined) return scope;
  throw new ErrInvalidMessage(`${JSON.stringify(said)} is no scope`, {
    phase: "scope",
    hint: `write ${named === undefined ? "MAILCHUTE_SCOPE" : "--scope"} as PROJECT:BRANCH`,
  });
}

/** Never throws: a directory that cannot be read counts as no repository. */
export async function findScope(cwd: string): Promise<Scope> {
  let dir: string;
  try {
    dir = fs.realpathSync(cwd);
  } catch {
    return OUTSIDE;
  }
  for (; ; dir = dirname(dir)) {
    const checkout = checkoutAt(dir);
    if (checkout !== undefined)
      return scopeOf(checkout.root, branchOf(checkout.gitDir) ?? (await askBranch(dir)));
    if (dir === dirname(dir)) return OUTSIDE;
  }
}

/** The repository or worktree with this top directory; undefined if there is none. */
function checkoutAt(dir: string): Checkout | undefined {
  const dotGit = join(dir, ".git");
  const stats = fs.statSync(dotGit, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true)
    return readLine(join(dotGit, "HEAD")) === undefined ? undefined : { root: dir, gitDir: dotGit };
  const [, target] = /^gitdir: (.+)$/.exec(readLine(dotGit) ?? "") ?? [];
  if (target === undefined) return undefined;
  const gitDir = resolve(dir, target);
  // Only an additional worktree has this file. A submodule also has a `.git` file, but is a project of its own.
  const common = readLine(join(gitDir, "commondir"));
  return { root: common === undefined ? dir : rootOf(resolve(gitDir, common)), gitDir };
}

/** The directory that names the project of a git directory: `app` of `app/.git`, of `app/.bare` and of the bare `app.git`. */
function rootOf(commonDir: string): string {
  return basename(commonDir).startsWith(".") ? dirname(commonDir) : commonDir.replace(/\.git$/, "");
}

/** Undefined when HEAD does not name a branch or commit. */
function branchOf(gitDir: string): string | undefined {
  const head = readLine(join(gitDir, "HEAD")) ?? "";
  const [, ref] = /^ref: refs\/(?:heads\/)?(.+)$/.exec(head) ?? [];
  if (ref !== undefined) return ref === ELSEWHERE ? undefined : ref;
  return /^[0-9a-f]{40,64}$/.test(head) ? head.slice(0, COMMIT_CHARS) : undefined;
}

/** The branch, else the commit, else "". */
async function askBranch(cwd: string): Promise<string> {
  const { askGit } = await import("../../../git/run-git.ts");
  try {
    const call = { cwd, answers: [1, 128] };
    const head = await askGit(call, "symbolic-ref", "--quiet", "--short", "HEAD");
    if (head.code === 0) return head.out.toString().trim();
    const commit = await askGit(call, "rev-parse", "--quiet", "--verify", "HEAD");
    return commit.code === 0 ? commit.out.toString().slice(0, COMMIT_CHARS) : "";
  } catch {
    return "";
  }
}

/** The first line of a small file; undefined when there is no such file. */
function readLine(path: string): string | undefined {
  try {
    return readRegularText(path).split("\n", 1)[0]?.trimEnd();
  } catch {
    return undefined;
  }
}
