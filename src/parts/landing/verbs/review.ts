/** `review`: shows what a task has changed, what it says about that, how its checks ended, and the state of its landing. */
import fs from "node:fs";
import { type Context, defineCommand } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree } from "../../../cli/shell/options.ts";
import { showLong } from "../../../cli/shell/pager.ts";
import { landingIdOf } from "../../../core/landing.ts";
import { headlineOf } from "../../../core/outcome.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { listFiles, readDiff } from "../../../git/diff.ts";
import { atCommonDir, commitOf, findGitDir, openRepository } from "../../../git/repository.ts";
import { type GitCall, gitLines } from "../../../git/run-git.ts";
import { statusOf } from "../../../git/status.ts";
import { worktreeAt } from "../../../git/worktree.ts";
import { counted, fold, safe, wrap } from "../../../text/render.ts";
import { findRun, findTask } from "../../../view/find-task.ts";
import { askForLanding, changeText } from "../../../view/landing.ts";
import { readJsonObject, textOf } from "../../../view/scan.ts";
import { type LandingOrder, stateOf } from "../../../worker/landing-files.ts";
import { verdictOn } from "../ask-reviewer.ts";
import { readChecked } from "../landed-ref.ts";
import { type Proof, proofRefOf, readProof } from "../proof.ts";
import { lookAtChange } from "../protect-check.ts";
import { startOf } from "../review-packet.ts";
import { summaryOf, verifyEndOf } from "../what-it-says.ts";
import { diffText } from "./diff-text.ts";
import { orderOf } from "./order-of.ts";

/** How many of the last lines of a text are shown. */
const SECTION_LINES_MAX = 20;
const MARGIN = 10;
const NOTHING = { modified: [], untracked: [], unmerged: [] };

/** With `--diff` the lines of longer changes are left out. */
const LIMITS = { files: 3000, lines: 200_000, fileLines: 50_000, fileBytes: 20_000_000 };

interface Review
  extends Pick<LandingOrder, "task_id" | "title" | "agent" | "branch" | "base" | "target"> {
  repository: string;
  /** The work is what changes between these two commits. `start` is later than `base` if the branch has taken in commits of the target. */
  start: string;
  tip: string;
  commits: string[];
  files: { path: string; insertions: number | null; deletions: number | null }[];
  /** The changed files that only a person or a reviewer may let pass. */
  protected: string[];
  uncommitted: string[];
  summary: string;
  /** The programs that check it, and the end of their output in the run of the task. */
  checks: string[][];
  verify: string;
  /** Null when the task has no reviewer. */
  reviewer: { name: string; verdict: "pass" | "fail" | null; text: string } | null;
  /** The last task that mends the work, and what it was told. */
  fix: { id: string; text: string } | null;
  /** `details`: the conflict or the end of the check, if the landing has failed. */
  landing: { state: string; why: string; details: string };
  worktree: string;
  /** Of work that has landed. */
  proof: Proof["predicate"] | null;
}

export const command = defineCommand({
  usage: "ID [--diff]",
  args: { min: 1, max: 1 },
  details: [
    "On a terminal it shows the changed lines, too, in $PAGER or less. Exit code 3: the task has left no work.",
  ],
  examples: ["review fix-login"],
  options: {
    diff: { type: "toggle", help: "with the changed lines; on a terminal that is the default" },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const [id = ""] = ctx.positionals;
    const review = await learn(tree, await orderOf(tree, id, "review"));
    if (ctx.json) {
      ctx.out.json(review);
      return EXIT.ok;
    }
    const lines: string[] = [];
    print({ ...ctx, out: { ...ctx.out, line: (line = "") => void lines.push(line) } }, review);
    if (ctx.options.diff ?? ctx.isTerminal) {
      const call = atCommonDir(await openRepository(review.repository));
      const files = await readDiff(call, [review.start, review.tip], LIMITS);
      lines.push(...diffText(files, ctx.colour, `git diff ${review.start} ${review.tip}`));
    }
    await showLong(ctx, lines);
    return EXIT.ok;
  },
});

async function learn(tree: StateTree, order: LandingOrder): Promise<Review> {
  const { task_id, title, agent, branch, base, target, worktree, checks } = order;
  const repository = await openRepository(order.repository);
  const call = atCommonDir(repository);
  const landed = await readChecked(repository, order);
  const tip = (await commitOf(call, `refs/heads/${branch}`)) ?? landed?.tip ?? base;
  const start = await startOfWork(call, order, tip);
  const files = await listFiles(call, start, tip);
  const gitDir = findGitDir(repository, worktree);
  const { modified, untracked, unmerged } =
    gitDir === undefined
      ? NOTHING
      : await statusOf(repository, worktreeAt(worktree, gitDir, branch));
  const place = await findTask(tree, task_id);
  const record = place === undefined ? undefined : readJsonObject(place.path);
  const run = findRun(tree, task_id, place, record);
  const { fix } = stateOf(tree.dir, order);
  const landing = await landingOf(tree, order);
  const isLanded = landing.state === "landed";
  const proof = isLanded ? await readProof(repository, proofRefOf(order)) : undefined;
  return {
    task_id,
    title,
    agent,
    branch,
    base,
    target,
    worktree,
    repository: order.repository,
    start,
    tip,
    commits: await gitLines(call, "log", "--format=%h %s", "--max-count=50", `${start}..${tip}`),
    files: files.map(({ path, insertions, deletions }) => ({ path, insertions, deletions })),
    protected: (await lookAtChange(repository, order, start, tip)).changed,
    uncommitted: [...modified, ...unmerged, ...untracked],
    summary: summaryOf(record),
    checks: checks.verify ?? [],
    verify: run === undefined ? "" : verifyEndOf(run),
    reviewer: reviewerOf(tree, order, tip),
    fix: fix === null ? null : { id: fix.id, text: fix.text },
    landing,
    proof: proof?.predicate ?? null,
  };
}

/** All commits of work that has landed are on the target, too: then they count from where the branch began. */
async function startOfWork(call: GitCall, order: LandingOrder, tip: string): Promise<string> {
  const target = await commitOf(call, `refs/heads/${order.target}`);
  const start = await startOf(call, order, tip, target);
  return start === tip ? order.base : start;
}

/** The reviewer's verdict on the current tip of the branch. */
function reviewerOf(tree: StateTree, order: LandingOrder, tip: string): Review["reviewer"] {
  const { review_by: name } = order;
  if (name === undefined) return null;
  const { verdict = null, text = "" } = verdictOn(tree.dir, order, tip) ?? {};
  return { name, verdict, text };
}

async function landingOf(tree: StateTree, order: LandingOrder): Promise<Review["landing"]> {
  const landing = landingIdOf(order.task_id);
  const place = await findTask(tree, landing);
  const { wait } = stateOf(tree.dir, order);
  const is = (state: string, why: string, details = "") => ({ state, why, details });
  if (place === undefined)
    return order.land === "branch"
      ? is("branch", `it stays on its branch: mailchute land ${order.task_id}`)
      : is("pending", `${landing} is not submitted yet`);
  const record = readJsonObject(place.path);
  if (place.state === "done") {
    const { state = "landed", why = "" } = (await askForLanding(tree, order.task_id)) ?? {};
    return is(state, why);
  }
  if (place.state !== "failed") return is(place.state, wait?.why ?? `${landing} is ${place.state}`);
  const error = textOf(record?.["error"], "");
  return is("failed", headlineOf(error), error.split("\n").slice(1).join("\n").trim());
}

/** On a terminal the values are wrapped to its width. Names of files and commits are never wrapped, because people copy them. */
function print(ctx: Context, review: Review): void {
  const { out } = ctx;
  const room = ctx.isTerminal ? Math.max(20, ctx.columns - MARGIN) : Number.POSITIVE_INFINITY;
  const put = (name: string, text: string): void => {
    for (const [n, line] of wrap(safe(text), room).entries())
      out.line((n === 0 ? name : "").padEnd(MARGIN) + line);
  };
  const { task_id: id, title, branch, base, target, landing, reviewer, files, commits } = review;
  put("task", id);
  if (title !== id) put("title", title);
  put("branch", `${branch}, from ${base.slice(0, 12)}, for ${target}`);
  if (review.fix !== null) put("mended", `${review.fix.id}: ${headlineOf(review.fix.text)}`);
  put("landing", `${landing.state}${landing.why === "" ? "" : `: ${landing.why}`}`);
  if (reviewer !== null)
    put("reviewer", `${reviewer.name}: ${reviewer.verdict ?? "no verdict on this commit"}`);
  if (review.protected.length > 0) put("protected", review.protected.join(", "));
  if (review.proof !== null) put("proof", `mailchute prove ${id}`);
  put("worktree", fs.existsSync(review.worktree) ? review.worktree : "gone");
  const sum = (what: "insertions" | "deletions"): number =>
    files.reduce((all, one) => all + (one[what] ?? 0), 0);
  const [insertions, deletions] = [sum("insertions"), sum("deletions")];
  put("changed", changeText({ files: files.length, insertions, deletions }));
  for (const one of files)
    out.line(
      safe(
        `  ${one.insertions === null ? "binary" : `+${one.insertions} -${one.deletions}`}  ${one.path}`,
      ),
    );
  for (const path of review.uncommitted) out.line(safe(`  uncommitted  ${path}`));
  put("commits", counted(commits.length, "commit"));
  for (const commit of commits) out.line(safe(`  ${commit}`));
  section(ctx, "says", review.summary);
  section(ctx, "verify", review.verify);
  section(ctx, "verdict", reviewer?.text ?? "");
  section(ctx, "landing", landing.details);
}

/** Prints the last lines of a text under a name. */
function section({ out, isTerminal, columns }: Context, name: string, text: string): void {
  if (text.trim() === "") return;
  const all = text.trim().split("\n");
  out.line(name);
  for (const line of all.slice(-SECTION_LINES_MAX))
    for (const part of isTerminal ? fold(safe(line), columns - 2) : [safe(line)])
      out.line(`  ${part}`);
}
