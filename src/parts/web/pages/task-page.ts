/** The page of one task: its state, why it has not ended, its runs, and a part of one of its files. Only reads. */
import { join } from "node:path";
import type { CostSum } from "../../../agents/cost-sums.ts";
import { sessionOfRun } from "../../../agents/stream/session-file.ts";
import type { AgentLines } from "../../../cli/text/agent-lines.ts";
import { foldId, isId, runOfLease } from "../../../core/names.ts";
import { headlineOf } from "../../../core/outcome.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import { landingFileOf, type StateTree } from "../../../core/state-tree.ts";
import { statOf } from "../../../host/regular-file.ts";
import { countText } from "../../../text/render.ts";
import { shellWord } from "../../../text/shell-word.ts";
import type { Dependents } from "../../../view/dependents.ts";
import {
  askForLanding,
  changeText,
  type LandingView,
  lookForWork,
  type Work,
} from "../../../view/landing.ts";
import { readTaskPage, type TaskPage } from "../../../view/task-page.ts";
import type { Past, TaskPast } from "../../../view/task-past.ts";
import type { TaskRun } from "../../../view/task-runs.ts";
import type { Why } from "../../../view/why-open.ts";
import { actsOnTask } from "../buttons.ts";
import {
  actsBlock,
  type Block,
  type Cell,
  factsOf,
  fold,
  linkToTask,
  log,
  lookOf,
  type Page,
  type Pill,
  pathWith,
  priceText,
  say,
  seconds,
  shown,
  table,
  taskPath,
  timeOf,
  usd,
  workPath,
} from "../page.ts";
import { fileBlocks } from "./task-files.ts";
import { runBlocks } from "./task-runs.ts";

const TEXT_CHARS_MAX = 4000;
const TITLE_CHARS_MAX = 120;
const NAMED_MAX = 20;

export interface TaskReaders {
  /** Says why a task has not ended. */
  explain(id: string): Promise<Why | undefined>;
  past: TaskPast;
  agents: AgentLines;
  dependents: Dependents;
  /** The nodes of the plan. */
  readonly nodes: () => Promise<readonly RoadmapNode[]>;
}

/** @param query `run`: the path of one of its runs below `runs/`; and see `fileBlocks` */
export async function taskPage(
  tree: StateTree,
  id: string,
  query: URLSearchParams,
  readers: TaskReaders,
): Promise<Page> {
  const found = isId(id) ? readTaskPage(tree, id, query.get("run") ?? "") : undefined;
  const blocks =
    found === undefined
      ? [say(`no tray has a task ${JSON.stringify(shown(id))} at this moment`, true)]
      : await blocksOf(tree, found, query, readers);
  const name = found === undefined ? "" : shellWord(id);
  const { path, run_dir: dir, files } = found ?? {};
  const landing = found === undefined ? [] : landingFileOf(tree.dir, found.id, "state");
  const watch = [
    path ?? [],
    landing,
    dir ?? [],
    (files ?? []).map(({ name }) => join(dir ?? "", name)),
  ];
  return {
    title: shown(headlineOf(found?.title || id).slice(0, TITLE_CHARS_MAX)),
    watch: watch.flat(),
    command: found === undefined ? "mailchute ls" : `mailchute show ${name}`,
    blocks,
  };
}

async function blocksOf(
  tree: StateTree,
  task: TaskPage,
  query: URLSearchParams,
  readers: TaskReaders,
): Promise<Block[]> {
  const isOpen = task.state !== "done" && task.state !== "failed";
  const why = isOpen ? await readers.explain(task.id) : undefined;
  const past = readers.past.look(task.id);
  const landing = task.state === "done" ? await askForLanding(tree, task.id) : undefined;
  const work = task.state === "done" ? lookForWork(tree, task.id) : undefined;
  const blocks: Block[] = [];
  if (task.run_dir !== null) await readers.agents.ready(task.run_dir);
  if (task.title.length > TITLE_CHARS_MAX || task.title.includes("\n"))
    blocks.push(say(shown(task.title.slice(0, TEXT_CHARS_MAX))));
  blocks.push(taskFacts(task, past, landing, work));
  blocks.push(...actsBlock("this task", actsOnTask(task.id, task.state, usedBy(task, past))));
  if (why !== undefined && why.text !== "runs") {
    const todo = why.do === undefined ? "" : `; do: ${shown(why.do)}`;
    blocks.push(say(`it ${shown(why.text)}${todo}`, why.isStuck));
  }
  if (landing?.state === "failed")
    blocks.push(say(`its work did not land: ${shown(landing.why.slice(0, TEXT_CHARS_MAX))}`, true));
  if (task.error !== null) {
    const { kind, text, do: todo } = task.error;
    blocks.push(say(`${shown(kind)}: ${shown(text.slice(0, TEXT_CHARS_MAX))}`, true));
    if (todo !== null) blocks.push(say(`do: ${shown(todo)}`));
  }
  const logsOf = ({ lease }: TaskRun): string | null => {
    const run = runOfLease(task.id, lease);
    const isThere = statOf(join(tree.runs, run)) !== undefined;
    return isThere ? pathWith(taskPath(task.id), { run }) : null;
  };
  return [
    ...blocks,
    ...(await othersOf(tree, task, readers)),
    ...(task.prompt === "" ? [] : [promptOf(task)]),
    ...runBlocks(past, Date.now(), logsOf),
    ...fileBlocks(tree, task, query, readers.agents),
  ];
}

/** What its agent is asked to do. */
function promptOf({ prompt }: TaskPage): Block {
  const lines = prompt.slice(0, TEXT_CHARS_MAX).split("\n").map(shown);
  return fold("Prompt", log("Prompt", lines));
}

/** What it waits for, and what waits for it: tasks in the inbox, and nodes of the plan. */
async function othersOf(
  tree: StateTree,
  { id, after }: TaskPage,
  { dependents, nodes: readNodes }: TaskReaders,
): Promise<Block[]> {
  const { rows, isAll } = await dependents.of(id);
  const nodes = await readNodes();
  const isIt = (other: string): boolean => foldId(other) === foldId(id);
  const known = new Set([...rows.map((one) => one.id), id]);
  const later = nodes.filter(
    (one) => !known.has(one.id) && one.dependencies.some((other) => isIt(other.id)),
  );
  const waits = after.slice(0, NAMED_MAX).map((one) => {
    const found = readTaskPage(tree, one);
    const node = nodes.find((other) => other.id === one);
    if (found !== undefined) return [linkToTask(one, found.title), pillOf(found.state)];
    return node === undefined ? [linkToTask(one), pillOf("not found")] : nodeCells(node);
  });
  const waiters = [
    ...rows.map((one) => [linkToTask(one.id, one.title), pillOf(one.state)]),
    ...later.map(nodeCells),
  ];
  const title = isAll ? "What waits for it" : "What waits for it, of the latest tasks";
  return [
    tableOf("Runs after", waits, after.length),
    tableOf(title, waiters, waiters.length),
  ].flat();
}

/** No block for no rows. */
function tableOf(title: string, rows: Cell[][], count: number): Block[] {
  if (rows.length === 0) return [];
  const some = count > NAMED_MAX ? `${title} (${NAMED_MAX} of ${countText(count)})` : title;
  return [table(some, ["task", "state"], rows.slice(0, NAMED_MAX))];
}

function nodeCells({ id, title, status }: RoadmapNode): Cell[] {
  const to = pathWith("/plan", { node: id });
  return [{ ...linkToTask(id, title), to }, pillOf(`node: ${status}`)];
}

function pillOf(state: string): Pill {
  return { look: lookOf(state), word: shown(state) };
}

function taskFacts(task: TaskPage, { cost }: Past, landing?: LandingView, work?: Work): Block {
  const { attempt, attempts_max: max, agent, group, priority } = task;
  const isEnded = task.state === "done" || task.state === "failed";
  const lined = (text: string | null): string | null => text && linesOf(text);
  return factsOf([
    ["state", stateOf(task, landing)],
    ["id", { id: shown(task.id) }],
    ["landing", landing === undefined ? null : landingCell(landing)],
    ["changes", work === undefined ? null : { text: changeText(work), to: workPath(task.id) }],
    ["run", attempt === null ? null : `${attempt}${max === null ? "" : ` of ${max}`}`],
    ...task.program.map(([name, text]) => [name, lined(text.slice(0, TEXT_CHARS_MAX))] as const),
    ["agent", lined(agent)],
    ["group", lined(group)],
    ["priority", priority === null ? null : String(priority)],
    ["run began", task.began_ms === null ? null : timeOf(task.began_ms)],
    ["ended", isEnded && task.changed_ms !== null ? timeOf(task.changed_ms) : null],
    ["cost", cost === null ? null : costText(cost)],
    ["session", lined((task.run_dir && sessionOfRun(task.run_dir)?.session_id) || null)],
    ["file", lined(task.path)],
  ]);
}

/** A script has lines. */
function linesOf(text: string): string {
  return text.split("\n").map(shown).join("\n");
}

function stateOf({ state, failed_lines: failedLines }: TaskPage, landing?: LandingView): Pill {
  if (landing?.state === "failed") return { look: "bad", word: "done, but its work did not land" };
  if (failedLines !== null) return { look: "bad", word: shown(`${state}, but ${failedLines}`) };
  return pillOf(state);
}

function landingCell({ id, state, why }: LandingView): Cell {
  const how = state === "open" ? `has not ended: ${why}` : state;
  return { text: shown(`${id} ${how}`.slice(0, TEXT_CHARS_MAX)), to: taskPath(id) };
}

/** The time of the current run in whole seconds, and the cost of its task. A person who ends the run loses that. */
function usedBy({ began_ms: beganMs }: TaskPage, { cost }: Past): string {
  if (beganMs === null) return "";
  const took = seconds(Date.now() - beganMs);
  const micro = cost?.cost_usd_micro ?? 0;
  return micro === 0 ? took : `${took} and ${usd(micro)}`;
}

/** What all runs of the task have used, including the current one. */
function costText(cost: CostSum): string {
  const tokens = `${countText(cost.input_tokens)} tokens in, ${countText(cost.output_tokens)} out`;
  const price = priceText(cost);
  return price === "–" ? tokens : `${price}, ${tokens}`;
}
