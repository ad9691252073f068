/** Submits many tasks. Prints their ids as they are submitted, waits for them if asked to, and counts refused tasks. */
import { compact } from "../../core/compact.ts";
import { countText } from "../../text/render.ts";
import { EXIT } from "../shell/exit-codes.ts";
import type { OpenMailbox } from "../shell/options.ts";
import { waitForTasks } from "../wait/wait-for-tasks.ts";
import type { SubmitCounts } from "./submit-groups.ts";
import { type EnqueueContext, openInbox } from "./task-options.ts";

type Submit = (open: OpenMailbox, onIds: (ids: readonly string[]) => void) => Promise<SubmitCounts>;

/** @returns the exit code */
export async function tellAll(ctx: EnqueueContext, send: Submit): Promise<number> {
  const open = await openInbox(ctx);
  const sinceMs = Date.now();
  const ids: string[] = [];
  const counts = await send(open, (more) => {
    if (ctx.json || ctx.options.wait) ids.push(...more);
    if (!ctx.json) ctx.out.line(more.join("\n"));
  });
  const waited =
    ctx.options.wait && ids.length > 0
      ? await waitForTasks(ctx, open.tree, ids, { areKnown: true, sinceMs })
      : undefined;
  if (ctx.json) {
    const failed = waited?.settled.filter((one) => one.status === "failed").length;
    ctx.out.json(compact({ ids, ...counts, failed }));
  } else {
    const refused = counts.bad + counts.refused;
    const parts = [
      `${countText(counts.submitted)} submitted`,
      ...(counts.unchanged > 0 ? [`${countText(counts.unchanged)} unchanged: there already`] : []),
      ...(refused > 0 ? [`${countText(refused)} lines refused`] : []),
    ];
    if (parts.length > 1) ctx.out.note(parts.join(", "));
  }
  if (counts.bad > 0 || (waited !== undefined && !waited.isAllCompleted)) return EXIT.failed;
  return counts.refused > 0 ? counts.exitCode : EXIT.ok;
}
