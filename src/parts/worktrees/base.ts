/** The commit at which the work of a task began: checked out for a check that is red, and moved on when what was red there is mended. */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { branchToBuildOn } from "../../core/landing.ts";
import type { Deferred } from "../../core/outcome.ts";
import { makeCleanCheckout, removeCleanCheckout } from "../../git/clean-checkout.ts";
import { atCommonDir, commitOf, isAncestor } from "../../git/repository.ts";
import { askGit, gitText } from "../../git/run-git.ts";
import { mergeOf, startOf } from "../../git/start-of-work.ts";
import { statusOf } from "../../git/status.ts";
import { BaseCheck, hasTriedBases, RED_AGAIN_MS } from "../../worker/base-check.ts";
import type { AssignedAgent, Base } from "../../worker/runner.ts";
import { worktreeIdOf } from "../../worker/task-defaults.ts";
import { commitWork } from "./commit-work.ts";
import { baseOf, type MadeWorktree } from "./make.ts";
import { baseRefOf } from "./names.ts";

type There = [assigned: AssignedAgent, made: MadeWorktree];

/** Undefined when git does not know where the work began. */
export async function findBase(...[assigned, made]: There): Promise<Base | undefined> {
  const commit = await baseOf(made.repository, worktreeIdOf(assigned.assignment.task));
  return commit === undefined ? undefined : baseAt(commit, made);
}

async function baseAt(commit: string, { repository, worktree }: MadeWorktree): Promise<Base> {
  const { commonDir, prefix } = repository;
  const tree = await gitText(atCommonDir(repository), "rev-parse", `${commit}^{tree}`);
  const path = checkoutPath(worktree.path);
  return {
    commit,
    where: join(commonDir, "..", prefix),
    key: [commonDir, prefix, tree].join("\n"),
    workRoot: worktree.path,
    hasSameFiles: async () => (await statusOf(repository, worktree)).tree === tree,
    checkOut: async (use) => {
      await makeCleanCheckout(repository, path, commit);
      try {
        return await use({ root: path, cwd: join(path, prefix) });
      } finally {
        await removeCleanCheckout(repository, path);
      }
    },
  };
}

/** Beside the worktrees, in a folder that is no worktree. */
function checkoutPath(worktree: string): string {
  return join(dirname(worktree), ".base", basename(worktree));
}

/**
 * Call it before a run. While its base is known to be red, the task waits without a run. When new work begins at a commit where the check
 * is green, its branch gets what it lacks of that commit.
 * @param dir where the task would run without a worktree
 * @returns why it waits; or whether a red check of this run is to be tried on the base
 */
export async function enterBase(
  ...[assigned, made, dir]: [...There, dir: string]
): Promise<Deferred | boolean> {
  const { task, stateDir } = assigned.assignment;
  const { repository, worktree } = made;
  // A checkout that a killed worker left.
  const left = checkoutPath(worktree.path);
  if (fs.existsSync(left)) await removeCleanCheckout(repository, left);
  if (task.verify === undefined || !hasTriedBases(stateDir)) return true;
  const base = await findBase(assigned, made);
  const known = base === undefined ? undefined : new BaseCheck(assigned, base).waiting();
  if (base === undefined || known === undefined) return true;
  const buildsOn = branchToBuildOn(task, assigned.agent.settings);
  const start = await startOf(repository, dir, buildsOn);
  const next = start === base.commit ? base : await baseAt(start, made);
  const check = new BaseCheck(assigned, next);
  const tried = await check.tryOut(RED_AGAIN_MS);
  const held = tried.is === "red" ? check.hold(tried) : undefined;
  new BaseCheck(assigned, base).release(known, held?.question);
  if (held !== undefined) return held;
  return next === base || (await moveOn(assigned, made, start));
}

/** @returns false when only the agent can bring both together */
async function moveOn(...[{ assignment }, made, start]: [...There, string]): Promise<boolean> {
  const { task, attempt } = assignment;
  const { repository, worktree } = made;
  const { path, gitDir, branch } = worktree;
  const id = worktreeIdOf(task);
  const left = await commitWork({ repository, worktree, id, attempt }, task);
  const call = atCommonDir(repository);
  const tip = await commitOf(call, `refs/heads/${branch}`);
  if (left !== undefined || tip === undefined) return false;
  // The second is so after a kill before the base was noted.
  const next = (await isAncestor(call, tip, start))
    ? start
    : (await isAncestor(call, start, tip))
      ? tip
      : await mergeOf(call, tip, start, branch);
  if (next === undefined) return false;
  const there = { cwd: path, gitDir, env: repository.env };
  const { code } = await askGit(
    { ...there, answers: [1, 128] },
    "reset",
    "--keep",
    "--quiet",
    next,
  );
  // The run may have left its branch.
  if (code !== 0 || (await commitOf(call, `refs/heads/${branch}`)) !== next) return false;
  await askGit(call, "update-ref", baseRefOf(id), start);
  return true;
}
