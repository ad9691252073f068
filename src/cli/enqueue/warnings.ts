/** Warns of possible mistakes in a task. A warning is printed in addition to the task's id, and never refuses the task. */
import fs from "node:fs";
import { delimiter, resolve } from "node:path";
import { openIdReaders } from "../../app/id-readers.ts";
import { matchAgent } from "../../core/matching.ts";
import { foldId } from "../../core/names.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { suggest } from "../../core/suggest.ts";
import { type LimitSource, nearGroup, TaskLimits } from "../../core/task-limits.ts";
import { idsIn, lookInAnyCase, processingPlaces } from "../../view/find-task.ts";
import { inheritedFrom } from "./surroundings.ts";

/** Characters that mean something to a shell, and that a program's name rarely has. */
const FOR_A_SHELL = /[\s;&|<>$`*?()]/;
/** How many ids of a tray are compared to find a similar one. */
const COMPARED_MAX = 10_000;

/** Warns when a whole command line is given as one word: mailchute would look for a program with that name. */
export function warnOfShell(
  argv: readonly string[] | undefined,
  cwd: string,
  path: string | undefined,
): string[] {
  const [word] = argv ?? [];
  if (argv?.length !== 1 || word === undefined || !FOR_A_SHELL.test(word)) return [];
  const dirs = word.includes("/") ? [cwd] : [cwd, ...(path ?? "").split(delimiter)];
  if (dirs.some((dir) => fs.existsSync(resolve(dir, word)))) return [];
  return [
    `${JSON.stringify(word)} is taken for the name of a program, because no shell reads it; did you mean: -- sh -c ${quoteForShell(word)}`,
  ];
}

/** Warns of dependencies that neither a tray nor the plan knows: the task would wait until such a task exists. */
export async function warnOfUnknown(tree: StateTree, ids: readonly string[]): Promise<string[]> {
  const missing = ids.filter((id) => lookInAnyCase(tree, id) === undefined);
  if (missing.length === 0) return [];
  const readers = openIdReaders(tree, undefined);
  await readers.refresh();
  const nodes = readers.ids();
  const folded = new Set(nodes.map(foldId));
  const unknown = missing.filter((id) => !folded.has(foldId(id)));
  if (unknown.length === 0) return [];
  const trays = ["inbox", "outbox", "failed"] as const;
  const known = new Set([
    ...nodes,
    ...processingPlaces(tree).map((place) => place.id),
    ...trays.flatMap((tray) => idsIn(tree, tray, COMPARED_MAX)),
  ]);
  return unknown.map((id) => {
    const near = suggest(id, known);
    const hint = near === undefined ? "" : `; did you mean ${near}?`;
    return `--after ${id}: no task and no node of the plan has this id, so this one waits until there is one${hint}`;
  });
}

/** Warns of a task for which the settings have no agent. */
export function warnOfAgent(
  wanted: Parameters<typeof matchAgent>[0],
  agents: Settings["agents"],
): string[] {
  const match = matchAgent(wanted, agents);
  return match.agent === undefined ? [`${match.reason}, so the task waits until one is`] : [];
}

/** Warns of a group with a name much like one of the settings: it would limit nothing, and send the task nowhere. */
export function warnOfGroup(group: string | undefined, settings: Settings): string[] {
  const near = group === undefined ? undefined : nearGroup(group, settings);
  return near === undefined
    ? []
    : [`--group ${group}: config.yaml has no such group; did you mean ${near}?`];
}

/** Warns of limits that the settings do not have, and of a weight that does not fit its group. */
export function warnOfLimits(
  {
    group,
    weight = 1,
    limit,
  }: { group?: string | undefined; weight?: number | undefined; limit: readonly string[] },
  settings: LimitSource,
): string[] {
  const limits = new TaskLimits(settings);
  const unknown = limit
    .filter((name) => !limits.has("limit", name))
    .map((name) => {
      const near = suggest(name, Object.keys(settings.limits));
      const hint = near === undefined ? "" : `; did you mean ${near}?`;
      return `--limit ${name}: config.yaml has no such limit, so the task waits until it has${hint}`;
    });
  if (weight === 1) return unknown;
  const slots = group === undefined ? undefined : limits.slotsOf("group", group);
  if (slots === undefined)
    return [
      ...unknown,
      group === undefined
        ? "--weight has no effect without --group"
        : `--weight has no effect: config.yaml has no group ${group}`,
    ];
  if (slots >= weight) return unknown;
  return [
    ...unknown,
    `--weight ${weight}: the group ${group} has ${slots} slots; the task takes all of them`,
  ];
}

/** Says which variables a task does not take along. */
export function warnOfLeftOut(env: NodeJS.ProcessEnv): string[] {
  const { leftOut } = inheritedFrom(env);
  if (leftOut.length === 0) return [];
  return [
    `--inherit-env: left out, because they may be secrets: ${leftOut.join(", ")}; --env-from NAME=file:/PATH gives one without writing it down`,
  ];
}

function quoteForShell(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
