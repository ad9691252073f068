/** `wait`: returns when tasks have settled. */
import { join } from "node:path";
import { defineCommand } from "../command-spec.ts";
import { EXIT } from "../exit-codes.ts";
import { existingTree } from "../options.ts";
import { safe } from "../render.ts";
import { findFiles, readJsonObject, textOf } from "../scan.ts";
import { waitForQuiet, waitForTasks } from "../wait-for-tasks.ts";

/** Failures that are looked at after waiting for everything. */
const FAILURES_MAX = 100_000;

export const command = defineCommand({
  usage: "[ID…]",
  args: { min: 0, max: Number.POSITIVE_INFINITY },
  details: [
    "Waits until each of the tasks has a result or an error record; without ids until nothing waits or runs. Exit code 0: all completed, 1: some failed (or some lines of a batch), 3: an unknown id, 124: the time was over.",
  ],
  examples: ["wait nightly --timeout 10m", "wait && echo all done"],
  options: {
    timeout: {
      type: "duration",
      value: "TIME",
      unit: "s",
      help: "give up after this long: 30, 500ms, 5m",
    },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const timeoutMs = ctx.options.timeout;
    if (ctx.positionals.length === 0) {
      const sinceMs = Date.now();
      const isQuiet = await waitForQuiet(ctx, tree, timeoutMs);
      const failed = findFiles(
        join(tree.mailbox, "failed"),
        (name) => name.endsWith("_error.json"),
        FAILURES_MAX,
      )
        .files.filter((file) => file.mtimeMs >= sinceMs)
        .map((file) => textOf(readJsonObject(file.path)?.["task_id"], file.name));
      if (ctx.json) ctx.out.json({ is_quiet: isQuiet, failed });
      else for (const id of failed) ctx.out.line(`${safe(id)}  failed`);
      if (!isQuiet) return EXIT.waitTimedOut;
      return failed.length > 0 ? EXIT.failed : EXIT.ok;
    }
    const ids = [...new Set(ctx.positionals)];
    const result = await waitForTasks(ctx, tree, ids, { timeoutMs });
    if (ctx.json) {
      ctx.out.json({ settled: result.settled, pending: result.pending, unknown: result.unknown });
    } else {
      for (const one of result.settled) {
        ctx.out.line(
          one.status === "completed"
            ? `${safe(one.id)}  completed${one.failed_lines === undefined ? "" : `, but ${one.failed_lines} of its lines failed`}`
            : `${safe(one.id)}  failed: ${safe(one.error ?? "")}`,
        );
      }
      for (const id of result.unknown) ctx.out.note(`no tray has a task ${JSON.stringify(id)}`);
      for (const id of result.pending) ctx.out.note(`${safe(id)} has not settled in time`);
    }
    if (result.unknown.length > 0) return EXIT.notFound;
    if (result.pending.length > 0) return EXIT.waitTimedOut;
    return result.isAllCompleted ? EXIT.ok : EXIT.failed;
  },
});
