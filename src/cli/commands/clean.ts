/** `clean`: removes what is past its retention: results, error records, staged leftovers, logs of old attempts. */
import fs from "node:fs";
import { join } from "node:path";
import { parseName, runOf } from "../../core/names.ts";
import { isExpired } from "../../core/retention.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { sweepAll } from "../../mailbox/sweep.ts";
import { openTrays } from "../../mailbox/trays.ts";
import { defineCommand } from "../command-spec.ts";
import { EXIT } from "../exit-codes.ts";
import { processingPlaces } from "../find-task.ts";
import { existingTree, openMailbox } from "../options.ts";
import { eachName } from "../scan.ts";

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
    const runs = sweepRuns(tree, Math.max(outboxDays, failedDays), isDryRun);
    const counts = {
      results: tasks.results + commands.results,
      errors: tasks.errors + commands.errors,
      staged: tasks.staged + commands.staged,
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

/** Directories of attempts that are older than any record about them may be. */
function sweepRuns(tree: StateTree, days: number, isDryRun: boolean): number {
  const live = new Set(
    processingPlaces(tree).flatMap((place) =>
      place.name === undefined ? [] : [runOf(place.name)],
    ),
  );
  const old: string[] = [];
  eachName(tree.runs, (name) => {
    const path = join(tree.runs, name);
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    // Only what carries the name of an attempt is ours to remove.
    const isRun = stats?.isDirectory() === true && parseRunName(name) && !live.has(name);
    if (isRun && isExpired(Date.now() - stats.mtimeMs, days)) old.push(path);
    return true;
  });
  if (!isDryRun) for (const path of old) fs.rmSync(path, { recursive: true, force: true });
  return old.length;
}

/** `<id>@<submission>.<attempt>.<token>` */
function parseRunName(name: string): boolean {
  const at = name.lastIndexOf(".");
  return at > 0 && parseName(`${name.slice(0, at)}~w-${name.slice(at + 1)}.json`) !== undefined;
}
