/** Moves the target branch forward to a descendant. It forces nothing, and changes a checkout only if the order allows it. */
import fs from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../core/errors.ts";
import { findCheckout } from "../../git/find-repository.ts";
import { atCommonDir, commitOf, listWorktrees, type Repository } from "../../git/repository.ts";
import { askGit, gitLines, gitList } from "../../git/run-git.ts";
import { statusOfCheckout } from "../../git/status.ts";
import { tryReadText } from "../../host/regular-file.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";

export type Place =
  /** No worktree has it checked out, so one change of the ref moves it. */
  | { kind: "free" }
  | { kind: "checked_out"; path: string }
  /** The landing must wait. */
  | { kind: "busy"; why: string };

/** Where the target is checked out, and whether it may move there. @throws ErrGit */
export async function placeOfTarget(
  repository: Repository,
  { target, into_checkout: mayMove }: Pick<LandingOrder, "target" | "into_checkout">,
): Promise<Place> {
  const ref = `refs/heads/${target}`;
  const rebased = gitDirsOf(repository).find((dir) => isRebasing(dir, ref));
  if (rebased !== undefined)
    return { kind: "busy", why: `${target} is being rebased (${rebased}): end that rebase` };
  const path = await checkoutOf(repository, ref);
  if (path === undefined) return { kind: "free" };
  if (!mayMove) {
    const todo = "check out another branch there, or allow it with land_into_checkout: true";
    return { kind: "busy", why: `${target} is checked out in ${path}: ${todo}` };
  }
  const { modified, unmerged, operation } = await statusOfCheckout(repository, path);
  if (modified.length === 0 && unmerged.length === 0 && operation === undefined)
    return { kind: "checked_out", path };
  const what = operation === undefined ? "uncommitted changes" : `a ${operation} that has stopped`;
  return { kind: "busy", why: `${target} is checked out in ${path}, which has ${what}` };
}

/**
 * Why a landing must wait: the checkout has files that git does not track and that the landing would replace. git would replace
 * ignored files, too, but they may matter to a person. @throws ErrGit
 */
export async function explainInTheWay(
  repository: Repository,
  { target }: Pick<LandingOrder, "target">,
  place: Place,
  from: string,
  to: string,
): Promise<string | undefined> {
  if (place.kind !== "checked_out") return undefined;
  const asked = ["diff", "--name-only", "-z", "--no-renames", "--diff-filter=A", from, to];
  const [first, ...more] = (await gitList(atCommonDir(repository), ...asked)).filter(
    (name) => fs.lstatSync(join(place.path, name), { throwIfNoEntry: false }) !== undefined,
  );
  if (first === undefined) return undefined;
  const others = more.length === 0 ? "" : ` and ${more.length} more`;
  return `${target} is checked out in ${place.path}, where ${first}${others} would be replaced, and is in no commit: move it away`;
}

export type Moved =
  | { kind: "moved" }
  /** The target is no longer at `from`. */
  | { kind: "elsewhere" }
  | { kind: "busy"; why: string };

/** @param from the commit at which the target must be now. @throws ErrGit */
export async function moveTarget(
  repository: Repository,
  order: Pick<LandingOrder, "target" | "task_id">,
  place: Place,
  from: string,
  to: string,
): Promise<Moved> {
  const { target, task_id } = order;
  const ref = `refs/heads/${target}`;
  const call = atCommonDir(repository);
  if (place.kind === "checked_out") {
    if ((await commitOf(call, ref)) !== from) return { kind: "elsewhere" };
    // Such a file may have come while the work was checked.
    const inTheWay = await explainInTheWay(repository, order, place, from, to);
    if (inTheWay !== undefined) return { kind: "busy", why: inTheWay };
    const settings = ["merge.autoStash=false", "merge.verifySignatures=false"];
    const gitDir = findCheckout(place.path)?.gitDir ?? repository.commonDir;
    const there = { cwd: place.path, gitDir, env: repository.env, settings };
    try {
      await askGit(there, "merge", "--ff-only", "--no-overwrite-ignore", "--quiet", to);
    } catch (error) {
      const now = await commitOf(call, ref);
      if (now !== from) return { kind: now === to ? "moved" : "elsewhere" };
      const why = `${target} is checked out in ${place.path}, and git does not move it there: ${messageOf(error)}`;
      return { kind: "busy", why };
    }
  } else {
    const message = `mailchute: landing of ${task_id}`;
    try {
      await askGit(call, "update-ref", "-m", message, ref, to, from);
    } catch (error) {
      if (!/is at [0-9a-f]+ but expected/.test(messageOf(error))) throw error;
    }
  }
  return { kind: (await commitOf(call, ref)) === to ? "moved" : "elsewhere" };
}

/** The worktree that has the branch checked out. */
async function checkoutOf(repository: Repository, ref: string): Promise<string | undefined> {
  const call = { ...atCommonDir(repository), isPlain: true };
  const lines = await gitLines(call, "worktree", "list", "--porcelain");
  let path = "";
  for (const line of lines) {
    if (line.startsWith("worktree ")) path = line.slice("worktree ".length);
    // A worktree whose directory is gone has no files that could become wrong.
    else if (line === `branch ${ref}` && fs.existsSync(path)) return path;
  }
  return undefined;
}

function gitDirsOf({ commonDir }: Repository): string[] {
  return [commonDir, ...listWorktrees(commonDir).map(({ gitDir }) => gitDir)];
}

function isRebasing(gitDir: string, ref: string): boolean {
  return ["rebase-merge", "rebase-apply"].some(
    (name) => tryReadText(join(gitDir, name, "head-name"))?.trim() === ref,
  );
}
