/** `land`: brings the work of a task into its target branch, also when it could not land before. */
import { defineCommand } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree, openMailbox } from "../../../cli/shell/options.ts";
import { waitForTasks } from "../../../cli/wait/wait-for-tasks.ts";
import { landingIdOf } from "../../../core/landing.ts";
import { safe } from "../../../text/render.ts";
import { stateOf, writeLanding } from "../../../worker/landing-files.ts";
import { isThere, submitLanding } from "../submit-landing.ts";
import { orderToLand } from "./order-of.ts";

export const command = defineCommand({
  usage: "ID [--wait]",
  args: { min: 1, max: 1 },
  details: [
    "Submits the task ID.land and prints its id: it brings the branch of the task on top of its target, checks it there and moves the target. For work with `land: branch`, and for work that could not land, after you have mended it.",
    "Exit code 3: the task has left no work to land, 4: it waits or runs, or it is landing already.",
  ],
  examples: ["land fix-login --wait"],
  options: {
    wait: { type: "flag", help: "wait until it has landed; exit 1 when it could not" },
  },
  async run(ctx) {
    existingTree(ctx);
    const { tree, trays } = await openMailbox(ctx);
    const [id = ""] = ctx.positionals;
    const order = await orderToLand(tree, trays, id, "land");
    const landing = landingIdOf(id);
    const sinceMs = Date.now();
    // What an agent could not mend a person has looked at now.
    if (!isThere(trays, landing))
      writeLanding(tree.dir, id, "state", { ...stateOf(tree.dir, order), fix: null, wait: null });
    await submitLanding(trays, order);
    writeLanding(tree.dir, id, "sent", { v: 1, lease: order.lease });
    if (!ctx.json) ctx.out.line(landing);
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
