/** How much work each worker gets in advance, so that it never waits for the supervisor: it depends on how fast tasks end. Pure. */
import { PREFETCH_MAX } from "../../core/limits.ts";

/** The work in advance (seconds, at the recent rate). */
const AHEAD_S = { process: 0.06, power: 0.3 };
const RATE_WINDOW_MS = 200;

export class WorkAhead {
  private settledInWindow = 0;
  private windowStartMs = 0;
  private ratePerS = 0;

  constructor(private readonly durability: keyof typeof AHEAD_S) {}

  noteSettled(): void {
    this.settledInWindow++;
  }

  /** @returns tasks a worker @param nowMs monotonic */
  tasksPerWorker(nowMs: number, workers: { readySlots: number; size: number }): number {
    const elapsedMs = nowMs - this.windowStartMs;
    // One task a slot may have run for hours. Only more of them show that tasks are short, and that workers need some in advance.
    const shortCount = Math.max(0, this.settledInWindow - workers.readySlots);
    if (elapsedMs >= RATE_WINDOW_MS) {
      this.ratePerS = (shortCount * 1000) / elapsedMs;
      this.settledInWindow = 0;
      this.windowStartMs = nowMs;
    } else if (elapsedMs > 10) {
      this.ratePerS = Math.max(this.ratePerS, (shortCount * 1000) / Math.max(elapsedMs, 50));
    }
    const ahead = (this.ratePerS * AHEAD_S[this.durability]) / Math.max(1, workers.size);
    return Math.min(PREFETCH_MAX, Math.floor(ahead));
  }
}
