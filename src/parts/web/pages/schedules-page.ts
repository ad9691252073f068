/** The page of schedules: when each fires next, what it has fired, and how that ended. It shows what `schedule ls` and `show` print. */
import type { StateTree } from "../../../core/state-tree.ts";
import { countText } from "../../../text/render.ts";
import { pageOfTasks } from "../../../view/page-of-tasks.ts";
import type { TaskRow } from "../../../view/task-rows.ts";
import {
  type Block,
  type Cell,
  linkToTask,
  type Page,
  pathWith,
  say,
  shown,
  table,
  timeOf,
} from "../page.ts";
import type { VerbReader } from "../verb-reader.ts";
import { stateCell } from "./tasks-page.ts";

const AGAIN_MS = 1000;
const LAST_MAX = 30;
/** So many files of tasks with the name of the schedule are looked at for its last runs. */
const RUNS_LOOKED_AT = 200;

interface Told {
  name: string;
  when: string;
  paused: boolean;
  next_ms: number | null;
  last_ms: number | null;
  last_id: string | null;
  fired: number;
  skipped: number;
  error: string | null;
  warnings: string[];
}

/** @param query `name`: one schedule with its next times and its last runs */
export async function schedulesPage(
  tree: StateTree,
  verbs: VerbReader,
  query: URLSearchParams,
): Promise<Page> {
  const name = query.get("name") ?? "";
  const found = await verbs.read({ verb: "schedule", subcommand: "ls", againMs: AGAIN_MS });
  const all = (found?.["schedules"] ?? []) as Told[];
  const one = all.find((schedule) => schedule.name === name);
  return {
    title: one === undefined ? "Schedules" : `Schedule ${shown(name)}`,
    command: one === undefined ? "mailchute schedule ls" : `mailchute schedule show ${shown(name)}`,
    blocks: [
      table(
        "Schedules",
        ["schedule", "when", "next", "last", "fired", "left out", "state"],
        (one === undefined ? all : [one]).map(cellsOf),
        "no schedule: see docs/schedules.md",
      ),
      ...(one === undefined ? [] : await moreOf(tree, verbs, one)),
    ],
  };
}

function cellsOf(one: Told): Cell[] {
  const { name, when, paused, next_ms: nextMs, last_ms: lastMs, error, warnings } = one;
  const state = error ?? (paused ? "paused" : warnings.join("; "));
  return [
    { text: shown(name), to: pathWith("/schedules", { name }) },
    shown(when),
    paused ? "–" : timeOf(nextMs),
    timeOf(lastMs),
    countText(one.fired),
    countText(one.skipped),
    shown(state === "" ? "on" : state),
  ];
}

async function moreOf(tree: StateTree, verbs: VerbReader, { name, error }: Told): Promise<Block[]> {
  const blocks: Block[] = [];
  if (error === null) {
    const asked = { verb: "schedule", subcommand: "show", positionals: [name], againMs: AGAIN_MS };
    const next = ((await verbs.read(asked))?.["next"] ?? []) as number[];
    const times = next.map((ms) => [timeOf(ms)]);
    blocks.push(table("Its next times", ["planned for"], times, "it has no more times"));
  }
  const runs: TaskRow[] = [];
  for (const state of ["running", "held", "ready", "waiting", "done", "failed"] as const) {
    const wanted = { state, limit: RUNS_LOOKED_AT, idPrefix: `${name}.`, isLatestFirst: true };
    runs.push(...(await pageOfTasks(tree, wanted)).rows);
  }
  // The id of a task has the time for which it was planned.
  runs.sort((a, b) => (a.id < b.id ? 1 : -1));
  const rows = runs
    .slice(0, LAST_MAX)
    .map((row) => [
      linkToTask(row.id, row.title),
      stateCell(row),
      timeOf(row.time_ms),
      shown(row.error ?? ""),
    ]);
  const columns = ["task", "state", "ended", "error"];
  blocks.push(table("Its last tasks", columns, rows, "it has fired no task that is kept"));
  if (runs.length > LAST_MAX) blocks.push(say(`the latest ${LAST_MAX} of its tasks are shown`));
  return blocks;
}
