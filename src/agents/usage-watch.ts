/**
 * Looks from time to time at what a running program uses. After its end it is too late, because Node does not report what a child has
 * used. So the figures are those of the last look, and a program that ends before the first look has none.
 */
import { addUsage, type RunUsage } from "../core/run-usage.ts";
import { type ProcessUsage, readUsage } from "../host/process-usage.ts";

const LOOK_MS = { min: 100, max: 5000 } as const;
/** At most this part of a program's run time passes after the last look, up to `LOOK_MS.max`. */
const UNSEEN_PART = 1 / 10;
/** Looking takes at most this part of the time. */
const LOOKING_PART = 1 / 100;

export class UsageWatch {
  private readonly startedMs = performance.now();
  private timer: NodeJS.Timeout | undefined;
  private seen: ProcessUsage | undefined;

  /** @param sum gets the program's usage added at its end */
  constructor(
    private readonly pid: number,
    private readonly sum: RunUsage,
  ) {
    this.timer = setTimeout(() => this.lookOn(), LOOK_MS.min);
  }

  /** Call this before the program is ended from outside. */
  look(): void {
    let now: ProcessUsage | undefined;
    try {
      now = readUsage(this.pid);
    } catch {
      // No descriptors are left; the next look may see it.
    }
    if (now === undefined) return;
    const { cpuMs = 0, memoryBytes = 0 } = this.seen ?? {};
    // A process that leaves the tree takes its time with it, so keep the greatest values.
    this.seen = {
      cpuMs: Math.max(cpuMs, now.cpuMs),
      memoryBytes: Math.max(memoryBytes, now.memoryBytes),
    };
  }

  /** Call once, when the program has ended. */
  close(): void {
    clearTimeout(this.timer);
    if (this.seen === undefined) return;
    const { cpuMs, memoryBytes } = this.seen;
    addUsage(this.sum, { cpu_ms: cpuMs, peak_memory_bytes: memoryBytes });
  }

  private lookOn(): void {
    const fromMs = performance.now();
    this.look();
    // Without /proc no look sees anything, so stop.
    if (this.seen === undefined) return;
    const nowMs = performance.now();
    const dueMs = Math.max(LOOK_MS.min, (nowMs - this.startedMs) * UNSEEN_PART);
    const ms = Math.max(Math.min(LOOK_MS.max, dueMs), (nowMs - fromMs) / LOOKING_PART);
    this.timer = setTimeout(() => this.lookOn(), ms);
  }
}
