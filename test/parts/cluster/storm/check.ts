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
/** Times of files may be so much too early (ms). */
const ROUNDED_MS = 20;

export function checkStorm(end: StormEnd): StormCheck {
  const { origin, machines, ids } = end;
  const problems = checkState(origin.pool.state, ids, { hadCrashes: true, mayRepeat: true });
  for (const { recordFile, error } of origin.pool.errors())
    problems.push(`${recordFile}: failed, which no task should: ${error}`);
  for (const { name, pool } of machines)
    for (const dir of [pool.inbox, pool.processing])
      for (const file of fs.readdirSync(dir)) problems.push(`${name}: ${file} is left over`);
  const runs = machines.flatMap((machine) => readRuns(end.dir, machine.name));
  let runsAgain = 0;
  for (const again of grouped(runs, ({ id }) => id)) {
    runsAgain += again.length - 1;
    problems.push(...unexplained(again, end));
  }
  const overlaps = findOverlaps(runs, end, (machine, beforeMs) => cameLate(machine, beforeMs, end));
  problems.push(...overlaps.problems, ...unfounded(runs, end));
  return { problems, runs: runs.length, runsAgain, overlaps: overlaps.explained };
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
