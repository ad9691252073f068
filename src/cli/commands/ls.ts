/** `ls`: lists tasks of one state or of all, up to a limit. Reads only what it shows. */

import { basename } from "node:path";
import { headlineOf } from "../../core/outcome.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { ago, countText, safe, table } from "../../text/render.ts";
import { LISTED_STATES, type ListedState, pageOfTasks } from "../../view/page-of-tasks.ts";
import { failedBatchRows, type TaskRow } from "../../view/task-rows.ts";
import { type Context, defineCommand, ErrUsage, numberOption } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree, existsTree, treeOf } from "../shell/options.ts";
import { idColumn } from "./status.ts";

export const command = defineCommand({
  usage: "[--state-is STATE] [--limit N]",
  details: [
    "Waiting tasks are listed oldest first, settled ones latest first. If a tray has more than 10,000 files, only 10,000 of them are looked at, and the latest that the events name.",
  ],
  options: {
    "state-is": {
      type: "text",
      value: "STATE",
      choices: LISTED_STATES,
      alsoCalled: ["status", "is", "filter", "only"],
      help: "only tasks in this state; failed includes completed batches with failed lines",
    },
    limit: numberOption("N", "list at most N tasks (default 50)", { min: 1, max: 100_000 }),
  },
  async run(ctx) {
    refuseStateAsPlace(ctx);
    const tree = existingTree(ctx);
    const wanted = ctx.options["state-is"] as ListedState | undefined;
    const { rows, hasMore } = await chooseRows(tree, wanted, ctx.options.limit ?? 50);
    if (ctx.json) ctx.out.json({ tasks: rows, has_more: hasMore });
    else if (rows.length === 0)
      ctx.out.note(
        wanted === undefined ? "there are no tasks" : `there are no tasks that are ${wanted}`,
      );
    else print(ctx, rows, hasMore);
    return EXIT.ok;
  },
});

async function chooseRows(
  tree: StateTree,
  wanted: ListedState | undefined,
  limit: number,
): Promise<{ rows: TaskRow[]; hasMore: boolean }> {
  const rows: TaskRow[] = [];
  let isAll = true;
  for (const state of ["running", "ready", "held", "waiting", "failed", "done"] as const) {
    if (wanted !== undefined && wanted !== state) continue;
    const page = await pageOfTasks(tree, { state, limit: limit - rows.length + 1 });
    rows.push(...page.rows);
    if (wanted === "failed") rows.push(...failedBatchRows(tree));
    isAll &&= page.isAll;
    if (rows.length > limit) break;
  }
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit || !isAll };
}

function print(ctx: Context, rows: readonly TaskRow[], hasMore: boolean): void {
  const nowMs = Date.now();
  const columns = [
    idColumn(ctx),
    { title: "STATE" },
    { title: "RUN", align: "right" as const },
    { title: "WHEN" },
    { title: "WHAT", min: 10 },
  ];
  const cells = rows.map((row) => [
    safe(row.id),
    stateText(row),
    row.attempt === null ? "" : String(row.attempt),
    row.time_ms === null ? "" : ago(row.time_ms, nowMs),
    safe(row.error === null ? row.title : headlineOf(row.error)),
  ]);
  for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
  if (hasMore)
    ctx.out.note(`there are more than these ${countText(rows.length)}; see --limit and --state-is`);
}

function stateText({ state, failed_lines: failedLines, gate }: TaskRow): string {
  if (gate !== null) return `${state}: ${safe(gate)}`;
  return failedLines > 0 ? `${state}, not all` : state;
}

/** @throws ErrUsage for `ls --state failed`: --state names the tree, and no tree has this name */
function refuseStateAsPlace(ctx: Pick<Context, "stateDir" | "env" | "cwd">): void {
  const word = basename(ctx.stateDir);
  if (!LISTED_STATES.some((state) => state === word) || existsTree(treeOf(ctx))) return;
  throw new ErrUsage(
    `--state names a directory, and there is no ${JSON.stringify(word)} here`,
    `did you mean --state-is ${word}?`,
  );
}
