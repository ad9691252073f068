/** What must be true after a storm: each task has one settlement, and a run has happened twice only where a fault explains it. */
import fs from "node:fs";
import { join } from "node:path";
import { checkState } from "../../../support/check-state.ts";
import type { Pool } from "../../../support/pool.ts";

/** A machine, or "servers", was struck from then on, and well again at the end of that time. */
export interface Struck {
  whom: string;
  fromMs: number;
  toMs: number;
}

export interface Place {
  name: string;
  pool: Pool;
}

export interface StormEnd {
  dir: string;
  origin: Place;
  machines: readonly Place[];
  ids: readonly string[];
  struck: readonly Struck[];
  ackWaitMs: number;
}

interface Run {
  machine: string;
  id: string;
  atMs: number;
}

/** How long after a fault it may still have made a run happen twice, beside `ack_wait` and the silence after it (ms). */
const SLACK_MS = 5000;

export function checkStorm(end: StormEnd): { problems: string[]; runs: number; runsAgain: number } {
  const { origin, machines, ids } = end;
  const problems = checkState(origin.pool.state, ids, { hadCrashes: true, mayRepeat: true });
  for (const { recordFile, error } of origin.pool.errors())
    problems.push(`${recordFile}: failed, which no task should: ${error}`);
  for (const { name, pool } of machines)
    for (const dir of [pool.inbox, pool.processing])
      for (const file of fs.readdirSync(dir)) problems.push(`${name}: ${file} is left over`);
  const runs = machines.flatMap((machine) => runsOf(end.dir, machine.name));
  const byId = new Map<string, Run[]>();
  for (const run of runs) byId.set(run.id, [...(byId.get(run.id) ?? []), run]);
  let runsAgain = 0;
  for (const again of byId.values()) {
    runsAgain += again.length - 1;
    problems.push(...unexplained(again, end));
  }
  problems.push(...neverRun(byId, origin));
  return { problems, runs: runs.length, runsAgain };
}

/** The runs of a dispatch that no fault explains. */
function unexplained(runs: readonly Run[], { struck, ackWaitMs }: StormEnd): string[] {
  const inOrder = runs.toSorted((a, b) => a.atMs - b.atMs);
  return inOrder.slice(1).flatMap((run, at) => {
    const before = inOrder[at] as Run;
    const isExplained = struck.some(
      ({ whom, fromMs, toMs }) =>
        (whom === before.machine || whom === "servers") &&
        fromMs <= run.atMs &&
        toMs + 4 * ackWaitMs + SLACK_MS >= before.atMs,
    );
    return isExplained
      ? []
      : [`${run.id} ran at ${before.machine} and at ${run.machine}, and nothing had struck there`];
  });
}

/** What is said to have completed has run. */
function neverRun(byId: ReadonlyMap<string, readonly Run[]>, origin: Place): string[] {
  const tasks = new Set([...byId.keys()].map((id) => id.split(".")[2]));
  return origin.pool
    .results()
    .filter(({ task_id }) => !tasks.has(task_id))
    .map(({ task_id }) => `${task_id} has completed, and never ran`);
}

function runsOf(dir: string, machine: string): Run[] {
  const path = join(dir, `${machine}.trace`);
  if (!fs.existsSync(path)) return [];
  return fs
    .readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, id, at] = /^start (\S+) (\d+)$/.exec(line) ?? [];
      // A program that is killed leaves half a line.
      return id === undefined ? [] : [{ machine, id, atMs: Number(at) }];
    });
}
