/** `report`: tells in the morning what happened in a period. Reads journals and other files of the tree; changes nothing. */
import { type CostRecord, readCostRecord } from "../../agents/cost-records.ts";
import { CostSums } from "../../agents/cost-sums.ts";
import { openIdReaders } from "../../app/id-readers.ts";
import { type Context, defineCommand, ErrUsage, textOption } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../cli/shell/options.ts";
import { readPast } from "../../cli/shell/past-time.ts";
import { costsOf, type StateTree } from "../../core/state-tree.ts";
import { filesOfDays } from "../../journal/daily.ts";
import { readJournal } from "../../journal/read.ts";
import { rotatedOf } from "../../journal/rotated.ts";
import type { Failure } from "../../view/causes.ts";
import { readRecord } from "../../view/find-task.ts";
import { isFailedNode } from "../../view/id-reader.ts";
import { readLandingIds, readWork } from "../../view/landing.ts";
import { takeSnapshot } from "../../view/snapshot-reader.ts";
import { titleOfRecord } from "../../view/task-rows.ts";
import { DayCosts } from "../../view/timeline/day-costs.ts";
import { asHtml, asMarkdown, asText, FORMATS, type Format } from "./formats.ts";
import { pageOf } from "./page.ts";
import { type EndedFailure, Period } from "./period.ts";
import { makeReport, type Report } from "./report.ts";
import type { Drawn } from "./timeline-html.ts";

const RECORD_BYTES_MAX = 1024 * 1024;
const DEFAULT_MS = 12 * 60 * 60 * 1000;
/** Alerts that are left out, because the report has sections about them. */
const TOLD_ELSEWHERE: ReadonlySet<unknown> = new Set([
  "task_failed",
  "needs_human",
  "question",
  "budget",
  "quota",
]);

export const command = defineCommand({
  usage: "[--since TIME] [--until TIME] [--format text|md|html]",
  details: [
    "TIME is a time of the day (22:00: the last time the clock showed it), a duration (12h: so long ago), or a date as 2026-03-01T22:00. Without --since: the last 12 hours.",
    "The HTML file has a timeline, too: who ran when, how each run ended, what waited, and what it cost.",
    "Completed leaves out landings, and nodes that asked a question: they stand among the work and the questions.",
    "What happened in the period comes from the journals of the tree; they are kept for retention.journal_days. What waits and what can be done next is the state of now.",
  ],
  examples: [
    "report --since 22:00",
    "report --since 22:00 --until 07:00 --format html > night.html",
    "report --json | jq .failures",
  ],
  options: {
    since: textOption("TIME", "from when (default: 12h)"),
    until: textOption("TIME", "up to when (default: now)"),
    format: {
      type: "text",
      value: "FORMAT",
      choices: FORMATS,
      help: "text (default), Markdown, or one HTML file",
    },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const nowMs = Date.now();
    const { since, until, format = "text" } = ctx.options;
    const toMs = until === undefined ? nowMs : readPast(until, nowMs, "--until");
    const fromMs = since === undefined ? toMs - DEFAULT_MS : readPast(since, nowMs, "--since");
    if (fromMs >= toMs)
      throw new ErrUsage("--since is not before --until", "name an earlier time, as 22:00 or 12h");
    const isDrawn = format === "html" && !ctx.json;
    const { report, drawn } = await readReport(ctx, tree, { fromMs, toMs, isDrawn });
    if (ctx.json) ctx.out.json(report);
    else await ctx.out.raw(`${print(report, drawn, format as Format, ctx).join("\n")}\n`);
    return EXIT.ok;
  },
});

async function readReport(
  ctx: Context,
  tree: StateTree,
  { fromMs, toMs, isDrawn }: { fromMs: number; toMs: number; isDrawn: boolean },
): Promise<{ report: Report; drawn: Drawn | undefined }> {
  const { settings } = await openSettings(ctx);
  const counts = { records: 0, bad: 0 };
  const work = await readWork(tree);
  const period = new Period(fromMs, toMs, readLandingIds(tree));
  for (const file of [...rotatedOf(tree.events), tree.events])
    for await (const line of readJournal(file, counts)) period.add(line);
  const sums = new CostSums("agent", settings.prices);
  const isInPeriod = ({ at }: CostRecord): boolean => at * 1000 >= fromMs && at * 1000 < toMs;
  for (const file of filesOfDays(costsOf(tree)))
    for await (const line of readJournal(file, counts)) {
      const record = readCostRecord(line);
      if (record !== undefined && isInPeriod(record)) sums.add(record);
    }
  const nodes = openIdReaders(tree, settings.agents);
  await nodes.refresh();
  const report = makeReport({
    fromMs,
    toMs,
    period,
    alerts: await readAlerts(tree, fromMs, toMs, counts),
    costs: { rows: sums.rows(), total: sums.total },
    work,
    now: takeSnapshot(tree, Date.now()),
    badLines: counts.bad,
    wordsOf: (failure) => wordsOf(tree, failure),
    titleOf: (id) => titleOfRecord(readRecord(tree, id)),
    isFailedNode: (id) => isFailedNode(nodes, id),
  });
  if (!isDrawn) return { report, drawn: undefined };
  const costs = new DayCosts(tree, settings.prices);
  const points = costs.look(fromMs, toMs);
  costs.close();
  const { budgets } = settings;
  const { timeline } = period;
  const drawn = { timeline, costs: points, budgets, fromMs, toMs, nowMs: Date.now() };
  return { report, drawn };
}

function wordsOf(tree: StateTree, { id, lease }: EndedFailure): string | undefined {
  const { error, lease: of } = readRecord(tree, id, RECORD_BYTES_MAX) ?? {};
  // A lease of the record ends with its owner. After a retry the record is about another run.
  const isOfRun = typeof of === "string" && lease !== "" && of.startsWith(`${lease}.`);
  return isOfRun && typeof error === "string" ? error : undefined;
}

async function readAlerts(
  tree: StateTree,
  fromMs: number,
  toMs: number,
  counts: { records: number; bad: number },
): Promise<Failure[]> {
  const alerts: Failure[] = [];
  for (const file of [...rotatedOf(tree.alerts), tree.alerts])
    for await (const { t, alert, message } of readJournal(file, counts)) {
      if (typeof t !== "number" || t < fromMs || t >= toMs || TOLD_ELSEWHERE.has(alert)) continue;
      alerts.push({ id: "", kind: String(alert), error: String(message), atMs: t });
    }
  return alerts;
}

function print(
  report: Report,
  drawn: Drawn | undefined,
  format: Format,
  { columns, colour }: Context,
): string[] {
  const page = pageOf(report);
  if (format === "md") return asMarkdown(page);
  return format === "html" ? asHtml(page, drawn) : asText(page, columns, colour);
}
