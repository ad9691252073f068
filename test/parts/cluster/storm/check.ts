/** What must be true after a storm: each task has one settlement; a run has happened twice, or beside another one of its task, only where a fault explains it. */
import fs from "node:fs";
import { join } from "node:path";
import { checkState } from "../../../support/check-state.ts";
import type { Pool } from "../../../support/pool.ts";
import type { FaultKind } from "./faults.ts";
import { findOverlaps } from "./overlaps.ts";
import { grouped, type Run, readRuns } from "./trace.ts";

/** A time of a machine, or of the "servers" (epoch ms). */
export interface Span {
  whom: string;
  fromMs: number;
  toMs: number;
}

/** It was struck from then on, and well again at the end of that time. */
export interface Struck extends Span {
  kind: FaultKind;
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
  /** Those that may be run once only: they may fail, because the machine or the worker of their newest run has died. */
  once: ReadonlySet<string>;
  struck: readonly Struck[];
  /** When bridges and servers had to wait for a processor. */
  late: readonly Span[];
  ackWaitMs: number;
}

export interface StormCheck {
  problems: string[];
  runs: number;
  /** Runs of a dispatch that had been begun before. */
  runsAgain: number;
  /** How many runs went on beside another one of their task, by the kind of fault that explains it. */
  overlaps: ReadonlyMap<string, number>;
}

/** How long after a fault it may still have made a run happen twice, beside `ack_wait` and the silence after it (ms). */
const SLACK_MS = 5000;
/** How often the storm looks who waits for a processor (ms), and for which part of `ack_wait` that makes renewals late. */
export const LATE_LOOK_MS = 1000;
const LATE_SHARE = 0.3;
/** Home has heard within this time that a run has begun, and a run says so often that it goes on (ms). */
const HEARD_MS = 1500;
/** Times of files may be so much too early (ms). */
const ROUNDED_MS = 20;

export function checkStorm(end: StormEnd): StormCheck {
  const { origin, machines, ids } = end;
  const problems = checkState(origin.pool.state, ids, { hadCrashes: true, mayRepeat: true });
  for (const { name, pool } of machines)
    for (const dir of [pool.inbox, pool.processing])
      for (const file of fs.readdirSync(dir)) problems.push(`${name}: ${file} is left over`);
  const runs = machines.flatMap((machine) => readRuns(end.dir, machine.name));
  problems.push(...endedByOlder(runs, end), ...failures(runs, end));
  let runsAgain = 0;
  for (const again of grouped(runs, ({ id }) => id)) {
    runsAgain += again.length - 1;
    problems.push(...unexplained(again, end));
  }
  const overlaps = findOverlaps(runs, end, (machine, beforeMs) => cameLate(machine, beforeMs, end));
  problems.push(...overlaps.problems, ...unfounded(runs, end));
  return { problems, runs: runs.length, runsAgain, overlaps: overlaps.explained };
}

/** Failures that no fault at the machine of the run explains. */
function failures(runs: readonly Run[], { origin, once, struck }: StormEnd): string[] {
  return origin.pool.errors().flatMap(({ recordFile, error, task_id, machine }) => {
    const run = runs.find((one) => one.task === task_id && one.machine === machine);
    const isExplained =
      once.has(task_id) &&
      run !== undefined &&
      struck.some(({ whom, toMs }) => whom === machine && toMs + SLACK_MS >= run.startMs);
    return isExplained ? [] : [`${recordFile}: failed, which no task should: ${error}`];
  });
}

/** Runs that went on at a machine that could be heard when the result of an older run of their dispatch settled the task. */
export function endedByOlder(
  runs: readonly Run[],
  { origin, struck, ackWaitMs }: Pick<StormEnd, "origin" | "struck" | "ackWaitMs">,
): string[] {
  const { outbox, failed } = origin.pool;
  const records = [
    ...origin.pool
      .results()
      .map((one) => ({ ...one, path: join(outbox, `${one.task_id}_result.json`) })),
    ...origin.pool.errors().map((one) => ({ ...one, path: join(failed, one.recordFile) })),
  ];
  const byTask = new Map(grouped(runs, ({ task }) => task).map((of) => [of[0]?.task, of]));
  return records.flatMap(({ task_id, attempts, machine, path }) => {
    const { mtimeMs } = fs.statSync(path);
    const ofRun = (byTask.get(task_id) ?? []).filter(({ id }) => id.endsWith(`.${attempts}`));
    const own = ofRun.find((one) => one.machine === machine);
    const newer = ofRun.find(
      (one) =>
        own !== undefined &&
        one.machine !== machine &&
        one.startMs > own.startMs &&
        one.startMs + HEARD_MS < mtimeMs &&
        one.endMs === undefined &&
        one.lastMs + HEARD_MS >= mtimeMs,
    );
    if (newer === undefined) return [];
    const isUnheard = struck.some(
      ({ whom, fromMs, toMs }) =>
        [newer.machine, "origin", "servers"].includes(whom) &&
        fromMs <= mtimeMs &&
        toMs + ackWaitMs >= newer.startMs,
    );
    return isUnheard
      ? []
      : [`${newer.id} ran at ${newer.machine} when the older run at ${machine} settled it`];
  });
}

/** The runs of a dispatch that no fault explains. */
function unexplained(runs: readonly Run[], end: StormEnd): string[] {
  const { struck, ackWaitMs } = end;
  const inOrder = runs.toSorted((a, b) => a.startMs - b.startMs);
  return inOrder.slice(1).flatMap((run, at) => {
    const before = inOrder[at] as Run;
    const isExplained = struck.some(
      ({ whom, kind, fromMs, toMs }) =>
        (whom === before.machine || whom === "servers") &&
        // What shared a process with others that died gets one more run there, alone in a process.
        (kind !== "kill a worker" || run.machine === before.machine) &&
        fromMs <= run.startMs &&
        toMs + 4 * ackWaitMs + SLACK_MS >= before.startMs,
    );
    return isExplained || cameLate(before.machine, run.startMs, end)
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
function unfounded(runs: readonly Run[], { origin }: StormEnd): string[] {
  const ended = new Map<string, number>();
  for (const { machine, id, task, endMs } of runs) {
    if (endMs === undefined) continue;
    const key = `${machine} ${task} ${id.split(".").at(-1)}`;
    ended.set(key, Math.min(endMs, ended.get(key) ?? endMs));
  }
  return origin.pool.results().flatMap(({ task_id, attempts, machine }) => {
    const endMs = ended.get(`${machine} ${task_id} ${attempts}`);
    // `completed_at` is in seconds.
    const { mtimeMs } = fs.statSync(join(origin.pool.outbox, `${task_id}_result.json`));
    if (endMs !== undefined && endMs <= mtimeMs + ROUNDED_MS) return [];
    const why = endMs === undefined ? "that run has no end there" : "that run ended later";
    return [`${task_id} has completed with run ${attempts} at ${machine}, and ${why}`];
  });
}
