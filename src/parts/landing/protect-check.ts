/**
 * Keeps the check of work from the work itself: says which protected files a change touches, runs the check also without the tests that
 * the work adds, and looks afterwards whether the check has changed them. For tasks with `protect`, `verify_from` or `prove`.
 */
import fs from "node:fs";
import { join, posix } from "node:path";
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import type { CleanCheckout } from "../../git/clean-checkout.ts";
import type { Repository } from "../../git/repository.ts";
import { askGit, type GitCall, gitList } from "../../git/run-git.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";
import { patternsOf } from "./check-files.ts";
import { addedPaths, protectedPaths } from "./protected-paths.ts";
import { readChanges, readFilesOf } from "./read-changes.ts";

export interface Guarded {
  /** The protected files that it changes. */
  changed: string[];
  /** The new files that the patterns name. A check with `verify_from: target` also runs without them. */
  added: string[];
}

type Guards = Pick<LandingOrder, "protect" | "checks" | "prefix">;

/** @param from the commit of the target. @param to the commit that would land. @throws ErrGit */
export async function lookAtChange(
  repository: Repository,
  order: Guards,
  from: string,
  to: string,
): Promise<Guarded> {
  const globs = patternsOf(order.protect ?? []);
  if (globs.length === 0) return { changed: [], added: [] };
  const changes = await readChanges(repository, from, to);
  const target = await readFilesOf(repository, from);
  // A name that is no text cannot be judged.
  const odd = changes.flatMap(({ path }) => (path.includes("\uFFFD") ? [path] : []));
  const changed = [...protectedPaths(globs, filesOfCheck(order), changes, target), ...odd];
  const isHeld = new Set(changed);
  return { changed, added: addedPaths(globs, changes).filter((path) => !isHeld.has(path)) };
}

/** The words of `verify` and `setup` that may be files of the repository. */
function filesOfCheck({ checks: { verify = [], setup = [] }, prefix }: Guards): string[] {
  const words = [...verify, ...setup].flat().flatMap((word) => word.split(/[\s;&|()<>'"=`]+/));
  return words.flatMap((word) => (word === "" ? [] : [posix.join(prefix, word)]));
}

/** A change on its way to the target. */
export interface Change {
  /** The commit of the target. */
  from: string;
  /** The commit that would land. */
  commit: string;
  guarded: Guarded;
}

/** Runs programs in the worktree. @returns why one failed */
type RunCheck = (programs: string[][]) => Promise<AttemptOutcome | undefined>;

/** Runs `verify`, and what proves the work. @returns why the work may not land. @throws ErrGit */
export async function runChecks(
  order: Guards & Pick<LandingOrder, "prove" | "verify_from">,
  repository: Repository,
  worktree: CleanCheckout,
  { from, commit, guarded }: Change,
  run: RunCheck,
): Promise<AttemptOutcome | undefined> {
  const { checks, prove, verify_from: isClean } = order;
  const { verify = [] } = checks;
  const { added } = guarded;
  const without = isClean === undefined ? [] : added;
  const red = await checkWithout(worktree, repository, without, () => run(verify));
  if (red !== undefined) return red;
  const spoiled = await changedByCheck(worktree, repository, order, commit);
  if (spoiled.length > 0)
    return notGood(`the check changed protected files while it ran: ${spoiled.join(", ")}`);
  if (prove === undefined) return undefined;
  const proof = prove === true ? verify : [prove];
  const own = prove === true ? undefined : await run(proof);
  if (own !== undefined) return own;
  const before = await isRedBefore(worktree, repository, { from, commit, added }, () => run(proof));
  if (before === true) return undefined;
  const named = JSON.stringify(proof[0]?.[0] ?? "");
  const todo = "add a test that fails there, and passes with the work";
  return before === false
    ? notGood(`prove: ${named} passes on the target too, without this work: ${todo}`)
    : before;
}

function notGood(message: string): AttemptOutcome {
  return failed("verify", "ErrVerify", message);
}

/**
 * Runs the check without these files, then with all of them.
 * @param run the check. @returns why it failed
 */
async function checkWithout(
  worktree: CleanCheckout,
  repository: Repository,
  added: readonly string[],
  run: () => Promise<AttemptOutcome | undefined>,
): Promise<AttemptOutcome | undefined> {
  if (added.length === 0) return run();
  for (const file of added) fs.rmSync(join(worktree.path, file), { force: true, recursive: true });
  const red = await run();
  await restore(callIn(worktree, repository), "HEAD", added);
  if (red?.kind === "failed" && red.failure === "verify")
    return {
      ...red,
      message: `${red.message} (without the new files of the work: ${added.join(", ")})`,
    };
  return red ?? run();
}

/** The protected files that the worktree has in another form than the commit. @throws ErrGit */
async function changedByCheck(
  worktree: CleanCheckout,
  repository: Repository,
  order: Guards,
  commit: string,
): Promise<string[]> {
  const globs = patternsOf(order.protect ?? []);
  if (globs.length === 0) return [];
  const call = callIn(worktree, repository);
  // An index of its own knows no file, so git reads each of them.
  const env = { ...call.env, GIT_INDEX_FILE: join(worktree.gitDir, "mailchute-after-check") };
  await askGit({ ...call, env }, "read-tree", commit);
  const paths = await gitList({ ...call, env }, "diff", "--name-only", "-z", "--no-ext-diff");
  const changes = paths.map((path) => ({ path, isNew: false }));
  return protectedPaths(globs, filesOfCheck(order), changes, { paths: [], links: new Map() });
}

/**
 * Runs the check on the target, with only the tests that the work adds; leaves the worktree at the work.
 * @param run the check. @returns true when it has failed there, as it must
 */
async function isRedBefore(
  worktree: CleanCheckout,
  repository: Repository,
  { from, commit, added }: { from: string; commit: string; added: readonly string[] },
  run: () => Promise<AttemptOutcome | undefined>,
): Promise<AttemptOutcome | boolean> {
  const call = callIn(worktree, repository);
  await askGit(call, "reset", "--hard", "--quiet", from);
  if (added.length > 0) await restore(call, commit, added);
  const red = await run();
  await askGit(call, "reset", "--hard", "--quiet", commit);
  if (red === undefined) return false;
  return red.kind === "failed" && red.failure === "verify" && red.signal === null ? true : red;
}

async function restore(call: GitCall, commit: string, files: readonly string[]): Promise<void> {
  const env = { ...call.env, GIT_LITERAL_PATHSPECS: "1" };
  const input = files.join("\0");
  const from = ["--pathspec-from-file=-", "--pathspec-file-nul"];
  await askGit({ ...call, env, input }, "checkout", "--quiet", commit, ...from);
}

function callIn({ path, gitDir }: CleanCheckout, { env }: Repository): GitCall {
  return { cwd: path, gitDir, env };
}
