/** Decides which times of a schedule fire now. Pure. Times are epoch ms. */
import type { Schedule } from "./schedule.ts";
import { timesBetween } from "./times.ts";

export interface Decision {
  /** The times that fire, the oldest first. */
  fire: readonly number[];
  /** How many do not, and why. */
  skipped: readonly { count: number; why: SkipReason }[];
  /** All times up to this one are decided. */
  decidedToMs: number;
  /** The task of the earlier time has to be cancelled. */
  replaces: boolean;
}

export type SkipReason = "paused" | "missed" | "overlap";

/** Of times that went by unseen at most so many are counted. */
const COUNTED_MAX = 1000;

/**
 * @param decidedToMs all times up to this one are decided
 * @param isBusy whether the task of an earlier time has not ended
 * @returns undefined when there is nothing to decide, or when it has to wait for that task
 */
export function decide(
  schedule: Schedule,
  decidedToMs: number,
  nowMs: number,
  isBusy: boolean,
  isPaused: boolean,
): Decision | undefined {
  const due = timesBetween(schedule, decidedToMs, nowMs, COUNTED_MAX);
  if (due.length === 0) return undefined;
  const base = { decidedToMs: nowMs, replaces: false };
  const none = (why: SkipReason): Decision => ({
    ...base,
    fire: [],
    skipped: [{ count: due.length, why }],
  });
  if (isPaused) return none("paused");
  const { overlap, missed } = schedule;
  if (isBusy && overlap === "wait") return undefined;
  if (isBusy && overlap === "skip") return none("overlap");
  const chosen = choose(schedule, due, nowMs);
  // Tasks of one schedule do not meet, unless it says so.
  const isOneOnly = overlap !== "allow" && missed !== "all";
  const fire = (isOneOnly ? chosen.slice(0, 1) : chosen).reverse();
  const count = due.length - fire.length;
  return {
    ...base,
    fire,
    skipped: count === 0 ? [] : [{ count, why: "missed" }],
    replaces: isBusy && overlap === "replace" && fire.length > 0,
  };
}

/** @param due the newest first. @returns the newest first */
function choose(
  { missed, missedMax, missedWithinMs, graceMs }: Schedule,
  due: readonly number[],
  nowMs: number,
): number[] {
  const onTime = due.filter((ms) => nowMs - ms <= graceMs);
  const late = due.slice(onTime.length);
  if (missed === "none") return onTime;
  if (missed === "one") return [...onTime, ...late.slice(0, 1)];
  return [...onTime, ...late.filter((ms) => nowMs - ms <= missedWithinMs).slice(0, missedMax)];
}
