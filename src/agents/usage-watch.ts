/**
 * Looks now and then at what a running program uses: once it has ended it is too late, because Node does not say what a child has
 * used. So the figures are those of the last look, and a program that ends before the first one has none.
 */
import { addUsage, type RunUsage } from "../core/run-usage.ts";
import { type ProcessUsage, readUsage } from "../host/process-usage.ts";

const LOOK_MS = { min: 100, max: 5000 } as const;
/** At most this part of a program's time is not seen at its end, up to `LOOK_MS.max`. */
const UNSEEN_PART = 1 / 10;
/** Looking takes at most this part of the time. */
const LOOKING_PART = 1 / 100;

export class UsageWatch {
  private readonly pid: number;
  private readonly sum: RunUsage;
  private readonly startedMs = performance.now();
  private timer: NodeJS.Timeout | undefined;
  private seen: ProcessUsage | undefined;

  /** @param sum to which its usage is added at its end */
  constructor(pid: number, sum: RunUsage) {
    this.pid = pid;
    this.sum = sum;
    this.timer = setTimeout(() => this.lookOn(), LOOK_MS.min);
  }

  /** Call before it is ended from outside. */
  look(): void {
    let now: ProcessUsage | undefined;
    try {
      now = readUsage(this.pid);
    } catch {
      // No descriptors are left; the next look may see it.
    }
    if (now === undefined) return;
    const { cpuMs = 0, memoryBytes = 0 } = this.seen ?? {};
    // A process that left the tree takes its time with it.
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
    // Without /proc nothing is ever seen.
    if (this.seen === undefined) return;
    const nowMs = performance.now();
    const dueMs = Math.max(LOOK_MS.min, (nowMs - this.startedMs) * UNSEEN_PART);
    const ms = Math.max(Math.min(LOOK_MS.max, dueMs), (nowMs - fromMs) / LOOKING_PART);
    this.timer = setTimeout(() => this.lookOn(), ms);
  }
}
