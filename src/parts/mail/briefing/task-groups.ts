/** Reads the states of a tree's and a scope's tasks as lines for an agent. The cost is bounded, even for very many tasks. */
import { headlineOf } from "../../../core/outcome.ts";
import type { StateTree } from "../../../core/state-tree.ts";
import { type ListedState, pageOfTasks } from "../../../view/page-of-tasks.ts";
import type { TaskRow } from "../../../view/task-rows.ts";
import { TrayCount } from "../../../view/tray-count.ts";
import { listTasks } from "../agents/tasks.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { type TaskGroup, taskLine } from "./news.ts";

/** No bundle has room for more tasks. */
const LOOKED_AT_MAX = 60;

/** News come before tasks that await their turn. */
const STATES = ["failed", "held", "running", "done", "ready", "waiting"] as const;

/** Selects tasks: leaves out the run's own task, and tasks that ended before `sinceMs` (epoch ms). */
export interface Wanted {
  ownId: string;
  sinceMs: number;
}

/** @throws a system error */
export async function taskGroups(
  tree: StateTree,
  folder: MailFolder,
  wanted: Wanted,
): Promise<TaskGroup[]> {
  const groups: TaskGroup[] = [];
  for (const state of STATES) groups.push(await groupOf(tree, state, wanted));
  return [...groups, listed(folder)];
}

async function groupOf(
  tree: StateTree,
  state: ListedState,
  { ownId, sinceMs }: Wanted,
): Promise<TaskGroup> {
  const page = await pageOfTasks(tree, { state, limit: LOOKED_AT_MAX });
  const isEnded = state === "done" || state === "failed";
  const isNew = ({ time_ms: atMs }: TaskRow): boolean => !isEnded || (atMs ?? 0) > sinceMs;
  const rows = page.rows.filter((row) => isNew(row) && !isWake(row.id) && row.id !== ownId);
  // Ended tasks are sorted, the latest first: after an old one, all are old.
  const isAll = page.next === undefined || (isEnded && !page.rows.every(isNew));
  const waiting = state === "waiting" ? new TrayCount(tree, state).look() : undefined;
  const wakes = page.rows.filter(({ id }) => isWake(id)).length;
  return {
    lines: rows.map(lineOf),
    count: waiting === undefined ? rows.length : Math.max(rows.length, waiting.count - wakes),
    isExact: waiting?.is_exact ?? (isAll && page.isAll),
    command: `mailchute ls --state-is ${state}`,
  };
}

/** True for the task of a wake-up: the agent needs no news about the delivery of mail. */
function isWake(id: string): boolean {
  return id.startsWith("wake.");
}

function lineOf({ id, state, gate, error, title }: TaskRow): string {
  const how = gate === null ? state : `${state} at ${gate}`;
  return taskLine(id, how, error === null ? title : headlineOf(error));
}

/** The tasks that the agents of the scope have put on their list. */
function listed(folder: MailFolder): TaskGroup {
  const tasks = listTasks(folder);
  const lines = tasks.map(({ id, name, assigned_agent: agent, result }) => {
    const state = result === null ? "open" : "has a result";
    return taskLine(id, agent === null ? state : `${state}, ${agent}`, result ?? name);
  });
  const command = `cat ${folder.path("tasks.json")}`;
  return { lines, count: lines.length, isExact: true, command };
}
