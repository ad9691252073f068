/** `clean`: removes files whose retention is over, as a running supervisor does by itself. */
import { openIdReaders } from "../../app/id-readers.ts";
import { DAY_MS } from "../../core/retention.ts";
import { sweepAll } from "../../mailbox/clean/sweep.ts";
import { openTrays, viewTrays } from "../../mailbox/files/trays.ts";
import { awaitedRecords } from "../../mailbox/find/awaited-records.ts";
import { neededResults } from "../../mailbox/find/needed-results.ts";
import { QuestionStore } from "../../questions/question-store.ts";
import { cleanAgents } from "../../supervisor/maintenance/clean-agents.ts";
import { cleanDocuments } from "../../supervisor/maintenance/clean-documents.ts";
import { cleanEvidence } from "../../supervisor/maintenance/clean-evidence.ts";
import { cleanJournals } from "../../supervisor/maintenance/clean-journals.ts";
import { finishPass } from "../../supervisor/maintenance/clean-pass.ts";
import { cleanRuns } from "../../supervisor/maintenance/clean-runs.ts";
import { cleanTalk } from "../../supervisor/maintenance/clean-talk.ts";
import { defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree, openMailbox } from "../shell/options.ts";

export const command = defineCommand({
  usage: "[--dry-run]",
  details: [
    "Keeps files that recovery may still need. Retention is set in config.yaml (retention.outbox_days, failed_days, journal_days, journal_bytes_max, evidence_days). A running supervisor does the same by itself.",
  ],
  options: { "dry-run": { type: "flag", short: "n", help: "count, but remove nothing" } },
  async run(ctx) {
    existingTree(ctx);
    const isDryRun = ctx.options["dry-run"];
    const { tree, trays, loaded } = await openMailbox(ctx, isDryRun);
    const { retention, durability } = loaded.settings;
    const { outbox_days: outboxDays, failed_days: failedDays } = retention;
    const mailboxRules = { outboxDays, failedDays, isDryRun };
    const isDependedOn = neededResults(trays);
    const isAwaited = awaitedRecords(trays, tree);
    const isNeeded = (id: string): boolean => isDependedOn(id) || isAwaited(id);
    const tasks = sweepAll(trays, { ...mailboxRules, isNeeded });
    const open = isDryRun ? viewTrays : openTrays;
    const commands = sweepAll(open(tree.control, { durability }), mailboxRules);
    const rules = { nowMs: tasks.nowMs, isDryRun };
    const documents = cleanDocuments(tree, commands.nowMs, isDryRun);
    const isInPlan = await openIdReaders(tree, undefined).membership();
    const counts = {
      results: tasks.results + commands.results,
      errors: tasks.errors + commands.errors,
      staged: tasks.staged + commands.staged + documents,
      runs: finishPass(cleanRuns(tree, retention, rules)),
      journals: finishPass(cleanJournals(tree, retention, rules)),
      agents:
        finishPass(cleanAgents(tree, retention, rules)) +
        finishPass(cleanTalk(tree, retention, rules)),
      questions: new QuestionStore(tree.dir).forget(rules.nowMs - failedDays * DAY_MS, isDryRun),
      evidence: finishPass(cleanEvidence(tree, retention.evidence_days, isInPlan, rules)),
    };
    if (ctx.json) ctx.out.json({ dry_run: isDryRun, ...counts });
    else {
      const verb = isDryRun ? "would remove" : "removed";
      ctx.out.line(
        `${verb} ${counts.results} results, ${counts.errors} error records, ${counts.staged} staged files, ${counts.runs} runs, ${counts.journals} journals, ${counts.agents} sessions, messages and logs of agents, ${counts.questions} answered questions, evidence of ${counts.evidence} nodes and earlier runs`,
      );
    }
    return EXIT.ok;
  },
});
