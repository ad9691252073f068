/** Reads how many more processes and threads the system allows this user and this container. */
import { join } from "node:path";
import { groupDirs, readGroupNumber } from "./control-groups.ts";
import { listProc, readProc } from "./read-proc.ts";

export interface ProcessRoom {
  left: number;
  max: number;
  /** What sets the limit: "ulimit -u", or the path of a `pids.max`. */
  limit: string;
}

/** A limit of this size or more is ignored: counting all threads of a user takes milliseconds on a full machine. */
const COUNTED_MAX = 8192;
/** A process with one of these may exceed `ulimit -u`: CAP_SYS_ADMIN, CAP_SYS_RESOURCE. */
const FREE_CAPABILITIES = (1n << 21n) | (1n << 24n);

/** The tightest limit that can be seen from here; undefined when no limit is near. */
export function processRoom(): ProcessRoom | undefined {
  try {
    return [userRoom(), ...containerRooms()]
      .filter((room) => room !== undefined)
      .toSorted((a, b) => a.left - b.left)[0];
  } catch {
    // No descriptor is left to read the limits.
    return undefined;
  }
}

export function describeRoom({ limit, max, left }: ProcessRoom): string {
  return `${limit} allows ${max} processes and threads, and ${Math.max(0, left)} are left`;
}

function userRoom(): ProcessRoom | undefined {
  const limits = readProc("/proc/self/limits")?.toString() ?? "";
  const max = Number(/^Max processes\s+(\d+)/m.exec(limits)?.[1] ?? Number.NaN);
  if (!(max <= COUNTED_MAX) || mayExceed()) return undefined;
  return { left: max - countOwnThreads(), max, limit: "ulimit -u" };
}

/** The processes and threads of this user. @throws the system's error when they cannot be read now */
export function countOwnThreads(): number {
  const uid = process.getuid?.();
  let used = 0;
  for (const name of listProc("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const status = readProc(`/proc/${name}/status`)?.toString() ?? "";
    if (Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) === uid)
      used += Number(/^Threads:\s+(\d+)/m.exec(status)?.[1] ?? 1);
  }
  return used;
}

/** Whether `ulimit -u` does not hold for this user. */
export function mayExceed(): boolean {
  const status = readProc("/proc/self/status")?.toString() ?? "";
  const held = BigInt(`0x${/^CapEff:\s+([0-9a-f]+)/m.exec(status)?.[1] ?? "0"}`);
  return process.getuid?.() === 0 || (held & FREE_CAPABILITIES) !== 0n;
}

/** The limits of our control groups, from our own group upwards. */
function containerRooms(): ProcessRoom[] {
  const rooms: ProcessRoom[] = [];
  for (const dir of groupDirs("pids")) {
    const max = readGroupNumber(dir, "pids.max");
    const used = readGroupNumber(dir, "pids.current");
    if (max !== undefined && max <= COUNTED_MAX && used !== undefined)
      rooms.push({ left: max - used, max, limit: join(dir, "pids.max") });
  }
  return rooms;
}
