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
  /** When bridges and servers had to wait for a processor. */
  late: readonly Struck[];
  ackWaitMs: number;
}

interface Run {
  machine: string;
  id: string;
  atMs: number;
}

/** How long after a fault it may still have made a run happen twice, beside `ack_wait` and the silence after it (ms). */
const SLACK_MS = 5000;
/** How often the storm looks who waits for a processor (ms), and for which part of `ack_wait` that makes renewals late. */
export const LATE_LOOK_MS = 1000;
const LATE_SHARE = 0.3;
/** Times of files may be so much too early (ms). */
const ROUNDED_MS = 20;

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
  problems.push(...unfounded(end));
  return { problems, runs: runs.length, runsAgain };
}

/** The runs of a dispatch that no fault explains. */
function unexplained(runs: readonly Run[], end: StormEnd): string[] {
  const { struck, ackWaitMs } = end;
  const inOrder = runs.toSorted((a, b) => a.atMs - b.atMs);
  return inOrder.slice(1).flatMap((run, at) => {
    const before = inOrder[at] as Run;
    const isExplained = struck.some(
      ({ whom, fromMs, toMs }) =>
        (whom === before.machine || whom === "servers") &&
        fromMs <= run.atMs &&
        toMs + 4 * ackWaitMs + SLACK_MS >= before.atMs,
    );
    return isExplained || cameLate(before.machine, run.atMs, end)
      ? []
      : [`${run.id} ran at ${before.machine} and at ${run.machine}, and nothing had struck there`];
  });
}

/** Whether a machine, or the servers, had to wait for so long before this time that a renewal came too late. */
function cameLate(machine: string, beforeMs: number, { late, ackWaitMs }: StormEnd): boolean {
  const afterMs = beforeMs - ackWaitMs - LATE_LOOK_MS;
  return [machine, "servers"].some((whose) => {
    const parts = late.filter(({ whom }) => whom === whose);
    const ms = parts.map(
      ({ fromMs, toMs }) => Math.min(toMs, beforeMs) - Math.max(fromMs, afterMs),
    );
    return ms.reduce((sum, part) => sum + Math.max(0, part), 0) >= LATE_SHARE * ackWaitMs;
  });
}

/** What is said to have completed at a machine has come to its end there before, and by that very run. */
function unfounded({ dir, origin, machines }: StormEnd): string[] {
  const ended = new Map(machines.flatMap(({ name }) => endsOf(dir, name)));
  return origin.pool.results().flatMap(({ task_id, attempts, machine }) => {
    const endMs = ended.get(`${machine} ${task_id} ${attempts}`);
    // `completed_at` is in seconds.
    const { mtimeMs } = fs.statSync(join(origin.pool.outbox, `${task_id}_result.json`));
    if (endMs !== undefined && endMs <= mtimeMs + ROUNDED_MS) return [];
    const why = endMs === undefined ? "that run has no end there" : "that run ended later";
    return [`${task_id} has completed with run ${attempts} at ${machine}, and ${why}`];
  });
}

/** The first end of each run of a task at a machine (ms). */
function endsOf(dir: string, machine: string): [run: string, atMs: number][] {
  const ends = linesOf(dir, machine).flatMap((line): [string, number][] => {
    const [, id, at] = /^end (\S+) (\d+)$/.exec(line) ?? [];
    // A name of a tree has a dot, too.
    const [attempt, , task] = id?.split(".").reverse() ?? [];
    return task === undefined ? [] : [[`${machine} ${task} ${attempt}`, Number(at)]];
  });
  return ends.toReversed();
}

function linesOf(dir: string, machine: string): string[] {
  const path = join(dir, `${machine}.trace`);
  return fs.existsSync(path) ? fs.readFileSync(path, "utf8").split("\n") : [];
}

function runsOf(dir: string, machine: string): Run[] {
  return linesOf(dir, machine).flatMap((line) => {
    const [, id, at] = /^start (\S+) (\d+)$/.exec(line) ?? [];
    // A program that is killed leaves half a line.
    return id === undefined ? [] : [{ machine, id, atMs: Number(at) }];
  });
}
