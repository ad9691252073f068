/**
 * Counts how many tasks completed and failed in each of the last minutes. The past is read from the end of the journal. From then
 * on the counts of `metrics.json` are used, so that a fast drain costs no reading. An unknown minute is null, never 0.
 */

import { SKIPPED_MARKS } from "../core/skipped.ts";
import type { StateTree } from "../core/state-tree.ts";
import { searchBack } from "../journal/read-back.ts";

export const MINUTES = 60;
const MINUTE_MS = 60_000;
/** How many pieces of the journal are read for the past (256 KiB each, 1 ms). */
const PIECES_MAX = 32;
const COMPLETED = '{"event":"completed"';

export interface MinuteCounts {
  /** When the last minute began (epoch ms). The lists end with this minute. */
  last_minute_ms: number;
  completed: (number | null)[];
  failed: (number | null)[];
}

interface Totals {
  completed: number;
  failed: number;
  /** The counts include the journal up to this place. */
  place: string;
}

interface Minute {
  completed: number;
  failed: number;
}

/** After a longer pause between two looks (ms) it is not known in which minute the tasks ended, and the journal is read again. */
const LATE_MS = 10_000;

export class DoneRate {
  private readonly minutes = new Map<number, Minute>();
  /** When it looked last (epoch ms); undefined before the first look. */
  private lookedMs: number | undefined;
  private last: Totals | undefined;

  constructor(private readonly tree: StateTree) {}

  /**
   * @param metrics the document `metrics.json`; null when there is none
   * @param isCounting a supervisor keeps it up to date
   */
  look(metrics: Record<string, unknown> | null, isCounting: boolean, nowMs: number): MinuteCounts {
    const minute = Math.floor(nowMs / MINUTE_MS);
    const totals = totalsOf(metrics);
    const isLate = nowMs - (this.lookedMs ?? 0) > LATE_MS;
    this.lookedMs = nowMs;
    if (isLate || (this.last === undefined && totals !== undefined)) {
      this.minutes.clear();
      this.readPast(minute, totals?.place);
      this.last = totals;
    } else if (
      this.last !== undefined &&
      totals !== undefined &&
      totals.place !== this.last.place
    ) {
      const now = this.of(minute);
      now.completed += Math.max(0, totals.completed - this.last.completed);
      now.failed += Math.max(0, totals.failed - this.last.failed);
      this.last = totals;
    }
    if (isCounting) this.of(minute);
    for (const old of this.minutes.keys()) if (old <= minute - MINUTES) this.minutes.delete(old);
    const list = Array.from({ length: MINUTES }, (_, i) =>
      this.minutes.get(minute - MINUTES + 1 + i),
    );
    return {
      last_minute_ms: minute * MINUTE_MS,
      completed: list.map((one) => one?.completed ?? null),
      failed: list.map((one) => one?.failed ?? null),
    };
  }

  private readPast(minute: number, before: string | undefined): void {
    let pieces = 0;
    let oldest = minute;
    let isAll = true;
    for (const { line } of searchBack(this.tree.events, [COMPLETED], before)) {
      if (line === undefined) {
        isAll = ++pieces < PIECES_MAX;
        if (!isAll) break;
        continue;
      }
      const at = Math.floor(Number(/"t":(\d+)/.exec(line)?.[1] ?? Number.NaN) / MINUTE_MS);
      if (!(at <= minute)) continue;
      if (at <= minute - MINUTES) break;
      oldest = Math.min(oldest, at);
      const counts = this.of(at);
      if (SKIPPED_MARKS.some((mark) => line.includes(mark))) continue;
      if (line.includes('"status":"failed"')) counts.failed++;
      else counts.completed++;
    }
    // Only a part of the oldest minute was read.
    if (!isAll) this.minutes.delete(oldest);
  }

  private of(minute: number): Minute {
    const counts = this.minutes.get(minute) ?? { completed: 0, failed: 0 };
    this.minutes.set(minute, counts);
    return counts;
  }
}

function totalsOf(metrics: Record<string, unknown> | null): Totals | undefined {
  const tasks = metrics?.["tasks"] as Partial<Record<string, unknown>> | undefined;
  const journal = metrics?.["journal"] as Partial<Record<string, unknown>> | undefined;
  const [completed, failed] = [tasks?.["completed"], tasks?.["failed"]];
  if (typeof completed !== "number" || typeof failed !== "number") return undefined;
  return { completed, failed, place: `${Number(journal?.["ino"])}.${Number(journal?.["offset"])}` };
}
