/**
 * Tells a process that is just being started: its starter may be dead already, and nothing in it says yet whose it is.
 *
 *   forked       a copy of who forked it, with one thread and that one's environment; an orphan when that one died
 *   executing    the new program, whose environment the kernel has not put in place yet
 */
import fs from "node:fs";
import { thisProcess } from "./identity.ts";
import type { ProcessRow } from "./process-table.ts";

/** Clock ticks; a second. What has not become anything by then is not waited for. */
const NEWBORN_TICKS_MAX = 100;
/** Of `/proc` (ms). */
const TICK_MS = 10;

export function isNewborn({ pid, parent, threads, startTicks }: ProcessRow): boolean {
  const { startTicks: ownTicks } = thisProcess();
  const ageTicks = ownTicks + performance.now() / TICK_MS - startTicks;
  if (ageTicks > NEWBORN_TICKS_MAX) return false;
  return isForked(pid, parent, threads) || isExecuting(pid);
}

/** What runs on Node has many threads from its start on; the children of those who live are theirs to end. */
function isForked(pid: number, parent: number, threads: number): boolean {
  const own = programOf(process.pid);
  return threads === 1 && own !== undefined && programOf(pid) === own && programOf(parent) !== own;
}

function isExecuting(pid: number): boolean {
  try {
    return fs.readFileSync(`/proc/${pid}/environ`).length === 0;
  } catch {
    return false;
  }
}

function programOf(pid: number): string | undefined {
  try {
    return fs.readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return undefined;
  }
}
