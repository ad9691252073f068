/** `land`: brings the work of a task into its target branch, even if it could not land before. */
import fs from "node:fs";
import { type Context, defineCommand } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree, openMailbox } from "../../../cli/shell/options.ts";
import { waitForTasks } from "../../../cli/wait/wait-for-tasks.ts";
import { landingIdOf, reviewIdOf } from "../../../core/landing.ts";
import { landingFileOf, type StateTree } from "../../../core/state-tree.ts";
import { acceptSettings } from "../../../git/kept-settings.ts";
import { deleteRefs, listRefs, makeRef } from "../../../git/refs.ts";
import { atCommonDir, commitOf, isAncestor, openRepository } from "../../../git/repository.ts";
import type { Trays } from "../../../mailbox/files/trays.ts";
import { readSettled } from "../../../mailbox/find/settled-record.ts";
import { retry } from "../../../mailbox/retry/retry.ts";
import { safe } from "../../../text/render.ts";
import {
  type LandingOrder,
  listOrders,
  readLanding,
  stateOf,
  writeLanding,
} from "../../../worker/landing-files.ts";
import { verdictOn } from "../ask-reviewer.ts";
import { readChecked } from "../landed-ref.ts";
import { isThere, submitLanding } from "../submit-landing.ts";
import { orderOf, orderToLand } from "./order-of.ts";

export const command = defineCommand({
  usage: "ID [--wait] [--no-review] [--again] [--accept-settings] [--accept-protected]",
  args: { min: 1, max: 1 },
  details: [
    "Submits the task ID.land and prints its id: it brings the branch of the task on top of its target, checks it there and moves the target. For work with `land: branch`, and for work that could not land, after you have mended it.",
    "If the work has landed, and its branch and worktree are gone, it says so and submits nothing: exit code 0. Exit code 3: the task has left no work to land, 4: it waits or runs, or it is landing already.",
  ],
  examples: ["land fix-login --wait", "land fix-login --accept-settings"],
  options: {
    "no-review": {
      type: "flag",
      help: "land it as it is now, although its reviewer has not passed it",
    },
    "accept-settings": {
      type: "flag",
      help: "git obeys the settings of the repository as they are now; lands all work that waits for that",
    },
    "accept-protected": {
      type: "flag",
      help: "land it as it is now, although it changes protected files",
    },
    again: {
      type: "flag",
      help: "land once more what had landed: its target was deleted or set back since",
    },
    wait: { type: "flag", help: "wait until it has landed; exit 1 when it could not" },
  },
  async run(ctx) {
    existingTree(ctx);
    const { tree, trays } = await openMailbox(ctx);
    const [id = ""] = ctx.positionals;
    if (ctx.options["accept-settings"]) return acceptAndLand(ctx, tree, trays, id);
    const order = await orderToLand(tree, trays, id, "land");
    const landing = landingIdOf(id);
    if (ctx.options.again) await bringBack(order);
    if (await hasLanded(tree, order)) {
      const { target } = order;
      if (ctx.json) ctx.out.json({ id: landing, task_id: id, target, status: "completed" });
      else ctx.out.line(safe(`${id} has landed on ${target} already`));
      return EXIT.ok;
    }
    const sinceMs = Date.now();
    const { "no-review": noReview, "accept-protected": isAccepted } = ctx.options;
    await submitAgain(tree, trays, order, noReview, isAccepted);
    if (!ctx.json) ctx.out.line(landing);
    const refusal = noReview ? undefined : await refusalOf(tree, order);
    if (refusal !== undefined) ctx.out.note(safe(refusal));
    if (!ctx.options.wait) {
      if (ctx.json) ctx.out.json({ id: landing, task_id: id, target: order.target });
      return EXIT.ok;
    }
    const { settled } = await waitForTasks(ctx, tree, [landing], { areKnown: true, sinceMs });
    const [end] = settled;
    if (ctx.json)
      ctx.out.json({
        id: landing,
        task_id: id,
        target: order.target,
        status: end?.status ?? "unknown",
      });
    else if (end?.status === "failed") ctx.out.note(`${landing} failed: ${safe(end.error ?? "")}`);
    return end?.status === "completed" ? EXIT.ok : EXIT.failed;
  },
});

async function submitAgain(
  tree: StateTree,
  trays: Trays,
  order: LandingOrder,
  isAccepted: boolean,
  areFilesAccepted = false,
): Promise<void> {
  const { task_id: id, lease } = order;
  // A person has looked at the work now, so its agent may get it back once more.
  if (!isThere(trays, landingIdOf(id))) {
    const state = stateOf(tree.dir, order);
    const sent_back = (state.sent_back ?? []).filter((cause) => cause !== "work");
    const accepted = await reviewAgain(trays, order, isAccepted);
    const files = areFilesAccepted ? { accepted_files: await tipOf(order) } : {};
    const now = {
      ...state,
      fix: null,
      wait: null,
      sent_back,
      landed: false,
      ...accepted,
      ...files,
    };
    writeLanding(tree.dir, id, "state", now);
    fs.rmSync(landingFileOf(tree.dir, id, "red"), { force: true });
  }
  await submitLanding(trays, order);
  writeLanding(tree.dir, id, "sent", { v: 1, lease });
}

/**
 * Accepts the settings of the repository as they are now, removes the marks of all works that wait for that, and lands these. After a
 * kill in between, the work whose mark is gone has failed to land, and `land ID` lands it.
 */
async function acceptAndLand(
  ctx: Pick<Context, "json" | "out">,
  tree: StateTree,
  trays: Trays,
  id: string,
): Promise<number> {
  const { repository: commonDir } = await orderOf(tree, id, "land");
  const repository = await openRepository(commonDir);
  const settings = await acceptSettings(commonDir);
  const landings: string[] = [];
  for (const one of listOrders(tree.dir)) {
    const order = readLanding(tree.dir, one, "order");
    if (order?.repository !== commonDir) continue;
    const marks = await listRefs(repository, order.changed_ref);
    if (marks.length === 0) continue;
    // Work with `land: branch` lands when the person says so.
    if (order.land !== "branch" || one === id) {
      await deleteRefs(repository, marks);
      await submitAgain(tree, trays, order, false);
      landings.push(landingIdOf(one));
    } else await deleteRefs(repository, marks);
  }
  if (ctx.json) ctx.out.json({ repository: commonDir, settings, landings });
  else {
    const what = settings.length === 0 ? "no setting differs" : settings.join(", ");
    ctx.out.note(safe(`git now obeys the settings of ${commonDir}: ${what}`));
    for (const landing of landings) ctx.out.line(landing);
  }
  return EXIT.ok;
}

/** True if the records and git say so, and nothing is left that could land. */
async function hasLanded(tree: StateTree, order: LandingOrder): Promise<boolean> {
  const { branch, target, worktree } = order;
  if (stateOf(tree.dir, order).landed !== true || fs.existsSync(worktree)) return false;
  const repository = await openRepository(order.repository);
  const call = atCommonDir(repository);
  if ((await commitOf(call, `refs/heads/${branch}`)) !== undefined) return false;
  const checked = await readChecked(repository, order);
  const at = await commitOf(call, `refs/heads/${target}`);
  if (checked === undefined || at === undefined) return false;
  return isAncestor(call, checked.commit, at);
}

/** Makes the branch of landed work again at its last commit, unless it is there or the target still has the work. */
async function bringBack(order: LandingOrder): Promise<void> {
  const { branch, target } = order;
  const repository = await openRepository(order.repository);
  const call = atCommonDir(repository);
  const checked = await readChecked(repository, order);
  const at = await commitOf(call, `refs/heads/${target}`);
  if (checked === undefined) return;
  if (at !== undefined && (await isAncestor(call, checked.commit, at))) return;
  await makeRef(repository, { name: `refs/heads/${branch}`, commit: checked.tip });
}

/** Says that the landing will fail, if the reviewer has refused this commit: it is not asked twice. */
async function refusalOf(tree: StateTree, order: LandingOrder): Promise<string | undefined> {
  const { task_id: id, review_by: reviewer } = order;
  if (reviewer === undefined) return undefined;
  const commit = await tipOf(order);
  if (verdictOn(tree.dir, order, commit)?.verdict !== "fail") return undefined;
  return `${reviewer} does not pass this commit (${commit.slice(0, 12)}) and is not asked again, so it cannot land like this: mailchute land ${id} --no-review, or mailchute reject ${id} "what is wrong"`;
}

/** The last commit of the branch; "" when it is gone. */
async function tipOf({ branch, repository }: LandingOrder): Promise<string> {
  const call = atCommonDir(await openRepository(repository));
  return (await commitOf(call, `refs/heads/${branch}`)) ?? "";
}

/** Runs a failed review again. @returns the commit, as `accepted`, if the person lands it without a review */
async function reviewAgain(
  trays: Trays,
  { task_id, branch, repository, review_by: reviewer }: LandingOrder,
  isAccepted: boolean,
): Promise<{ accepted?: string }> {
  if (reviewer === undefined) return {};
  const call = atCommonDir(await openRepository(repository));
  const tip = await commitOf(call, `refs/heads/${branch}`);
  if (tip === undefined) return {};
  if (isAccepted) return { accepted: tip };
  const id = reviewIdOf(task_id, tip);
  if (!isThere(trays, id) && readSettled(trays, id)?.record.status === "failed")
    await retry(trays, id);
  return {};
}
