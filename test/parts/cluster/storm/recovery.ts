/**
 * Extends the faults of the servers until they carry jobs and results again: servers of version 2.9 may need a minute after most of them
 * have started again, and until then nobody can take a job back. Pure.
 */
import type { Struck } from "./check.ts";

/** So many tasks have settled since the servers were let go when they carry again. Results of a few may have been at home already. */
const SETTLED_AGAIN = 20;

export class Recovery {
  private open: { fault: Struck; settledAtEnd?: number }[] = [];

  watch(fault: Struck): void {
    this.open.push({ fault });
  }

  /** @param settled how many tasks have settled so far @param nowMs epoch ms */
  look(settled: number, nowMs: number): void {
    this.open = this.open.filter((one) => {
      if (nowMs < one.fault.toMs) return true;
      one.settledAtEnd ??= settled;
      one.fault.toMs = nowMs;
      return settled - one.settledAtEnd < SETTLED_AGAIN;
    });
  }
}
