/** `cost`: tokens and money that coding agents used, by task, plan, group, agent, account, model or day. Changes nothing. */
import { RunningCosts } from "../../agents/budget/running-costs.ts";
import { type CostRecord, readCostRecord } from "../../agents/cost-records.ts";
import {
  COST_KEYS,
  type CostKey,
  type CostSum,
  CostSums,
  usdText,
} from "../../agents/cost-sums.ts";
import { defineCommand, durationOption } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../cli/shell/options.ts";
import { costsOf } from "../../core/state-tree.ts";
import { filesOfDays } from "../../journal/daily.ts";
import { readJournal } from "../../journal/read.ts";
import { counted, safe, table } from "../../text/render.ts";

export const command = defineCommand({
  usage: "[--by task|plan|group|agent|account|model|day] [--since TIME] [--task ID]",
  details: [
    "Reads analytics/costs.DAY.jsonl of the state tree: one line for each run, also of runs that failed. They are kept for retention.journal_days. Runs in progress count with what they have used so far. The numbers are those that the programs report. Where a program gives no price, the setting `prices` does.",
  ],
  examples: ["cost --by day", "cost --since 12h --json | jq .total.cost_usd_micro"],
  options: {
    by: {
      type: "text",
      value: "KEY",
      choices: COST_KEYS,
      help: "one row for each (default: agent)",
    },
    since: durationOption("TIME", "only runs that ended in the last so much time, as 12h"),
    task: { type: "text", value: "ID", many: true, help: "only runs of this task" },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const { settings } = await openSettings(ctx);
    const { by = "agent", since, task } = ctx.options;
    const fromSeconds = since === undefined ? 0 : (Date.now() - since) / 1000;
    const sums = new CostSums(by as CostKey, settings.prices);
    const counts = { records: 0, bad: 0 };
    const add = (record: CostRecord | undefined): void => {
      if (record === undefined || record.at < fromSeconds) return;
      if (task.length === 0 || task.includes(record.task_id)) sums.add(record);
    };
    // Running tasks are listed before the journal is read. A run that ends in between is counted by its journal line, which is
    // written before the file of the run is removed.
    const running = new RunningCosts(tree.dir).all();
    for (const file of filesOfDays(costsOf(tree)))
      for await (const line of readJournal(file, counts)) add(readCostRecord(line));
    for (const record of running) add(readCostRecord({ ...record }));
    const rows = sums.rows();
    if (ctx.json) ctx.out.json({ by, rows, total: sums.total });
    else if (rows.length === 0) ctx.out.line("no run of a coding agent is booked");
    else print(ctx, by, rows, sums.total);
    return EXIT.ok;
  },
});

function print(
  ctx: Parameters<Parameters<typeof defineCommand>[0]["run"]>[0],
  by: string,
  rows: readonly CostSum[],
  total: CostSum,
): void {
  const right = { align: "right" as const };
  const columns = [
    { title: by.toUpperCase(), min: 12 },
    { title: "RUNS", ...right },
    { title: "NOT DONE", ...right },
    { title: "INPUT", ...right },
    { title: "CACHED", ...right },
    { title: "OUTPUT", ...right },
    { title: "USD", ...right },
  ];
  const cells = (rows.length > 1 ? [...rows, total] : rows).map((sum) => [
    safe(sum.key),
    String(sum.runs),
    String(sum.runs_not_completed),
    String(sum.input_tokens),
    String(sum.cached_input_tokens),
    String(sum.output_tokens),
    usdText(sum),
  ]);
  for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
  if (total.runs_without_usage > 0)
    ctx.out.note(
      `without usage: ${counted(total.runs_without_usage, "run")}, whose program told none`,
    );
  if (total.runs_without_price > 0)
    ctx.out.note(
      `without a price: ${counted(total.runs_without_price, "run")}; set \`prices\` for their model in config.yaml`,
    );
}
