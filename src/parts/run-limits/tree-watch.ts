/**
 * Watches the processes of all limited runs of this worker. One look at the table of processes serves all runs. It looks more often
 * while a run is near one of its limits, but never for more than a small part of the time.
 */
import type { LimitFault, RunLimits } from "../../core/run-limits.ts";
import { leaseIn, signalAll } from "../../host/process-tree.ts";
import { readResident, readShare, readWritten } from "../../host/process-usage.ts";
import { isNewborn } from "../../host/processes/newborn.ts";
import { listUsage, startTicksOf, type UsageRow } from "../../host/processes/proc-table.ts";
import { readProc } from "../../host/read-proc.ts";
import { overLimit, type RunUse, soonestMs } from "./judge.ts";
import { type Listing, makeListing, RunTree } from "./run-tree.ts";

/** The first look comes soon, because a program may exceed a limit at its start. Short runs with large limits need none (ms). */
const LOOK_MS = { firstMax: 100, min: 20, max: 500 } as const;
/** The looks take at most this part of the time. */
const LOOKING_PART = 1 / 5;
/** Time to the next look while the system has no descriptors or memory for one (ms). */
const BLIND_MS = 250;

export interface WatchedRun {
  pid: number;
  lease: string;
  limits: RunLimits;
  /** Processor time of programs of the run that have ended (ms). */
  cpuMsBefore: number;
  onFault: (fault: LimitFault) => void;
}

/** A run that is watched, and what its processes have used. */
export class Watched {
  private readonly tree: RunTree;
  use: RunUse = {};
  /** When the next look is due (monotonic ms). */
  dueMs: number;

  constructor(readonly run: WatchedRun) {
    this.tree = new RunTree(run.pid);
    const soonMs = soonestMs(run.limits, {});
    this.dueMs = performance.now() + Math.min(LOOK_MS.firstMax, Math.max(LOOK_MS.min, soonMs));
  }

  look(listing: Listing, leased: ReadonlySet<number>): void {
    const { limits, cpuMsBefore } = this.run;
    const isWriting = (limits.disk_bytes ?? 0) > 0;
    const pids = this.tree.update(listing, leased, isWriting ? readWritten : () => 0);
    this.use = {
      processes: pids.length,
      cpuMs: cpuMsBefore + this.tree.cpuMs,
      ...(isWriting ? { writtenBytes: this.tree.writtenBytes } : {}),
      ...((limits.memory_bytes ?? 0) > 0
        ? { memoryBytes: memoryOf(pids, limits.memory_bytes ?? 0) }
        : {}),
    };
  }

  /** Ends the processes that the last look saw and that are still there, also those that have cleared their environment. */
  killLeft(): void {
    const left = this.tree.rows.filter(({ pid, startTicks }) => isStill(pid, startTicks));
    signalAll(
      left.map(({ pid }) => pid),
      "SIGKILL",
    );
  }
}

function isStill(pid: number, startTicks: number): boolean {
  try {
    return startTicksOf(pid) === startTicks;
  } catch {
    return false;
  }
}

/** Each process counts shared memory as its own. The exact sum costs more, so it is read only when the simple sum is too large. */
function memoryOf(pids: readonly number[], max: number): number {
  const resident = pids.reduce((sum, pid) => sum + readResident(pid), 0);
  if (resident <= max || pids.length === 1) return resident;
  return pids.reduce((sum, pid) => sum + (readShare(pid) ?? readResident(pid)), 0);
}

export class TreeWatch {
  private readonly runs = new Set<Watched>();
  /** The leases that were read, by pid, with the start of each process. The lease of a process does not change. */
  private leases = new Map<number, { startTicks: number; lease: string | undefined }>();
  private timer: NodeJS.Timeout | undefined;
  /** When the timer ends (monotonic ms). */
  private timerMs = 0;

  add(run: WatchedRun): Watched {
    const watched = new Watched(run);
    this.runs.add(watched);
    this.schedule(watched.dueMs - performance.now());
    return watched;
  }

  remove(watched: Watched): void {
    this.runs.delete(watched);
    if (this.runs.size > 0) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.leases.clear();
  }

  /** Sets the time of the next look. An earlier time stays, so that runs which start one after the other do not put the look off. */
  private schedule(ms: number): void {
    const dueMs = performance.now() + ms;
    if (this.timer !== undefined && this.timerMs <= dueMs) return;
    clearTimeout(this.timer);
    this.timerMs = dueMs;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.look();
    }, ms);
  }

  private look(): void {
    const fromMs = performance.now();
    try {
      this.lookAtAll(fromMs);
    } catch {
      // No descriptors or no memory are left for a look.
      if (this.runs.size > 0) this.schedule(BLIND_MS);
      return;
    }
    if (this.runs.size === 0) return;
    const nowMs = performance.now();
    let dueMs = Number.POSITIVE_INFINITY;
    for (const one of this.runs) dueMs = Math.min(dueMs, one.dueMs);
    // A look may be slow because of the very run that must be stopped. So it does not put the next look off for long.
    const restMs = Math.min(LOOK_MS.max, (nowMs - fromMs) / LOOKING_PART);
    this.schedule(Math.max(dueMs - nowMs, restMs));
  }

  private lookAtAll(nowMs: number): void {
    const listing = makeListing(listUsage());
    const byLease = this.findLeases(listing.rows);
    for (const watched of this.runs) {
      const { run } = watched;
      watched.look(listing, byLease.get(run.lease) ?? NOTHING);
      const soonMs = soonestMs(run.limits, watched.use);
      watched.dueMs = nowMs + Math.min(LOOK_MS.max, Math.max(LOOK_MS.min, soonMs));
      const fault = overLimit(run.limits, watched.use);
      if (fault === undefined) continue;
      // Reported only once, because the run ends now.
      this.runs.delete(watched);
      run.onFault(fault);
    }
  }

  /** Reads the lease of each new process. Before a look sees it, a process may leave its group, and its parent may end. */
  private findLeases(rows: readonly UsageRow[]): Map<string, Set<number>> {
    const before = this.leases;
    const found = new Map<string, Set<number>>();
    this.leases = new Map();
    for (const row of rows) {
      const known = before.get(row.pid);
      const isKnown = known !== undefined && known.startTicks === row.startTicks;
      const lease = isKnown ? known.lease : leaseIn(readProc(`/proc/${row.pid}/environ`));
      // A process that is just starting does not carry its lease yet.
      if (lease === undefined && !isKnown && isNewborn(row)) continue;
      this.leases.set(row.pid, { startTicks: row.startTicks, lease });
      if (lease === undefined) continue;
      const pids = found.get(lease);
      if (pids === undefined) found.set(lease, new Set([row.pid]));
      else pids.add(row.pid);
    }
    return found;
  }
}

const NOTHING: ReadonlySet<number> = new Set();
