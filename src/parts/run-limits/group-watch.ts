/** Watches the control group of one run: what the kernel has stopped there, and what it counts for us. */
import type { LimitFault, RunLimits } from "../../core/run-limits.ts";
import type { RunGroup } from "../../host/run-groups.ts";
import { limitFault, overLimit, type RunUse, soonestMs } from "./judge.ts";

const LOOK_MS = { min: 20, max: 500 } as const;

export class GroupWatch {
  private readonly group: RunGroup;
  private readonly limits: RunLimits;
  private readonly cpuMsBefore: number;
  private timer: NodeJS.Timeout | undefined;
  use: RunUse = {};

  /** @param cpuMsBefore of programs of the run that have ended */
  constructor(group: RunGroup, limits: RunLimits, cpuMsBefore: number) {
    this.group = group;
    this.limits = limits;
    this.cpuMsBefore = cpuMsBefore;
  }

  start(onFault: (fault: LimitFault) => void): void {
    const look = (): void => {
      const fault = this.tryLook();
      if (fault === undefined) {
        const ms = Math.min(LOOK_MS.max, Math.max(LOOK_MS.min, soonestMs(this.limits, this.use)));
        this.timer = setTimeout(look, ms);
        return;
      }
      // At once: the caller ends processes one by one.
      this.group.kill();
      onFault(fault);
    };
    this.timer = setTimeout(look, LOOK_MS.min);
  }

  /** @returns the limit that it is over */
  look(): LimitFault | undefined {
    const { pids, cpuMs, kills, refusals } = this.group.read();
    // The kernel sees to the memory: nothing is to be expected from more looks.
    const memoryBytes = { memoryBytes: 0 };
    this.use = { ...memoryBytes, processes: pids.length, cpuMs: this.cpuMsBefore + cpuMs };
    if (kills > 0)
      return limitFault("memory", this.limits, "its processes wanted more memory than there was");
    if (refusals > 0)
      return limitFault("processes", this.limits, "it started more than could be counted");
    return overLimit(this.limits, this.use);
  }

  /** Without descriptors for a look the next one tells. */
  private tryLook(): LimitFault | undefined {
    try {
      return this.look();
    } catch {
      return undefined;
    }
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}
