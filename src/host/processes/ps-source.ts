/**
 * The processes as `ps` shows them, for systems without `/proc`. Each look starts a program, so it is the last resort. Start times are
 * whole seconds since 1970: two processes with the same pid and the same second count as the same process.
 */
import { isPidAlive } from "./is-pid-alive.ts";
import type { ProcessRow, ProcessSource } from "./process-source.ts";
import { noteProgram } from "./program-notes.ts";
import { psLook } from "./ps-look.ts";
import { parseTable } from "./ps-text.ts";
import { runBootId, runTable } from "./run-ps.ts";

/** For this long after a look (ms), a process that it showed counts as alive while its pid is in use. */
const FRESH_MS = 2000;
/** Start times may differ by this much: Linux computes them anew each time, and the result may change when the clock is adjusted. */
const SLACK_S = 1;
const REST_MS = 80;

/** @param run prints the table; tests replace it */
export function makePsSource(run = runTable): ProcessSource {
  let lastStarts: ReadonlyMap<number, number> = new Map();
  let lastLookMs = Number.NEGATIVE_INFINITY;

  /** @throws Error when the list cannot be read now, or is not complete */
  const takeRows = (): ProcessRow[] => {
    const { text, pid: ofPs } = run();
    const rows = parseTable(text).filter(({ pid }) => pid !== ofPs);
    const starts = new Map(rows.map(({ pid, startTicks }) => [pid, startTicks]));
    if (!starts.has(process.pid)) throw new Error("ps does not list this process");
    lastStarts = starts;
    lastLookMs = performance.now();
    return rows;
  };
  const startNow = (pid: number): number | undefined => {
    if (!isPidAlive(pid)) return undefined;
    takeRows();
    return lastStarts.get(pid);
  };

  return {
    restMs: REST_MS,
    bootId: runBootId,
    // A start time from /proc means something else, so processes that use /proc count as those of another place.
    pidSpace: () => "ps",
    startOf: startNow,
    judge(pid, startTicks) {
      const isFresh = performance.now() - lastLookMs < FRESH_MS;
      if (isFresh && isSame(lastStarts.get(pid), startTicks) && isPidAlive(pid)) return "alive";
      try {
        return isSame(startNow(pid), startTicks) ? "alive" : "dead";
      } catch {
        return "unknown";
      }
    },
    look: () => psLook(takeRows()),
    noteProgram,
  };
}

export const psSource: ProcessSource = makePsSource();

function isSame(foundTicks: number | undefined, startTicks: number): boolean {
  return foundTicks !== undefined && Math.abs(foundTicks - startTicks) <= SLACK_S;
}
