/** The page of tasks in one state: some of them, and a link to the next ones; or those of the latest that a person looks for. */
import { LANDING_GROUP } from "../../../core/landing.ts";
import { headlineOf } from "../../../core/outcome.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { countText } from "../../../text/render.ts";
import { shellWord } from "../../../text/shell-word.ts";
import { causeOf } from "../../../view/causes.ts";
import type { Overview } from "../../../view/overview.ts";
import {
  LISTED_STATES,
  type ListedState,
  pageOfTasks,
  searchTasks,
} from "../../../view/page-of-tasks.ts";
import { stateWord, type TaskRow } from "../../../view/task-rows.ts";
import { actsOnList, actsOnThese } from "../buttons.ts";
import {
  actsBlock,
  type Block,
  type Cell,
  linksOf,
  linkToTask,
  lookOf,
  type Page,
  pathWith,
  say,
  shown,
  table,
  timeOf,
} from "../page.ts";

const ROWS = 100;
const TEXT_CHARS_MAX = 300;
/** A search looks at so many of the latest tasks of a state: 0.1 s. */
const LOOKED_AT_MAX = 2000;
const HOUR_MS = 60 * 60 * 1000;

const STATES = [...LISTED_STATES, "cancelled", "skipped", "all"] as const;
type ShownState = (typeof STATES)[number];
const SINCE: Readonly<Record<string, number>> = { "1h": 1, "12h": 12, "24h": 24, "7d": 168 };
const SORTS: Readonly<Record<string, (a: TaskRow, b: TaskRow) => number>> = {
  latest: (a, b) => (b.time_ms ?? Infinity) - (a.time_ms ?? Infinity) || 0,
  oldest: (a, b) => (a.time_ms ?? Infinity) - (b.time_ms ?? Infinity) || 0,
  priority: (a, b) => (b.priority ?? 0) - (a.priority ?? 0),
  id: (a, b) => (a.id < b.id ? -1 : 1),
};

const ORDER_TEXTS: Readonly<Record<string, string>> = {
  latest: "latest first",
  oldest: "oldest first",
  priority: "highest priority first",
  id: "by id",
};

/** What the address asks for. Empty texts ask for nothing. */
interface Asked {
  state: ShownState;
  /** A prefix of ids. */
  q: string;
  find: string;
  group: string;
  agent: string;
  cause: string;
  since: string;
  sort: string;
}

/**
 * @param query `state` (default waiting), `q` (a prefix of ids), `after` (from the link to the next page); with one of `find` (a text),
 * `group`, `agent`, `cause`, `since`, `sort` it searches @param counts for the tabs
 */
export async function tasksPage(
  tree: StateTree,
  query: URLSearchParams,
  counts: Overview["counts"],
): Promise<Page> {
  const asked = readAsked(query);
  const { state, q, ...filters } = asked;
  const isSearch = !isListed(state) || Object.values(filters).some((text) => text !== "");
  const blocks = isSearch
    ? await found(tree, asked)
    : await listed(tree, { state, q }, query.get("after") ?? undefined);
  return {
    title: `Tasks: ${state}`,
    command: commandOf(asked),
    blocks: [tabsOf(asked, counts), ...fieldsOf(asked, isSearch), ...blocks],
  };
}

function readAsked(query: URLSearchParams): Asked {
  const textOf = (name: string): string => query.get(name) ?? "";
  return {
    state: STATES.find((one) => one === query.get("state")) ?? "waiting",
    q: textOf("q"),
    find: textOf("find"),
    group: textOf("group"),
    agent: textOf("agent"),
    cause: textOf("cause"),
    since: Object.hasOwn(SINCE, textOf("since")) ? textOf("since") : "",
    sort: Object.hasOwn(SORTS, textOf("sort")) ? textOf("sort") : "",
  };
}

function isListed(state: ShownState): state is ListedState {
  return LISTED_STATES.some((one) => one === state);
}

const toAsked = (asked: Partial<Asked>): string => pathWith("/tasks", { ...asked });

function commandOf({ state, find, group, agent, since, sort }: Asked): string {
  const options = Object.entries({
    "state-is": state === "all" ? "" : state,
    find,
    group,
    agent,
    since: since === "7d" ? "168h" : since,
    sort: sort === "priority" || sort === "id" ? sort : "",
  });
  const given = options.flatMap(([name, value]) =>
    value === "" ? [] : [` --${name} ${shown(shellWord(value))}`],
  );
  return `mailchute ls${given.join("")}`;
}

function tabsOf(asked: Asked, counts: Overview["counts"]): Block {
  const { waiting, ready, delayed, held, running, settling, done, failed, skipped } = counts;
  const numbers: Partial<Record<ShownState, number>> = {
    waiting: waiting.count,
    ready: ready + delayed,
    held,
    running: running + settling,
    done: done.count,
    failed: failed.count,
    skipped: skipped.count,
  };
  const textOf = (state: ShownState): string => {
    const count = numbers[state];
    return count === undefined ? state : `${state} ${countText(count)}`;
  };
  return linksOf(
    "states",
    STATES.map((state) => [textOf(state), toAsked({ ...asked, state }), state === asked.state]),
  );
}

function fieldsOf(asked: Asked, isSearch: boolean): Block[] {
  const { find, since, sort, group, agent, cause } = asked;
  const order = sort === "" ? "latest" : sort;
  const times = ["", ...Object.keys(SINCE)].map((one) => {
    const text = one === "" ? "any time" : `last ${one}`;
    return [text, toAsked({ ...asked, since: one }), one === since] as const;
  });
  const orders = Object.entries(ORDER_TEXTS).map(
    ([one, text]) => [text, toAsked({ ...asked, sort: one }), one === order] as const,
  );
  const chosen = Object.entries({ group, agent, cause }).filter(([, value]) => value !== "");
  const filters = chosen.map(
    ([name, value]) => [`${name}: ${shown(value)} ✕`, toAsked({ ...asked, [name]: "" })] as const,
  );
  return [
    {
      kind: "find",
      label: "text in id, title, prompt or error",
      to: toAsked({ ...asked, find: "" }),
      name: "find",
      value: find,
    },
    linksOf("time", times),
    ...(isSearch ? [linksOf("order", orders)] : []),
    ...(chosen.length === 0 ? [] : [linksOf("filters", filters)]),
  ];
}

async function listed(
  tree: StateTree,
  { state, q }: { state: ListedState; q: string },
  after: string | undefined,
): Promise<Block[]> {
  const wanted = { state, limit: ROWS, idPrefix: q, after };
  const { rows, next, isAll, count } = await pageOfTasks(tree, wanted);
  const none = `no task is ${state}${q === "" ? "" : ", with such an id"}`;
  const blocks: Block[] = [];
  // On one page a person finds it by looking.
  if (q !== "" || count > ROWS)
    blocks.push({
      kind: "find",
      label: "id begins with",
      to: pathWith("/tasks", { state }),
      name: "q",
      value: q,
    });
  if (rows.length > 0) {
    const acts = actsOnList({ state, q }, { count, is_exact: isAll });
    blocks.push(...actsBlock("all of these", acts));
  }
  blocks.push(tableOf(state, rows, after === undefined ? none : "no more"));
  if (!isAll) blocks.push(say("There are more tasks than were looked at: some may be on no page."));
  const to = pathWith("/tasks", { state, q, after: next });
  if (next !== undefined) blocks.push(linksOf("pages", [["next page", to]]));
  return blocks;
}

async function found(tree: StateTree, asked: Asked): Promise<Block[]> {
  const { state, q, group, agent, cause, since, sort } = asked;
  const find = asked.find.toLowerCase();
  const sinceMs = since === "" ? 0 : Date.now() - (SINCE[since] ?? 0) * HOUR_MS;
  const states =
    state === "all" ? LISTED_STATES : isListed(state) ? [state] : (["failed"] as const);
  const { rows, isAll } = await searchTasks(tree, {
    states,
    readMax: LOOKED_AT_MAX,
    isWanted: (row, words) =>
      (state === "all" || isListed(state) || row.state === state) &&
      row.id.startsWith(q) &&
      (group === "" || row.group === group) &&
      (agent === "" || row.agent === agent) &&
      (row.time_ms === null || row.time_ms >= sinceMs) &&
      (cause === "" || (row.error !== null && causeOf(row.error, row.id) === cause)) &&
      (find === "" || words().includes(find)),
  });
  const shownRows = rows.sort(SORTS[sort] ?? SORTS["latest"]).slice(0, ROWS);
  const looked = isAll
    ? ""
    : `; only the latest ${countText(LOOKED_AT_MAX)} of each state were looked at`;
  const more = rows.length > ROWS ? `, ${ROWS} of them here` : "";
  return [
    ...actsBlock("all of these", actsOnThese(shownRows)),
    say(`${countText(rows.length)} found${more}${looked}`),
    tableOf(state, shownRows, "no such task was found"),
  ];
}

function tableOf(state: ShownState, rows: readonly TaskRow[], none: string): Block {
  const title = state === "all" ? "Tasks" : `Tasks that are ${state}`;
  const columns = ["task", "state", "run", timeName(state), "group", "agent", "error"];
  return table(title, columns, rows.map(cellsOf), none);
}

function timeName(state: ShownState): string {
  if (state === "waiting") return "dropped or due";
  if (state === "all") return "time";
  return state === "ready" || state === "held" || state === "running" ? "due" : "ended";
}

export function stateCell(row: TaskRow): Cell {
  return { look: lookOf(row.state), word: shown(stateWord(row)) };
}

function cellsOf(row: TaskRow): Cell[] {
  const text = row.error === null ? "" : headlineOf(row.error);
  const filter = (name: "group" | "agent"): Cell => {
    const value = row[name];
    // The group of landings is a name of ours.
    return value === null || (name === "group" && LANDING_GROUP.test(value))
      ? ""
      : { text: shown(value), to: toAsked({ state: "all", [name]: value }) };
  };
  return [
    linkToTask(row.id, row.title),
    stateCell(row),
    row.attempt === null ? "" : String(row.attempt),
    row.time_ms === null ? "" : timeOf(row.time_ms),
    filter("group"),
    filter("agent"),
    shown(text.slice(0, TEXT_CHARS_MAX)),
  ];
}
