/** `roadmap reset`: opens done and failed nodes again. */
import type { Context } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { dropOf, insideRun } from "../../../cli/shell/inside-run.ts";
import { existingTree, openMailbox } from "../../../cli/shell/options.ts";
import { counted, safe } from "../../../text/render.ts";
import { resetPlan } from "../reset-plan.ts";
import type { ResetChoice } from "../rules/reset.ts";
import { refusal, tellChanged } from "./read-plan.ts";

/** A line names at most this many nodes. */
const NAMED_MAX = 5;

/** @throws ErrInvalidTransition if a node is in flight */
export async function reset(ctx: Context, choice: ResetChoice): Promise<number> {
  if (ctx.env["MAILCHUTE_DROP"] !== undefined && dropOf(ctx) !== undefined)
    throw insideRun("roadmap reset", "set nodes open in next.setStatus of your <result>");
  existingTree(ctx);
  const { tree, trays } = await openMailbox(ctx, true);
  const done = await resetPlan({ tree, trays }, choice, {
    check(doc) {
      const [first] = doc.problems;
      if (first !== undefined) throw refusal(tree, doc, first);
    },
  });
  tellChanged(ctx, done);
  const { open, left } = done;
  if (ctx.json) {
    ctx.out.json({
      opened: open.map(({ id, status }) => ({ id, from: status, to: "open" })),
      left: left.map(({ id, status }) => ({ id, status })),
    });
    return EXIT.ok;
  }
  for (const { id, status } of open) ctx.out.line(`${safe(id)}: ${status} → open`);
  if (open.length === 0) ctx.out.note("nothing to open: none of these nodes is done or failed");
  if (left.length > 0) {
    const names = left.slice(0, NAMED_MAX).map(({ id, status }) => `${safe(id)} (${status})`);
    const more = left.length > NAMED_MAX ? " …" : "";
    ctx.out.note(`${counted(left.length, "node")} left to you: ${names.join(", ")}${more}`);
  }
  return EXIT.ok;
}
