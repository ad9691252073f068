/** Asks the reviewer of a task for its verdict on a commit. It asks once for each commit, even if a process dies in between. */

import { landingIdOf, reviewIdOf } from "../../core/landing.ts";
import { headlineOf } from "../../core/outcome.ts";
import { removeCleanCheckout } from "../../git/clean-checkout.ts";
import type { Repository } from "../../git/repository.ts";
import { readSettled } from "../../mailbox/find/settled-record.ts";
import { submitOnce } from "../../mailbox/submit/submit-once.ts";
import {
  type LandingOrder,
  loadVerdict,
  type ReviewVerdict,
  stateOf,
} from "../../worker/landing-files.ts";
import type { AttemptTools } from "../../worker/runner.ts";
import { reviewPathOf } from "./landing-paths.ts";
import { REVIEW_TYPE } from "./landing-type.ts";
import { type ReviewedWork, reviewText } from "./review-packet.ts";
import { isThere } from "./submit-landing.ts";

export type Reviewed =
  | { is: "passed" }
  /** The task of this id reviews it. */
  | { is: "open"; id: string }
  /** @member text what must be changed */
  | { is: "refused"; text: string }
  /** There is no verdict, and none will come by itself. */
  | { is: "silent"; why: string };

/** @throws ErrGit, ErrTaskExists, ErrInvalidTask, system errors */
export async function askReviewer(
  tools: AttemptTools,
  order: LandingOrder,
  repository: Repository,
  work: ReviewedWork,
): Promise<Reviewed> {
  const { tree, trays, settings } = tools;
  const { task_id, review_by: reviewer, agent: author } = order;
  const { tip } = work;
  if (reviewer === undefined || stateOf(tree.dir, order).accepted === tip) return { is: "passed" };
  const id = reviewIdOf(task_id, tip);
  const look = (): Reviewed | undefined => {
    const verdict = verdictOn(tree.dir, order, tip);
    if (verdict !== undefined) return judge(verdict);
    if (isThere(trays, id)) return { is: "open", id };
    const record = readSettled(trays, id)?.record;
    if (record === undefined) return undefined;
    // The review may have ended since the verdict was read.
    const late = verdictOn(tree.dir, order, tip);
    if (late !== undefined) return judge(late);
    const why = record.status === "failed" ? headlineOf(record.error) : "it has no verdict";
    return { is: "silent", why: `${id}: ${why}` };
  };
  const known = look();
  // This also removes the worktree of a killed review.
  if (known?.is !== "open") await removeCleanCheckout(repository, reviewPathOf(order, id));
  if (known !== undefined) return known;
  if (reviewer === author)
    return { is: "silent", why: `${reviewer} has done this work, and may not review it` };
  if (!settings.agents.some(({ name }) => name === reviewer))
    return { is: "silent", why: `no agent ${JSON.stringify(reviewer)} is configured` };
  const task = await reviewTask(tools, order, repository, work, id);
  const bytes = Buffer.from(`${JSON.stringify(task)}\n`, "utf8");
  if ((await submitOnce(trays, { id, bytes })) === "submitted") return { is: "open", id };
  return look() ?? { is: "silent", why: `${id} has ended, and its record is gone` };
}

async function reviewTask(
  { tree }: AttemptTools,
  order: LandingOrder,
  repository: Repository,
  work: ReviewedWork,
  id: string,
): Promise<Record<string, unknown>> {
  const { task_id, title, review_by: reviewer, branch, target, cwd } = order;
  return {
    id,
    type: REVIEW_TYPE,
    title: `review: ${title}`,
    agent: reviewer,
    // None that stands in for it: that could be the author.
    agents: [reviewer],
    prompt: await reviewText(tree, order, repository, work),
    payload: { task_id, branch, target, base: work.start, commit: work.tip },
    ...(cwd === "" ? {} : { cwd }),
    // A review leaves no work of its own, whatever the settings of the reviewer say.
    worktree: "none",
    max_attempts: 2,
    review_of: task_id,
    parent_id: landingIdOf(task_id),
  };
}

/** The reviewer's verdict on this commit. */
export function verdictOn(
  stateDir: string,
  { task_id }: Pick<LandingOrder, "task_id">,
  commit: string,
): ReviewVerdict | undefined {
  const found = loadVerdict(stateDir, reviewIdOf(task_id, commit));
  return found?.commit === commit ? found : undefined;
}

function judge({ verdict, text, by }: ReviewVerdict): Reviewed {
  if (verdict === "pass") return { is: "passed" };
  return { is: "refused", text: text === "" ? `${by} gives no reason` : text };
}
