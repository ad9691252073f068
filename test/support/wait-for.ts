/** Waiting without sleeps: for a condition, with a deadline. */
import { setTimeout as wait } from "node:timers/promises";
import { timeLimitMs } from "./time-limit.ts";

export interface WaitOptions {
  /** Default 10 s; more on a busy machine. */
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
  options: WaitOptions,
): Promise<NonNullable<T>> {
  const timeoutMs = options.timeoutMs ?? timeLimitMs(10_000);
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    if (performance.now() >= deadline)
      throw new Error(`waited ${timeoutMs} ms for ${options.what}`);
    await wait(POLL_MS);
  }
}
