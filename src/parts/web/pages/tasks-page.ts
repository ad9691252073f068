/** The page of tasks in one state: some of them, and a link to the next ones. Reads only what it shows. */
import { headlineOf } from "../../../core/outcome.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { LISTED_STATES, type ListedState, pageOfTasks } from "../../../view/page-of-tasks.ts";
import { stateWord, type TaskRow } from "../../../view/task-rows.ts";
import { actsOnList } from "../buttons.ts";
import {
  type Block,
  type Cell,
  linkToTask,
  type Page,
  pathWith,
  say,
  shown,
  timeOf,
} from "../page.ts";

const ROWS = 100;
const TEXT_CHARS_MAX = 300;

/** @param query `state` (default waiting), `q` (a prefix of ids), `after` (from the link to the next page) */
export async function tasksPage(tree: StateTree, query: URLSearchParams): Promise<Page> {
  const state = LISTED_STATES.find((one) => one === query.get("state")) ?? "waiting";
  const idPrefix = query.get("q") ?? "";
  const after = query.get("after") ?? undefined;
  const wanted = { state, limit: ROWS, idPrefix, after };
  const { rows, next, isAll, count } = await pageOfTasks(tree, wanted);
  const blocks: Block[] = [
    {
      kind: "links",
      label: "states",
      links: LISTED_STATES.map((one) => ({
        text: one,
        to: pathWith("/tasks", { state: one, q: idPrefix }),
        is_here: one === state,
      })),
    },
    {
      kind: "find",
      label: "id begins with",
      to: pathWith("/tasks", { state }),
      name: "q",
      value: idPrefix,
    },
    ...(rows.length === 0
      ? []
      : [
          {
            kind: "acts",
            label: "all of these",
            acts: actsOnList({ state, q: idPrefix }, { count, is_exact: isAll }),
          } as const,
        ]),
    {
      kind: "table",
      title: `Tasks that are ${state}`,
      columns: ["task", "state", "run", timeName(state), "what"],
      rows: rows.map(cellsOf),
      none:
        after === undefined
          ? `no task is ${state}${idPrefix === "" ? "" : ", with such an id"}`
          : "no more",
    },
  ];
  if (!isAll) blocks.push(say("There are more tasks than were looked at: some may be on no page."));
  if (next !== undefined)
    blocks.push({
      kind: "links",
      label: "pages",
      links: [
        {
          text: "next page",
          to: pathWith("/tasks", { state, q: idPrefix, after: next }),
          is_here: false,
        },
      ],
    });
  return {
    title: `Tasks: ${state}`,
    command: `mailchute ls --state-is ${state}`,
    at_ms: Date.now(),
    health: null,
    blocks,
  };
}

function timeName(state: ListedState): string {
  if (state === "waiting") return "dropped or due";
  return state === "done" || state === "failed" ? "ended" : "due";
}

function cellsOf(row: TaskRow): Cell[] {
  const text = row.error === null ? row.title : headlineOf(row.error);
  return [
    linkToTask(row.id),
    shown(stateWord(row)),
    row.attempt === null ? "" : String(row.attempt),
    row.time_ms === null ? "" : timeOf(row.time_ms),
    shown(text.slice(0, TEXT_CHARS_MAX)),
  ];
}
