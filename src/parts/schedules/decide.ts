/** Decides which times of a schedule fire now. Pure. Times are epoch ms. */
import type { Schedule } from "./schedule.ts";
import { timesBetween } from "./times.ts";

export interface Decision {
  /** The times that fire, the oldest first. */
  fire: readonly number[];
  /** How many times do not fire, and why. */
  skipped: readonly { count: number; why: SkipReason }[];
  /** All times up to this one are decided. */
  decidedToMs: number;
  /** True if the task of the earlier time must be cancelled. */
  replaces: boolean;
}

export type SkipReason = "paused" | "missed" | "overlap";

/** At most this many times that passed without a decision are counted. */
const COUNTED_MAX = 1000;

/**
 * @param decidedToMs all times up to this one are decided
 * @param isBusy true if the task of an earlier time has not ended
 * @returns undefined when there is nothing to decide, or when the decision must wait for that task
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
  // Two tasks of one schedule run at the same time only if the schedule allows it.
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
