/** `retry`: puts failed tasks back into the inbox under their own ids. */
import { basename } from "node:path";
import { messageOf } from "../../core/errors.ts";
import { isId } from "../../core/names.ts";
import { retry } from "../../mailbox/retry.ts";
import { defineCommand, ErrUsage } from "../command-spec.ts";
import { EXIT, exitCodeOf } from "../exit-codes.ts";
import { existingTree, openMailbox } from "../options.ts";
import { safe } from "../render.ts";
import { describeError, type ErrorReport } from "../report.ts";
import { eachName } from "../scan.ts";

export const command = defineCommand({
  usage: "ID… | --failed",
  args: { min: 0, max: Number.POSITIVE_INFINITY },
  details: [
    "The task runs again from its first attempt; of a batch only the lines that failed. Exit code 3: no such failed task, 4: it waits, runs or has completed.",
  ],
  options: {
    failed: {
      type: "flag",
      help: "all failed tasks that can run again; batches that completed with failed lines are retried by id",
    },
  },
  async run(ctx) {
    const { failed } = ctx.options;
    if (failed === ctx.positionals.length > 0)
      throw new ErrUsage(
        "retry needs ids, or --failed for all",
        "usage: mailchute retry ID… | --failed",
      );
    existingTree(ctx);
    const { trays } = await openMailbox(ctx);
    const ids = failed ? failedIds(trays.failed) : [...new Set(ctx.positionals)];
    const retried: string[] = [];
    const refused: { id: string; error: ErrorReport }[] = [];
    let exitCode: number = EXIT.ok;
    for (const id of ids) {
      try {
        await retry(trays, id);
        retried.push(id);
        if (!ctx.json) ctx.out.line(safe(id));
      } catch (error) {
        const code = exitCodeOf(error);
        // What cannot run again is no fault of `--failed`: it asked for all that can.
        if (failed && (code === EXIT.notFound || code === EXIT.conflict)) {
          refused.push({ id, error: describeError(error) });
          continue;
        }
        if (code === EXIT.bug || code === EXIT.io || ids.length === 1) throw error;
        refused.push({ id, error: describeError(error) });
        exitCode = Math.max(exitCode, code);
        if (!ctx.json) ctx.out.note(`${safe(id)}: ${safe(messageOf(error))}`);
      }
    }
    if (ctx.json) ctx.out.json({ retried, refused });
    else if (failed) ctx.out.note(`${retried.length} put back, ${refused.length} cannot run again`);
    if (failed && retried.length === 0) return EXIT.notFound;
    return exitCode;
  },
});

/** Ids with a plain error record; records of refused files under unique names hold no id that can be retried. */
function failedIds(dir: string): string[] {
  const ids: string[] = [];
  eachName(dir, (name) => {
    const id = basename(name, "_error.json");
    if (name.endsWith("_error.json") && isId(id)) ids.push(id);
    return true;
  });
  return ids.sort();
}
