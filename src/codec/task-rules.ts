/** The rules of a task that its schema cannot express, field by field. */
import {
  type DependencyField,
  dependencyFieldsOf,
  readDependencies,
} from "../core/dependencies.ts";
import { explainBadId, foldId } from "../core/names.ts";
import { readMaxAttempts } from "../core/outcome.ts";
import { explainBadOwned } from "../core/owned-paths.ts";
import { priorityNumber } from "../core/priority.ts";
import { explainBadRunLimits } from "../core/run-limits.ts";
import { explainBadCache } from "../core/setup-cache.ts";
import type { Task } from "../core/task.ts";
import { shorten } from "./schema.ts";

/** What is wrong with a field. */
export interface TaskFault {
  message: string;
  hint?: string;
}

/** @returns undefined when the field, or its absence, is good @param id of the task */
export type TaskRule = (task: Task, id: string) => TaskFault | undefined;

/** Rules by field. Only the rules of fields that the task has are called: most tasks have few fields. */
export const TASK_RULES: ReadonlyMap<string, TaskRule> = new Map<string, TaskRule>([
  ["exec", ({ exec }) => explainArgv("exec", exec)],
  ["land_command", ({ land_command: argv }) => explainArgv("land_command", argv)],
  ["verify", (task) => readProgramsOf(task, "verify")],
  ["setup", (task) => readProgramsOf(task, "setup")],
  ["cache", ({ cache }) => named("cache.", cache && explainBadCache(cache))],
  [
    "run_limits",
    ({ run_limits: limits }) => named("run_limits.", explainBadRunLimits(limits ?? {})),
  ],
  ["env_from", explainEnvFrom],
  ["owns", explainOwns],
  ["metadata", (task, id) => explainWorktreeOf(task) ?? adoptDependencies(task, id)],
  ["dependencies", adoptDependencies],
  ["depends_on", adoptDependencies],
  ["priority", adoptPriority],
  ["retry_policy", adoptRetryPolicy],
  ["agents", adoptAgents],
  ["review_by", explainReviewBy],
  ["target", explainTarget],
]);

/** Reads a value that may be one program or a list of programs. */
export function readPrograms(value: readonly (string | string[])[]): string[][] {
  const isOne = value.every((part) => typeof part === "string");
  return (isOne && value.length > 0 ? [value] : value) as string[][];
}

/** Replaces the value of the field in the task by a list of programs. */
function readProgramsOf(task: Task, field: "verify" | "setup"): TaskFault | undefined {
  const given = task[field];
  if (given === undefined) return undefined;
  const programs = readPrograms(given);
  task[field] = programs;
  const unnamed = programs.findIndex((argv) => argv[0] === "");
  return unnamed === -1 ? undefined : explainArgv(`${field}[${unnamed}]`, programs[unnamed]);
}

function explainArgv(name: string, argv: readonly string[] | undefined): TaskFault | undefined {
  return argv?.[0] === "" ? { message: `${name}[0]: the program's name is empty` } : undefined;
}

function explainEnvFrom({ env_from: variables = {} }: Task): TaskFault | undefined {
  const ours = Object.keys(variables).find((name) => name.startsWith("MAILCHUTE_"));
  return named("env_from: ", ours && `${shorten(ours)} is set by mailchute`);
}

function explainOwns({ owns = {} }: Task): TaskFault | undefined {
  for (const list of ["read", "write"] as const)
    for (const path of owns[list] ?? []) {
      const fault = explainBadOwned(path);
      if (fault !== undefined) return { message: `owns.${list}: ${shorten(path)}: ${fault}` };
    }
  return undefined;
}

/** Checks an id that becomes a part of paths and of refs. */
function explainWorktreeOf({ metadata }: Task): TaskFault | undefined {
  const other = metadata?.["worktree_of"];
  const fault = typeof other === "string" ? explainBadId(other) : undefined;
  return named("metadata.worktree_of: ", fault && `${shorten(other)}: ${fault}`);
}

/** Gathers all dependencies in `metadata.dependencies`. Most tasks have a plain list there, which stays as it is. */
function adoptDependencies(task: Task, id: string): TaskFault | undefined {
  const inside: unknown = task.metadata?.dependencies;
  const isTop = task["dependencies"] !== undefined;
  const isSame = task["depends_on"] !== undefined;
  let fields: readonly DependencyField[] | undefined;
  if (!isTop && !isSame && Array.isArray(inside) && inside.every((one) => typeof one === "string"))
    fields = inside as string[];
  else {
    fields = dependencyFieldsOf(task);
    if (fields.length > 0) task.metadata = { ...task.metadata, dependencies: [...fields] };
    delete task["dependencies"];
    delete task["depends_on"];
  }
  const where = isTop ? "dependencies" : isSame ? "depends_on" : "metadata.dependencies";
  for (const { id: dependency } of readDependencies(fields)) {
    // mailchute looks for a file with this id in its name.
    const fault = explainBadId(dependency);
    if (fault !== undefined) return { message: `${where}: ${shorten(dependency)}: ${fault}` };
    if (foldId(dependency) === foldId(id))
      return { message: `${where}: the task depends on itself` };
  }
  return undefined;
}

/** Replaces a word by its number. */
function adoptPriority(task: Task): undefined {
  const number = priorityNumber(task.priority);
  if (number !== undefined) task.priority = number;
}

/** The field stays, because it counts before `max_attempts` wherever the task is read again. */
function adoptRetryPolicy(task: Task): undefined {
  const attempts = readMaxAttempts(task);
  if (attempts !== undefined) task.max_attempts = attempts;
}

/** What no name of a branch contains, by the rules of `git check-ref-format refs/heads/<name>`. */
const NOT_IN_BRANCH =
  /^[-/]|[\u0000-\u0020\u007F~^:?*[\\]|\.\.|@\{|\/\/|(?:^|\/)\.|\.lock(?:\/|$)|[./]$/;

/** git itself is asked when the task starts. */
function explainTarget({ target }: Task): TaskFault | undefined {
  if (target === undefined || !NOT_IN_BRANCH.test(target)) return undefined;
  return {
    message: `target: ${shorten(target)} is no name for a branch`,
    hint: "see git check-ref-format",
  };
}

/** The first agent becomes `agent`, which is what all others read. */
function adoptAgents(task: Task): TaskFault | undefined {
  const { agents = [], agent, exec } = task;
  const [first] = agents;
  if (exec !== undefined)
    return {
      message: "agents: a task with exec is run by no agent",
      hint: "leave out one of them",
    };
  if (agent !== undefined && agent !== first)
    return {
      message: `agents: its first one is ${shorten(first)}, and agent is ${shorten(agent)}`,
      hint: "leave out agent",
    };
  if (first !== undefined) task.agent = first;
  return undefined;
}

function explainReviewBy({ review_by: reviewer, agent, agents = [] }: Task): TaskFault | undefined {
  if (reviewer === undefined || (reviewer !== agent && !agents.includes(reviewer)))
    return undefined;
  return {
    message: `review_by: ${shorten(reviewer)} would review its own work`,
    hint: "name another agent",
  };
}

function named(where: string, fault: string | undefined): TaskFault | undefined {
  return fault === undefined ? undefined : { message: `${where}${fault}` };
}
