/** Finds the scope of a directory in the files of its git repository. Starts git only if these files do not name the branch. */
import { dirname, join } from "node:path";
import { ErrInvalidMessage } from "../../../core/errors.ts";
import { findCheckout, readLine, realPath } from "../../../git/find-repository.ts";
import { OUTSIDE, parseScope, type Scope, scopeOf } from "./scope.ts";

/** If no branch is checked out, this many characters of the commit stand for it. */
const COMMIT_CHARS = 7;
/** Git writes this into HEAD when it keeps branches in another form (reftable). */
const ELSEWHERE = ".invalid";

/** @throws ErrInvalidMessage when the text is no scope. @param from what it was named with */
export function readScope(said: string, from: string): Scope {
  const scope = parseScope(said);
  if (scope !== undefined) return scope;
  throw new ErrInvalidMessage(`${JSON.stringify(said)} is no scope`, {
    phase: "scope",
    hint: `write ${from} as PROJECT:BRANCH`,
  });
}

/** Never throws: a directory that cannot be read counts as no repository. */
export async function findScope(cwd: string): Promise<Scope> {
  const checkout = findCheckout(cwd);
  if (checkout === undefined) return OUTSIDE;
  return scopeOf(checkout.root, branchOf(checkout.gitDir) ?? (await askBranch(cwd)));
}

/** The git directory around a state tree, which its worktrees share; outside of a repository the state tree itself. */
export function rootDirOf(stateDir: string): string {
  return findCheckout(dirname(stateDir))?.commonDir ?? realPath(stateDir);
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
    const call = { cwd, answers: [1, 128], isPlain: true };
    const head = await askGit(call, "symbolic-ref", "--quiet", "--short", "HEAD");
    if (head.code === 0) return head.out.toString().trim();
    const commit = await askGit(call, "rev-parse", "--quiet", "--verify", "HEAD");
    return commit.code === 0 ? commit.out.toString().slice(0, COMMIT_CHARS) : "";
  } catch {
    return "";
  }
}
