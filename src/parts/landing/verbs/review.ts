/** `review`: what a task has changed, what it says about it, how its checks ended, and how far its landing is. */
import fs from "node:fs";
import { type Context, defineCommand } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree } from "../../../cli/shell/options.ts";
import { landingIdOf } from "../../../core/landing.ts";
import { headlineOf } from "../../../core/outcome.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { atCommonDir, commitOf, openRepository } from "../../../git/repository.ts";
import { gitLines } from "../../../git/run-git.ts";
import { counted, safe } from "../../../text/render.ts";
import { findRun, findTask } from "../../../view/find-task.ts";
import { readJsonObject, textOf } from "../../../view/scan.ts";
import { type LandingOrder, stateOf } from "../../../worker/landing-files.ts";
import { verdictOn } from "../ask-reviewer.ts";
import { readChecked } from "../landed-ref.ts";
import { summaryOf, verifyEndOf } from "../what-it-says.ts";
import { orderOf } from "./order-of.ts";

/** How many lines of a text are shown: its end counts. */
const SECTION_LINES_MAX = 20;

interface Review extends Pick<LandingOrder, "task_id" | "title" | "branch" | "base" | "target"> {
  commits: string[];
  files: { path: string; insertions: number | null; deletions: number | null }[];
  uncommitted: string[];
  summary: string;
  verify: string;
  /** Null when the task has none. */
  reviewer: { name: string; verdict: "pass" | "fail" | null; text: string } | null;
  landing: { state: string; why: string };
  worktree: string;
}

export const command = defineCommand({
  usage: "ID",
  args: { min: 1, max: 1 },
  details: [
    "Exit code 3: the task has left no work. To see the changes themselves: git diff BASE BRANCH, as it prints them.",
  ],
  examples: ["review fix-login"],
  options: {},
  async run(ctx) {
    const tree = existingTree(ctx);
    const [id = ""] = ctx.positionals;
    const review = await learn(tree, await orderOf(tree, id, "review"));
    if (ctx.json) ctx.out.json(review);
    else print(ctx, review);
    return EXIT.ok;
  },
});

async function learn(tree: StateTree, order: LandingOrder): Promise<Review> {
  const { task_id, title, branch, base, target, worktree } = order;
  const repository = await openRepository(order.repository);
  const call = atCommonDir(repository);
  const landed = await readChecked(repository, order);
  const tip = (await commitOf(call, `refs/heads/${branch}`)) ?? landed?.tip ?? base;
  const range = `${base}..${tip}`;
  const stat = await gitLines(
    call,
    "diff",
    "--numstat",
    "--no-ext-diff",
    "--no-textconv",
    base,
    tip,
  );
  const isHere = fs.existsSync(worktree);
  const status = isHere ? await gitLines({ cwd: worktree }, "status", "--porcelain") : [];
  const place = await findTask(tree, task_id);
  const record = place === undefined ? undefined : readJsonObject(place.path);
  const run = findRun(tree, task_id, place, record);
  return {
    task_id,
    title,
    branch,
    base,
    target,
    worktree,
    commits: await gitLines(call, "log", "--format=%h %s", "--max-count=50", range),
    files: stat.map((line) => {
      const [insertions = "", deletions = "", ...path] = line.split("\t");
      return {
        path: path.join("\t"),
        insertions: numberOf(insertions),
        deletions: numberOf(deletions),
      };
    }),
    uncommitted: status.map((line) => line.slice(3)),
    summary: summaryOf(record),
    verify: run === undefined ? "" : verifyEndOf(run),
    reviewer: reviewerOf(tree, order, tip),
    landing: await landingOf(tree, order),
  };
}

/** `-` stands for a file that is no text. */
function numberOf(text: string): number | null {
  return text === "-" ? null : Number(text);
}

/** What the reviewer says of the branch as it is now. */
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
  if (place === undefined)
    return order.land === "branch"
      ? { state: "branch", why: `it stays on its branch: mailchute land ${order.task_id}` }
      : { state: "pending", why: `${landing} is not submitted yet` };
  const record = readJsonObject(place.path);
  if (place.state === "done")
    return { state: "landed", why: textOf(record?.["verdict_reason"], "") };
  if (place.state === "failed")
    return { state: "failed", why: headlineOf(textOf(record?.["error"], "")) };
  return { state: place.state, why: wait?.why ?? `${landing} is ${place.state}` };
}

function print(ctx: Context, review: Review): void {
  const { out } = ctx;
  const put = (name: string, text: string): void => out.line(safe(`${name.padEnd(10)}${text}`));
  put("task", `${review.task_id}${review.title === review.task_id ? "" : `  ${review.title}`}`);
  put("branch", `${review.branch}, from ${review.base.slice(0, 12)}, for ${review.target}`);
  put(
    "landing",
    `${review.landing.state}${review.landing.why === "" ? "" : `: ${review.landing.why}`}`,
  );
  const { reviewer } = review;
  if (reviewer !== null)
    put("reviewer", `${reviewer.name}: ${reviewer.verdict ?? "no verdict on this commit"}`);
  put("worktree", fs.existsSync(review.worktree) ? review.worktree : "gone");
  put("changed", counted(review.files.length, "file"));
  for (const { path, insertions, deletions } of review.files)
    out.line(safe(`  ${insertions === null ? "binary" : `+${insertions} -${deletions}`}  ${path}`));
  for (const path of review.uncommitted) out.line(safe(`  uncommitted  ${path}`));
  put("commits", counted(review.commits.length, "commit"));
  for (const commit of review.commits) out.line(safe(`  ${commit}`));
  section(ctx, "says", review.summary);
  section(ctx, "verify", review.verify);
  section(ctx, "verdict", reviewer?.text ?? "");
}

function section({ out }: Context, name: string, text: string): void {
  if (text.trim() === "") return;
  const lines = text.trim().split("\n");
  out.line(name);
  for (const line of lines.slice(-SECTION_LINES_MAX)) out.line(safe(`  ${line}`));
}
