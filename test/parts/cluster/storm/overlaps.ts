/**
 * Two runs of one task that went on at the same time. That is allowed only where the first machine could not stop its run: it, its bridge or
 * its supervisor stood still or was dead, or the servers had forgotten that the run was there. One that was only cut off must have stopped it
 * before.
 */
import type { StormEnd } from "./check.ts";
import type { FaultKind } from "./faults.ts";
import { grouped, type Run } from "./trace.ts";

/** After these it can stop its run in time, or has to before it begins the next one. */
const CAN_STOP: ReadonlySet<FaultKind> = new Set(["cut a machine off", "kill a worker"]);
/** How long after a fault a machine, or the servers, need at most until all is renewed, beside `ack_wait` (ms). */
const WELL_AGAIN_MS = 5000;
const LATE = "late on a slow machine";

export interface Overlaps {
  /** How many of them each kind of fault explains. */
  explained: Map<string, number>;
  problems: string[];
}

/** @param wasLate whether a machine, or the servers, had to wait for a processor before that time (epoch ms) */
export function findOverlaps(
  runs: readonly Run[],
  end: Pick<StormEnd, "struck" | "ackWaitMs">,
  wasLate: (machine: string, beforeMs: number) => boolean,
): Overlaps {
  const explained = new Map<string, number>();
  const problems: string[] = [];
  for (const [first, second] of overlapping(runs)) {
    const why =
      whyStill(first, second, end) ?? (wasLate(first.machine, second.startMs) ? LATE : "");
    if (why === "") problems.push(sentence(first, second));
    else explained.set(why, (explained.get(why) ?? 0) + 1);
  }
  return { explained, problems };
}

function overlapping(runs: readonly Run[]): [first: Run, second: Run][] {
  const pairs: [Run, Run][] = [];
  for (const ofTask of grouped(runs, ({ task }) => task)) {
    const inOrder = ofTask.toSorted((a, b) => a.startMs - b.startMs);
    for (const [at, first] of inOrder.entries())
      for (const second of inOrder.slice(at + 1))
        if (second.startMs < first.lastMs) pairs.push([first, second]);
  }
  return pairs;
}

/** The fault because of which the first run had not been stopped when the second one began. */
function whyStill(
  first: Run,
  second: Run,
  { struck, ackWaitMs }: Pick<StormEnd, "struck" | "ackWaitMs">,
): string | undefined {
  const inTime = struck.filter(
    ({ fromMs, toMs }) =>
      fromMs <= second.startMs && toMs + ackWaitMs + WELL_AGAIN_MS >= first.startMs,
  );
  const ofMachine = inTime.find(({ whom, kind }) => whom === first.machine && !CAN_STOP.has(kind));
  return (ofMachine ?? inTime.find(({ whom }) => whom === "servers"))?.kind;
}

function sentence(first: Run, second: Run): string {
  const ms = first.lastMs - second.startMs;
  return `${second.id} began at ${second.machine} while ${first.id} still ran at ${first.machine}, for ${ms} ms, and nothing explains it`;
}
