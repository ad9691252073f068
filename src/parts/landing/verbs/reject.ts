/** `reject`: gives the work of a task back to its agent, with a text that says what is wrong. */
import { defineCommand } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree, openMailbox } from "../../../cli/shell/options.ts";
import { ErrInvalidTransition } from "../../../core/errors.ts";
import { writeLanding } from "../../../worker/landing-files.ts";
import { canMend, sendBack } from "../send-back.ts";
import { submitLanding } from "../submit-landing.ts";
import { orderToLand } from "./order-of.ts";

export const command = defineCommand({
  usage: "ID TEXT",
  args: { min: 2, max: Number.POSITIVE_INFINITY },
  details: [
    "Submits a task for the same agent, in the same worktree and the same session, with TEXT as its prompt, and prints its id. With `land: merge` or `exec` the work lands when that task has completed; with `land: branch` see `mailchute land`.",
    "Exit code 3: the task has left no work, 4: it waits or runs, is landing, or was a program that takes no text.",
  ],
  examples: ['reject fix-login "keep the old name of the option, too"'],
  options: {},
  async run(ctx) {
    existingTree(ctx);
    const { tree, trays } = await openMailbox(ctx);
    const [id = "", ...words] = ctx.positionals;
    const order = await orderToLand(tree, trays, id, "reject");
    if (!canMend(order))
      throw new ErrInvalidTransition(`${JSON.stringify(id)} was a program, which takes no text`, {
        id,
        phase: "reject",
        hint: `mend it in ${order.worktree}, or run it again: mailchute retry ${id} --completed`,
      });
    const fix = await sendBack(tree, trays, order, words.join(" "));
    if (order.land !== "branch") {
      await submitLanding(trays, order);
      writeLanding(tree.dir, id, "sent", { v: 1, lease: order.lease });
    }
    if (ctx.json) ctx.out.json({ id: fix, task_id: id, branch: order.branch });
    else ctx.out.line(fix);
    return EXIT.ok;
  },
});
