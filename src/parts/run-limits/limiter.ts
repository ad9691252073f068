/** Keeps the programs of runs within their limits. The system enforces some limits, and mailchute watches the rest. */
import type { MakeLimiter, ProgramStart, RunLimiter } from "../../agents/run-limiter.ts";
import type { RunLimits } from "../../core/run-limits.ts";
import type { PastPrograms } from "./limited-program.ts";

export const runLimits: MakeLimiter = (limits) => new LoadedLimiter(limits);

/** Loads the code for the first run that has limits. */
class LoadedLimiter implements RunLimiter {
  private readonly past: PastPrograms = { cpuMs: 0, endLeft: [] };

  constructor(readonly limits: RunLimits) {}

  async begin(start: ProgramStart) {
    const { limitProgram } = await import("./limited-program.ts");
    return limitProgram(this.limits, start, this.past);
  }

  endLeft(): void {
    for (const end of this.past.endLeft) end();
  }
}
