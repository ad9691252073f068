/** Brings the work of a branch on top of its target, in a worktree without a branch. The branch itself stays as it is. */

import { ErrGit } from "../../core/errors.ts";
import type { CleanCheckout } from "../../git/clean-checkout.ts";
import { atCommonDir, commitOf, isAncestor, type Repository } from "../../git/repository.ts";
import { askGit, endOf, type GitCall, gitLines, gitList, gitText } from "../../git/run-git.ts";

export type Together =
  /** @member commit a descendant of the target, or the target itself */
  { kind: "ready"; commit: string } | { kind: "conflict"; files: string[]; text: string };

/**
 * These override the user's settings of git: no other branch moves, git asks nothing and signs nothing. It changes no line of the work
 * by itself, so that what was reviewed lands.
 */
const SETTINGS = [
  "rebase.backend=merge",
  "apply.whitespace=nowarn",
  "apply.ignoreWhitespace=no",
  "merge.renormalize=false",
  "merge.directoryRenames=conflict",
  "rebase.updateRefs=false",
  "rebase.autoStash=false",
  "rebase.autoSquash=false",
  "rebase.rebaseMerges=false",
  "merge.autoStash=false",
  "merge.verifySignatures=false",
  "commit.gpgSign=false",
  "rerere.enabled=false",
  "core.editor=true",
  "sequence.editor=true",
];
/** How much of a conflict is shown (characters). */
const TEXT_MAX = 6000;

/**
 * @param id the task, for a commit that is made here
 * @param base where the branch began: commits below it are not its own
 * @param at a fresh worktree at `tip`
 * @throws ErrGit
 */
export async function bringTogether(
  { env }: Repository,
  { path, gitDir }: CleanCheckout,
  { id, base, tip, target }: { id: string; base: string; tip: string; target: string },
): Promise<Together> {
  const call: GitCall = { cwd: path, gitDir, env, settings: SETTINGS, answers: [1] };
  if (await isAncestor(call, target, tip)) return { kind: "ready", commit: tip };
  const merges = await gitLines(call, "rev-list", "--merges", "--max-count=1", `${target}..${tip}`);
  if (merges.length > 0) {
    // A rebase would leave out how its merges solved conflicts.
    await askGit(call, "reset", "--hard", "--quiet", target);
    const message = `Merge commit '${tip.slice(0, 12)}'\n\nMailchute-Task: ${id}`;
    return together(call, ["merge", "--no-ff", "--quiet", "-m", message, tip]);
  }
  const { code: isApart, out } = await askGit(call, "merge-base", target, tip);
  const fork = out.toString().trim();
  // The branch may have begun at commits that the target lacks, such as newer ones of main. They are not its own work.
  const isOlder = isApart !== 0 || !(await isAncestor(call, base, fork));
  const isOwnBase = isOlder && (await isAncestor(call, base, tip));
  const upstream = isOwnBase ? ["--onto", target, base] : [target];
  return together(call, ["rebase", "--quiet", ...upstream]);
}

async function together(call: GitCall, args: string[]): Promise<Together> {
  const { code, said } = await askGit(call, ...args);
  if (code !== 0) return conflict(call, `git ${args[0]} has stopped: ${endOf(said)}`);
  const commit = await commitOf(call, "HEAD");
  if (commit === undefined) throw new Error("the worktree of the landing has no head");
  return { kind: "ready", commit };
}

/** @throws ErrGit when no file is in conflict: then git was stopped by a full disk, or because one of its own programs ended */
async function conflict(call: GitCall, fault: string): Promise<Together> {
  const unmerged = await gitLines(call, "ls-files", "--unmerged");
  if (unmerged.length === 0) throw new ErrGit(fault, { path: call.cwd });
  const files = await gitList(call, "diff", "--name-only", "-z", "--diff-filter=U");
  const text = await gitText(call, "diff", "--no-color");
  return { kind: "conflict", files, text: text.slice(0, TEXT_MAX) };
}

/** The files in which two commits differ. @throws ErrGit */
export async function changedFiles(
  repository: Repository,
  from: string,
  to: string,
): Promise<string[]> {
  return gitList(atCommonDir(repository), "diff", "--name-only", "-z", "--no-renames", from, to);
}

/** Whether the target has each file that the branch has changed in the same state, for example after a squash merge. @throws ErrGit */
export async function hasSameFiles(
  repository: Repository,
  base: string,
  tip: string,
  target: string,
): Promise<boolean> {
  const own = await changedFiles(repository, base, tip);
  const other = new Set(await changedFiles(repository, tip, target));
  return own.length > 0 && own.every((file) => !other.has(file));
}
