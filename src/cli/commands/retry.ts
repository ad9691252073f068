/** `retry`: puts failed tasks back into the inbox under their own ids. */
import { basename } from "node:path";
import { ErrInvalidTransition, messageOf } from "../../core/errors.ts";
import { isId, parseBesideName } from "../../core/names.ts";
import { isNodeTask } from "../../core/roadmap.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { readSettled } from "../../mailbox/find/settled-record.ts";
import {
  readSkipped,
  type SkippedTasks,
  skippedAfter,
} from "../../mailbox/find/skipped-records.ts";
import { retry } from "../../mailbox/retry/retry.ts";
import { counted, safe } from "../../text/render.ts";
import { eachName } from "../../view/scan.ts";
import { defineCommand, ErrUsage } from "../shell/command-spec.ts";
import { describeError, type ErrorReport } from "../shell/error-text.ts";
import { EXIT, exitCodeOf } from "../shell/exit-codes.ts";
import { existingTree, openMailbox } from "../shell/options.ts";

export const command = defineCommand({
  usage: "ID… [--completed] | --failed",
  args: { min: 0, max: Number.POSITIVE_INFINITY },
  details: [
    "The task runs again from its first attempt. Tasks that were skipped because of it wait again, too. Of a batch only the failed lines run again. Exit code 3: there is no such failed task, 4: the task waits or runs, or it has completed and --completed was not given. " +
      "To run a node of the plan again, use mailchute node set-status ID open.",
  ],
  options: {
    completed: {
      type: "flag",
      help: "run completed tasks again, too; their results are removed",
    },
    failed: {
      type: "flag",
      help: "all failed tasks that can run again; to retry a completed batch with failed lines, give its id",
    },
  },
  async run(ctx) {
    const { failed, completed: isRerun } = ctx.options;
    if (failed === ctx.positionals.length > 0)
      throw new ErrUsage(
        "retry needs ids, or --failed for all",
        "usage: mailchute retry ID… [--completed] | --failed",
      );
    if (failed && isRerun) throw new ErrUsage("--failed and --completed exclude each other");
    existingTree(ctx);
    const { trays } = await openMailbox(ctx);
    const skipped = failed ? await readSkipped(trays) : undefined;
    const ids = skipped === undefined ? [...new Set(ctx.positionals)] : failedIds(trays, skipped);
    const options =
      skipped === undefined ? {} : { skipped: () => Promise.resolve(skipped), leavesLate: true };
    const retried: string[] = [];
    const reopened = new Set<string>();
    const refused: { id: string; error: ErrorReport }[] = [];
    let exitCode: number = EXIT.ok;
    for (const id of ids) {
      try {
        if (isRerun) refuseNode(trays, id);
        // The retry of another task has just put this skipped task back.
        if (reopened.has(id)) continue;
        const also = await retry(trays, id, { isRerun, leavesDuplicates: failed, ...options });
        for (const one of also) reopened.add(one);
        retried.push(id);
        if (ctx.json) continue;
        ctx.out.line(safe(id));
        if (also.length > 0)
          ctx.out.note(`${counted(also.length, "skipped task")} put back with ${safe(id)}`);
      } catch (error) {
        const code = exitCodeOf(error);
        // `--failed` means all tasks that can run again, so a task that cannot is no error.
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
    if (failed) await retryLate(trays, reopened);
    const count = retried.length + reopened.size;
    if (ctx.json) ctx.out.json({ retried, reopened: [...reopened], refused });
    else if (failed) ctx.out.note(`${count} put back, ${refused.length} cannot run again`);
    if (failed && retried.length === 0) return EXIT.notFound;
    return exitCode;
  },
});

/** Retries tasks that were skipped while the other tasks were put back. */
async function retryLate(trays: Trays, reopened: Set<string>): Promise<void> {
  const late = [...(await readSkipped(trays)).values()].flat();
  for (const { id } of late) {
    try {
      for (const one of [id, ...(await retry(trays, id))]) reopened.add(one);
    } catch (error) {
      // Its dependency is still failed, or it was put back together with another task.
      const code = exitCodeOf(error);
      if (code !== EXIT.notFound && code !== EXIT.conflict) throw error;
    }
  }
}

/** Refuses a completed node: only the plan can run it again, not its task alone. @throws ErrInvalidTransition */
function refuseNode(trays: Trays, id: string): void {
  const settled = readSettled(trays, id)?.record;
  if (settled?.status === "completed" && isNodeTask(settled.task, id))
    throw new ErrInvalidTransition(`${JSON.stringify(id)} is a node of the plan`, {
      id,
      phase: "retry",
      hint: `mailchute node set-status ${id} open`,
    });
}

/** Ids with an error record, under its usual name or a longer one. Skipped tasks come last; of these, the nearest to the failure first. */
function failedIds(trays: Trays, skipped: SkippedTasks): string[] {
  const ids = new Set<string>();
  eachName(trays.failed, (name) => {
    const id = parseBesideName(name) ?? basename(name, "_error.json");
    if (name.endsWith("_error.json") && isId(id)) ids.add(id);
    return true;
  });
  const left = new Set([...skipped.values()].flat().map(({ id }) => id));
  const first = [...ids].filter((id) => !left.has(id)).sort();
  const after = first.flatMap((id) => skippedAfter(skipped, id));
  return [...new Set([...first, ...after, ...left])];
}
