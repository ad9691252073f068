/** `clean`: removes what is past its retention: results, error records, staged leftovers, logs of old attempts. */
import { sweepAll } from "../../mailbox/sweep.ts";
import { openTrays } from "../../mailbox/trays.ts";
import { sweepDocuments } from "../../supervisor/sweep-documents.ts";
import { sweepRuns } from "../../supervisor/sweep-runs.ts";
import { defineCommand } from "../command-spec.ts";
import { EXIT } from "../exit-codes.ts";
import { existingTree, openMailbox } from "../options.ts";

export const command = defineCommand({
  usage: "[--dry-run]",
  details: [
    "Keeps what recovery may still need. Retention is set in config.yaml (retention.outbox_days, retention.failed_days); a running supervisor does the same by itself.",
  ],
  options: { "dry-run": { type: "flag", short: "n", help: "count, but remove nothing" } },
  async run(ctx) {
    existingTree(ctx);
    const { tree, trays, loaded } = await openMailbox(ctx);
    const { outbox_days: outboxDays, failed_days: failedDays } = loaded.settings.retention;
    const isDryRun = ctx.options["dry-run"];
    const rules = { outboxDays, failedDays, isDryRun };
    const tasks = sweepAll(trays, rules);
    const commands = sweepAll(
      openTrays(tree.control, { durability: loaded.settings.durability }),
      rules,
    );
    const runs = sweepRuns(tree, loaded.settings.retention, tasks.nowMs, isDryRun);
    const documents = sweepDocuments(tree, commands.nowMs, isDryRun);
    const counts = {
      results: tasks.results + commands.results,
      errors: tasks.errors + commands.errors,
      staged: tasks.staged + commands.staged + documents,
      runs,
    };
    if (ctx.json) ctx.out.json({ dry_run: isDryRun, ...counts });
    else {
      const verb = isDryRun ? "would remove" : "removed";
      ctx.out.line(
        `${verb} ${counts.results} results, ${counts.errors} error records, ${counts.staged} staged files, ${counts.runs} runs`,
      );
    }
    return EXIT.ok;
  },
});
