/** `wait`: returns when tasks have settled. */
import { join } from "node:path";
import { failedLinesText } from "../../core/batch.ts";
import { isSkippedKind } from "../../core/skipped.ts";
import { safe } from "../../text/render.ts";
import { batchesWithFailures } from "../../view/batches.ts";
import { findFiles, readJsonObject, textOf } from "../../view/scan.ts";
import type { Settled } from "../../view/task-ends.ts";
import { defineCommand, durationOption } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree } from "../shell/options.ts";
import { waitForQuiet, waitForTasks } from "../wait/wait-for-tasks.ts";

/** After waiting for everything, it looks at no more failures than this. */
const FAILURES_MAX = 100_000;

export const command = defineCommand({
  usage: "[ID…]",
  args: { min: 0, max: Number.POSITIVE_INFINITY },
  details: [
    "Waits until each task has a result or an error record, and each node of the plan is done or failed. Without ids it waits until nothing waits or runs in the mailbox or in the plan.",
    "It says on stderr which tasks cannot start now and why, and which have not ended when the time is over. Exit code 0: all completed, 1: some failed or were skipped (or some lines of a batch failed), 3: an unknown id, 124: the time was over.",
  ],
  examples: ["wait nightly --timeout 10m", "wait && echo all done"],
  options: {
    timeout: durationOption("TIME", "give up after this long: 30, 500ms, 5m"),
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const timeoutMs = ctx.options.timeout;
    if (ctx.positionals.length === 0) {
      const sinceMs = Date.now();
      const { isQuiet, open } = await waitForQuiet(ctx, tree, timeoutMs);
      const failed = findFiles(
        join(tree.mailbox, "failed"),
        (name) => name.endsWith("_error.json"),
        FAILURES_MAX,
      )
        .files.filter((file) => file.mtimeMs >= sinceMs)
        .map((file) => ({ name: file.name, ...readJsonObject(file.path) }))
        .map((record: Record<string, unknown>) => ({
          id: textOf(record["task_id"], String(record["name"])),
          isSkipped: isSkippedKind(record["kind"]),
        }));
      const partly = batchesWithFailures(tree).filter((batch) => batch.settledMs >= sinceMs);
      if (ctx.json) {
        const withFailedLines = partly.map(({ id }) => id);
        const ids = failed.map(({ id }) => id);
        ctx.out.json({ is_quiet: isQuiet, failed: ids, with_failed_lines: withFailedLines, open });
      } else {
        for (const { id, isSkipped } of failed)
          ctx.out.line(`${safe(id)}  ${isSkipped ? "skipped" : "failed"}`);
        for (const { id, counts } of partly)
          ctx.out.line(`${safe(id)}  completed, but ${failedLinesText(counts)}`);
      }
      if (!isQuiet) return EXIT.waitTimedOut;
      return failed.length + partly.length > 0 ? EXIT.failed : EXIT.ok;
    }
    const ids = [...new Set(ctx.positionals)];
    const result = await waitForTasks(ctx, tree, ids, { timeoutMs });
    if (ctx.json) {
      const { settled, pending, open, unknown } = result;
      ctx.out.json({ settled, pending, open, unknown: unknown.map(({ id }) => id) });
    } else {
      for (const one of result.settled) ctx.out.line(`${safe(one.id)}  ${endOf(one)}`);
      for (const { id, near } of result.unknown)
        ctx.out.note(
          `no tray and no plan has ${JSON.stringify(id)}${near === null ? "" : ` (did you mean ${safe(near)}?)`}`,
        );
    }
    if (result.unknown.length > 0) return EXIT.notFound;
    if (result.pending.length > 0) return EXIT.waitTimedOut;
    return result.isAllCompleted ? EXIT.ok : EXIT.failed;
  },
});

function endOf({ status, error = "", skipped, failed_lines: bad, lines }: Settled): string {
  // The error already says that the task was skipped, and why.
  if (skipped === true) return safe(error);
  if (status === "failed") return `failed: ${safe(error)}`;
  return bad === undefined ? "completed" : `completed, but ${bad} of its ${lines} lines failed`;
}
