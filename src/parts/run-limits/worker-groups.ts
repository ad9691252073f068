/** The control groups of the runs of this worker process, where there may be some. */
import fs from "node:fs";
import type { RunLimits } from "../../core/run-limits.ts";
import {
  findGroupPlace,
  type GroupSystem,
  groupSystem,
  RunGroup,
  removeEmptyGroups,
} from "../../host/run-groups.ts";

const PREFIX = "mailchute-run-";
/** A group without processes that is so old belongs to no run that is about to start (ms). */
const OLD_MS = 60_000;
/** A group counts threads, of which a process may have many: the processes are counted by the watch, this only bounds what runs away. */
const THREADS_PER_PROCESS = 8;
const THREADS_MORE = 512;

export class WorkerGroups {
  /** The directory in which they are made; undefined: there are none. */
  private readonly base: string | undefined;
  /** Groups in which something is left. */
  private left: RunGroup[] = [];
  private count = 0;
  /** A later process may have our pid. */
  private readonly prefix =
    `${PREFIX}${process.pid}-${Math.round(performance.timeOrigin).toString(36)}-`;

  /** @param controllers see `findGroupPlace` */
  constructor(system: GroupSystem, controllers?: readonly string[]) {
    const place = findGroupPlace(system, controllers);
    this.base = typeof place !== "string" && place.isEntered ? place.base : undefined;
    if (this.base !== undefined) removeEmptyGroups(this.base, PREFIX, isOld);
  }

  /** @returns undefined where there can be none: the run is watched then */
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
      // Too many groups, or they were taken from us.
      return undefined;
    }
  }

  /** What left the run on purpose may still stand in it: then it goes later. */
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
  try {
    return Date.now() - fs.statSync(dir).mtimeMs > OLD_MS;
  } catch {
    return false;
  }
}
