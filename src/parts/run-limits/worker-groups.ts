/** Makes and removes the control groups for runs of this worker process, if the machine allows them. */
import type { RunLimits } from "../../core/run-limits.ts";
import { statOf } from "../../host/regular-file.ts";
import {
  findGroupPlace,
  type GroupSystem,
  groupSystem,
  RunGroup,
  removeEmptyGroups,
} from "../../host/run-groups.ts";

const PREFIX = "mailchute-run-";
/** An empty group that is older than this belongs to no run that is about to start (ms). */
const OLD_MS = 60_000;
/** A group limits threads, and a process may have many. The watch counts the processes; this limit only stops a runaway program. */
const THREADS_PER_PROCESS = 8;
const THREADS_MORE = 512;

export class WorkerGroups {
  /** The directory for the groups; undefined when there can be none. */
  private readonly base: string | undefined;
  /** Groups that could not be removed yet, because processes are left in them. */
  private left: RunGroup[] = [];
  private count = 0;
  /** It has the start time, because a later process may have our pid. */
  private readonly prefix =
    `${PREFIX}${process.pid}-${Math.round(performance.timeOrigin).toString(36)}-`;

  /** @param controllers see `findGroupPlace` */
  constructor(system: GroupSystem, controllers?: readonly string[]) {
    const place = findGroupPlace(system, controllers);
    this.base = typeof place !== "string" && place.isEntered ? place.base : undefined;
    if (this.base !== undefined) removeEmptyGroups(this.base, PREFIX, isOld);
  }

  /** @returns undefined where there can be no group; then the run is watched */
  make(limits: RunLimits): RunGroup | undefined {
    if (this.base === undefined) return undefined;
    const { memory_bytes: memoryBytes = 0, processes = 0 } = limits;
    const threads = processes > 0 ? processes * THREADS_PER_PROCESS + THREADS_MORE : 0;
    try {
      return new RunGroup(this.base, `${this.prefix}${++this.count}`, {
        memoryBytes,
        threads,
      });
    } catch {
      // There are too many groups, or we may no longer make any.
      return undefined;
    }
  }

  /** A process that left the run on purpose may still be in the group. Then the group is removed later. */
  remove(group: RunGroup): void {
    this.left = [...this.left, group].filter((one) => !one.remove());
  }
}

let groups: WorkerGroups | undefined;

/** Made for the first run with limits. */
export function runGroups(): WorkerGroups {
  groups ??= new WorkerGroups(safeSystem());
  return groups;
}

function safeSystem(): GroupSystem {
  try {
    return groupSystem();
  } catch {
    return { mount: undefined, path: "/", pid: process.pid, ancestors: [] };
  }
}

function isOld(dir: string): boolean {
  const { mtimeMs = Date.now() } = statOf(dir) ?? {};
  return Date.now() - mtimeMs > OLD_MS;
}
