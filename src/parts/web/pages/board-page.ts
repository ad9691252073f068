/** The board: the tasks of a pool in columns, from waiting to done. */
import { headlineOf } from "../../../core/outcome.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { countText, duration } from "../../../text/render.ts";
import { changeText, type Work } from "../../../view/landing.ts";
import type { Overview } from "../../../view/overview.ts";
import { type ListedState, pageOfTasks } from "../../../view/page-of-tasks.ts";
import type { TaskRow } from "../../../view/task-rows.ts";
import { type Cell, linkToTask, linkToWork, type Page, shown, table, timeOf } from "../page.ts";
import { waitsForPerson } from "./overview-page.ts";

/** Of each column. Its title has the number of all. */
const CARDS = 20;
const TEXT_CHARS_MAX = 80;

/** @param work the work that tasks have left */
export async function boardPage(
  tree: StateTree,
  overview: Overview,
  work: readonly Work[],
): Promise<Page> {
  const { counts, running } = overview;
  const { waiting, ready, delayed, held, done, failed } = counts;
  const rowsOf = async (state: ListedState): Promise<TaskRow[]> =>
    (await pageOfTasks(tree, { state, limit: CARDS, idPrefix: "" })).rows;
  const accepted = [...(await rowsOf("held")), ...(await rowsOf("ready"))];
  const landing = work.filter(({ state }) => state === "open");
  const person = waitsForPerson(overview, work);
  const waits = [...accepted, ...(await rowsOf("waiting"))];
  const columns: [title: string, count: number, cards: Cell[][]][] = [
    ["Waiting", waiting.count + ready + delayed + held, waits.map(cardOf)],
    [
      "Running",
      counts.running,
      running.map(({ id, title, agent, age_ms: ageMs }) => [
        linkToTask(id, title),
        shown(agent ?? "exec"),
        ageMs === null ? "" : duration(ageMs),
      ]),
    ],
    ["Needs you", person.length, person.map(([state = "", what = ""]) => [what, state])],
    ["Landing", landing.length, landing.map((one) => [linkToWork(one), changeText(one)])],
    ["Done", done.count, (await rowsOf("done")).map(cardOf)],
    ["Failed", failed.count, (await rowsOf("failed")).map(cardOf)],
  ];
  const blocks = columns.map(([title, count, cards]) => {
    const rows = cards.slice(0, CARDS);
    return table(`${title} ${countText(count)}`, ["task", "what", "when"], rows, "none");
  });
  return {
    title: "Board",
    command: "mailchute top",
    blocks: [{ kind: "grid", name: "board", blocks }],
  };
}

function cardOf({ id, title, agent, time_ms: timeMs, error }: TaskRow): Cell[] {
  const what = error === null ? (agent ?? "") : headlineOf(error);
  return [linkToTask(id, title), shown(what.slice(0, TEXT_CHARS_MAX)), timeOf(timeMs)];
}
