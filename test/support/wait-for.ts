/** Waiting without sleeps: for a condition, with a deadline. */
import { setTimeout as wait } from "node:timers/promises";
import { timeLimitMs } from "./time-limit.ts";

export interface WaitOptions {
  /** As it is on a free machine: a busy one gets more. Default 30 s: some machines have half the speed of others. */
  timeoutMs?: number;
  /** What is waited for, as it reads after "waited for". */
  what: string;
}

const POLL_MS = 10;

/**
 * Asks every 10 ms until the answer is truthy, and returns it.
 * @throws Error that names `what` after the deadline; an error of the condition itself is passed on at once
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 30_000, what }: WaitOptions,
): Promise<NonNullable<T>> {
  const from = performance.now();
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    // Asked again each time: a machine may get busy while it waits.
    const limitMs = timeLimitMs(timeoutMs);
    if (performance.now() - from >= limitMs)
      throw new Error(`waited ${Math.round(limitMs)} ms for ${what}`);
    await wait(POLL_MS);
  }
}
