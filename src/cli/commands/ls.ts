/** `ls`: lists tasks of one state or of all, up to a limit. Reads only what it shows. */

import { basename } from "node:path";
import { headlineOf } from "../../core/outcome.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { ago, countText, safe, table } from "../../text/render.ts";
import { LISTED_STATES, type ListedState, searchTasks } from "../../view/page-of-tasks.ts";
import { failedBatchRows, stateWord, type TaskRow } from "../../view/task-rows.ts";
import {
  type Context,
  defineCommand,
  ErrUsage,
  numberOption,
  textOption,
} from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree, existsTree, treeOf } from "../shell/options.ts";
import { readPast } from "../shell/past-time.ts";
import { idColumn } from "./status.ts";

const STATES = [...LISTED_STATES, "skipped", "cancelled"] as const;
type ShownState = (typeof STATES)[number];
const SORTS = ["time", "priority", "id", "group", "title"] as const;
type Sort = (typeof SORTS)[number];
const LIMIT = 50;
/** How many rows it reads to choose from. */
const READ_MAX = 10_000;

export const command = defineCommand({
  usage:
    "[--state-is STATE] [--find TEXT] [--group NAME] [--agent NAME] [--since TIME] [--sort WHAT] [-n N]",
  details: [
    "What runs comes first, then the latest. If a tray has more than 10,000 files, only 10,000 of them are looked at, and the latest that the events name.",
    "TIME is a time of the day (22:00: the last time the clock showed it), a duration (12h: so long ago), or a date as 2026-03-01T22:00. It is compared with the time at which a task has ended, or came; those at work always count.",
  ],
  examples: [
    "ls --state-is failed --find econnrefused",
    "ls --group gpu --since 22:00 --sort priority",
  ],
  options: {
    "state-is": {
      type: "text",
      value: "STATE",
      choices: STATES,
      alsoCalled: ["status", "is", "filter", "only"],
      help: "only tasks in this state; failed includes skipped and cancelled tasks, and completed batches with failed lines",
    },
    find: textOption(
      "TEXT",
      "only tasks with this text in their id, title, program, prompt or error; capitals do not matter",
    ),
    group: textOption("NAME", "only tasks of this group"),
    agent: textOption("NAME", "only tasks that name this agent"),
    since: textOption(
      "TIME",
      "only tasks that have ended since then, or came since then and have not ended",
    ),
    sort: {
      type: "text",
      value: "WHAT",
      choices: SORTS,
      help: "time (the default): latest first; priority: highest first; id, group and title: by the alphabet",
    },
    limit: {
      ...numberOption("N", "list at most N tasks (default 50)", { min: 1, max: 100_000 }),
      short: "n",
    },
  },
  async run(ctx) {
    refuseStateAsPlace(ctx);
    const tree = existingTree(ctx);
    const { since, find, group, agent, sort } = ctx.options;
    const wanted = ctx.options["state-is"] as ShownState | undefined;
    const nowMs = Date.now();
    const sinceMs = since === undefined ? undefined : readPast(since, nowMs, "--since");
    const limit = ctx.options.limit ?? LIMIT;
    const isChosen =
      [since, find, group, agent].some((one) => one !== undefined) ||
      (sort !== undefined && sort !== "time") ||
      !(wanted === undefined || isListed(wanted));
    const { rows, hasMore } = await chooseRows(
      tree,
      { wanted, sinceMs, find: find?.toLowerCase(), group, agent, sort: (sort ?? "time") as Sort },
      limit,
      isChosen ? READ_MAX : limit,
    );
    if (ctx.json) ctx.out.json({ tasks: rows, has_more: hasMore });
    else if (rows.length === 0)
      ctx.out.note(
        wanted !== undefined
          ? `there are no tasks that are ${wanted}`
          : isChosen
            ? "there are no such tasks"
            : "there are no tasks",
      );
    else print(ctx, rows, hasMore);
    return EXIT.ok;
  },
});

function isListed(state: ShownState): state is ListedState {
  return LISTED_STATES.some((one) => one === state);
}

interface Wanted {
  wanted: ShownState | undefined;
  sinceMs: number | undefined;
  find: string | undefined;
  group: string | undefined;
  agent: string | undefined;
  sort: Sort;
}

/** @param readMax reads so many rows of each state that may be wanted, and chooses from them */
async function chooseRows(
  tree: StateTree,
  { wanted, sinceMs = Number.NEGATIVE_INFINITY, find, group, agent, sort }: Wanted,
  limit: number,
  readMax: number,
): Promise<{ rows: TaskRow[]; hasMore: boolean }> {
  const states =
    wanted === undefined ? LISTED_STATES : isListed(wanted) ? [wanted] : (["failed"] as const);
  const isWanted = (row: TaskRow, words: () => string): boolean =>
    (wanted === undefined || isListed(wanted) || row.state === wanted) &&
    (group === undefined || row.group === group) &&
    (agent === undefined || row.agent === agent) &&
    (row.time_ms === null || row.time_ms >= sinceMs) &&
    (find === undefined || words().includes(find));
  const { rows, isAll } = await searchTasks(tree, { states, readMax: readMax + 1, isWanted });
  if (wanted === "failed")
    rows.push(...failedBatchRows(tree).filter((row) => isWanted(row, () => row.id.toLowerCase())));
  rows.sort(ORDERS[sort]);
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit || !isAll };
}

const byText =
  (of: (row: TaskRow) => string) =>
  (a: TaskRow, b: TaskRow): number =>
    of(a) < of(b) ? -1 : Number(of(a) > of(b));

/** A task without a time is running now, so it counts as the latest. */
const ORDERS: Readonly<Record<Sort, (a: TaskRow, b: TaskRow) => number>> = {
  time: (a, b) =>
    compareNumbers(b.time_ms ?? Number.POSITIVE_INFINITY, a.time_ms ?? Number.POSITIVE_INFINITY),
  priority: (a, b) => compareNumbers(b.priority ?? 0, a.priority ?? 0),
  id: byText(({ id }) => id),
  group: byText(({ group }) => group ?? ""),
  title: byText(({ title }) => title),
};

function compareNumbers(a: number, b: number): number {
  return a < b ? -1 : Number(a > b);
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
    safe(stateWord(row)),
    row.attempt === null ? "-" : String(row.attempt),
    row.time_ms === null ? "-" : ago(row.time_ms, nowMs),
    safe(row.error === null ? row.title : headlineOf(row.error)),
  ]);
  for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
  if (hasMore)
    ctx.out.note(`there are more than these ${countText(rows.length)}; see --limit and --state-is`);
}

/** @throws ErrUsage for `ls --state failed`: --state names the tree, and no tree has this name */
function refuseStateAsPlace(ctx: Pick<Context, "stateDir" | "env" | "cwd">): void {
  const word = basename(ctx.stateDir);
  if (!STATES.some((state) => state === word) || existsTree(treeOf(ctx))) return;
  throw new ErrUsage(
    `--state names a directory, and there is no ${JSON.stringify(word)} here`,
    `did you mean --state-is ${word}?`,
  );
}
