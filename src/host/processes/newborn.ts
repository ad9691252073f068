/**
 * Detects a process that is just starting. The process that started it may be dead already, and nothing in the new process shows yet
 * which attempt it belongs to.
 *
 *   forked       a copy of its starter, with one thread and the same environment; an orphan if the starter died
 *   executing    the new program, whose environment the kernel has not set yet
 */
import fs from "node:fs";
import { startTicksOf, TICK_MS } from "./proc-table.ts";
import type { ProcessRow } from "./process-source.ts";

/** One second in clock ticks. A process that is still unclear after that is not waited for. */
const NEWBORN_TICKS_MAX = 100;

let ownTicks: number | undefined;

/** @throws the system's error when it cannot be read now */
export function isNewborn({ pid, parent, threads, startTicks }: ProcessRow): boolean {
  ownTicks ??= startTicksOf(process.pid) ?? 0;
  const ageTicks = ownTicks + performance.now() / TICK_MS - startTicks;
  if (ageTicks > NEWBORN_TICKS_MAX) return false;
  return isForked(pid, parent, threads) || isExecuting(pid);
}

/** A Node process always has many threads, so a copy with one thread is only forked. A live parent ends its own children. */
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
