/** Schedules the next tick: at once, or at a time. Several requests lead to one tick. */
import type { Clock } from "../core/clock.ts";

/** Pause after a tick that threw (ms). */
const BROKEN_MS = 250;
const FAR = Number.POSITIVE_INFINITY;

export class TickTimer {
  private isDue = false;
  private isStopped = false;
  private timer: NodeJS.Timeout | undefined;
  private timerAtMs = FAR;

  /** @param onError gets what a tick throws; the next tick still comes */
  constructor(
    private readonly clock: Clock,
    private readonly tick: () => void,
    private readonly onError: (error: unknown) => void,
  ) {}

  wake(): void {
    if (this.isDue || this.isStopped) return;
    this.isDue = true;
    setImmediate(() => {
      this.isDue = false;
      try {
        this.tick();
      } catch (error) {
        // One error must not end hours of work: report it and look again.
        this.onError(error);
        this.sleepUntil(this.clock.monotonicMs() + BROKEN_MS);
      }
    });
  }

  /** @param atMs monotonic */
  sleepUntil(atMs: number): void {
    if (this.isStopped || this.timerAtMs === atMs) return;
    clearTimeout(this.timer);
    this.timerAtMs = atMs;
    const inMs = Math.max(1, Math.ceil(atMs - this.clock.monotonicMs()));
    this.timer = setTimeout(() => {
      this.timerAtMs = FAR;
      this.wake();
    }, inMs);
  }

  /** From now on no tick is scheduled. */
  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }
}
