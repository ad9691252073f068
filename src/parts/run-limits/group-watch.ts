/** Watches the control group of one run: reads what the kernel has refused or killed there, and what it counts. */
import type { LimitFault, RunLimits } from "../../core/run-limits.ts";
import type { RunGroup } from "../../host/run-groups.ts";
import { limitFault, overLimit, type RunUse, soonestMs } from "./judge.ts";

const LOOK_MS = { min: 20, max: 500 } as const;

export class GroupWatch {
  private timer: NodeJS.Timeout | undefined;
  use: RunUse = {};

  /** @param cpuMsBefore processor time of programs of the run that have ended (ms) */
  constructor(
    private readonly group: RunGroup,
    private readonly limits: RunLimits,
    private readonly cpuMsBefore: number,
  ) {}

  start(onFault: (fault: LimitFault) => void): void {
    const look = (): void => {
      const fault = this.tryLook();
      if (fault === undefined) {
        const ms = Math.min(LOOK_MS.max, Math.max(LOOK_MS.min, soonestMs(this.limits, this.use)));
        this.timer = setTimeout(look, ms);
        return;
      }
      // The group is killed at once, because the caller ends processes one by one.
      this.group.kill();
      onFault(fault);
    };
    this.timer = setTimeout(look, LOOK_MS.min);
  }

  /** @returns the limit that the run exceeds */
  look(): LimitFault | undefined {
    const { pids, cpuMs, kills, refusals } = this.group.read();
    // The kernel enforces the memory limit, so memory must not make the looks more frequent.
    const memoryBytes = { memoryBytes: 0 };
    this.use = { ...memoryBytes, processes: pids.length, cpuMs: this.cpuMsBefore + cpuMs };
    if (kills > 0)
      return limitFault("memory", this.limits, "its processes wanted more memory than there was");
    if (refusals > 0)
      return limitFault("processes", this.limits, "it started more than could be counted");
    return overLimit(this.limits, this.use);
  }

  /** Undefined also when no descriptor is left to read the group. The next look tries again. */
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
