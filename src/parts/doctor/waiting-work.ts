/** Finds where the waiting tasks of the inbox work, and which programs verify them. Reads a bounded number of tasks. */
import { join, resolve } from "node:path";
import { decodeTask } from "../../codec/task-codec.ts";
import { readPrograms } from "../../codec/task-rules.ts";
import { compact } from "../../core/compact.ts";
import { branchToBuildOn } from "../../core/landing.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { matchAgent } from "../../core/matching.ts";
import { readInboxName } from "../../core/names.ts";
import type { AgentSettings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Task } from "../../core/task.ts";
import { readRegular } from "../../host/regular-file.ts";
import { findFiles } from "../../view/scan.ts";
import { wantsWorktree, withChecks } from "../../worker/task-defaults.ts";

/** Tasks with the same verify programs in the same place. */
export interface Base {
  cwd: string;
  verify: readonly (readonly string[])[];
  env: Readonly<Record<string, string>>;
  tasks: number;
  /** Set when each of these tasks works in a worktree of its own: what makes it ready, and the branch at which the work begins. */
  worktree?: { setup: readonly (readonly string[])[]; buildsOn: string | undefined };
}

export interface WaitingWork {
  tasks: number;
  /** False when there are more tasks than were read. */
  isAll: boolean;
  bases: Base[];
  /** Where agents and verified tasks work. */
  folders: string[];
}

const TASKS_MAX = 2000;

/** @param agents give their checks to tasks that have none of their own */
export function lookAtWork(tree: StateTree, agents: readonly AgentSettings[]): WaitingWork {
  const { files, isAll } = findFiles(join(tree.mailbox, "inbox"), isTaskFile, TASKS_MAX);
  const bases = new Map<string, Base>();
  const folders = new Set<string>();
  let tasks = 0;
  for (const { name, path, size } of files) {
    const task = size > TASK_BYTES_MAX ? undefined : readTask(path, name.slice(0, -".json".length));
    if (task === undefined) continue;
    tasks += 1;
    const { agent } = matchAgent(task, agents);
    const { verify = [], env = {} } = agent === undefined ? task : withChecks(task, agent);
    if (verify.length === 0 && task.exec !== undefined) continue;
    const cwd = resolve(tree.dir, "..", task.metadata?.worktree ?? task.cwd ?? ".");
    folders.add(cwd);
    if (verify.length === 0) continue;
    const worktree = agent === undefined ? undefined : worktreeOf(task, agent);
    const key = JSON.stringify([cwd, verify, env, worktree]);
    const base = bases.get(key) ?? { cwd, verify, env, tasks: 0, ...compact({ worktree }) };
    bases.set(key, { ...base, tasks: base.tasks + 1 });
  }
  return { tasks, isAll, bases: [...bases.values()], folders: [...folders] };
}

function worktreeOf(task: Task, agent: AgentSettings): Base["worktree"] {
  if (!wantsWorktree(task, agent)) return undefined;
  const setup = task.setup ?? readPrograms(agent.setup ?? []);
  return { setup, buildsOn: branchToBuildOn(task, agent) };
}

function isTaskFile(name: string): boolean {
  const read = readInboxName(name);
  return read.kind === "task" && read.isBatch !== true;
}

/** Undefined for a file that a supervisor would refuse. */
function readTask(path: string, id: string): Task | undefined {
  try {
    return decodeTask(readRegular(path, { bytesMax: TASK_BYTES_MAX }), id, path).task;
  } catch {
    return undefined;
  }
}
