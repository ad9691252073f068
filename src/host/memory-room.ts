/** Reads how much memory the system allows this process and its container. */
import { join } from "node:path";
import { bytesText } from "../core/bytes-text.ts";
import { groupDirs, readGroupEntry, readGroupNumber } from "./control-groups.ts";
import { readProc } from "./read-proc.ts";

export interface MemoryRoom {
  left: number;
  max: number;
  /** The path of the file that sets the limit. */
  limit: string;
}

/** Files by version of the control groups: the limit, the memory in use, and how much of that is file cache, which can be dropped. */
const GROUP_FILES = [
  { max: "memory.max", used: "memory.current", cached: ["inactive_file", "active_file"] },
  {
    max: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: ["total_inactive_file", "total_active_file"],
  },
];
/** Files with the kernel's count of the processes of a group that it killed. */
const KILL_FILES = ["memory.events", "memory.oom_control"];
/** Version 1 shows "no limit" as a number larger than all memory. */
const NO_LIMIT = 2 ** 60;

/** How much address space each process may have (bytes); undefined when there is no limit. */
export function addressSpaceMax(): number | undefined {
  const limits = tryAsk(() => readProc("/proc/self/limits"))?.toString() ?? "";
  const max = Number(/^Max address space\s+(\d+)/m.exec(limits)?.[1] ?? Number.NaN);
  return Number.isNaN(max) ? undefined : max;
}

/** The tightest limit of our control groups; undefined when there is none. */
export function groupMemory(): MemoryRoom | undefined {
  const rooms = tryAsk(() => groupDirs("memory").flatMap((dir) => roomIn(dir) ?? [])) ?? [];
  return rooms.toSorted((a, b) => a.left - b.left)[0];
}

function roomIn(dir: string): MemoryRoom | undefined {
  for (const { max: limit, used: inUse, cached } of GROUP_FILES) {
    const max = readGroupNumber(dir, limit);
    const used = readGroupNumber(dir, inUse);
    if (max === undefined || max > NO_LIMIT || used === undefined) continue;
    const files = cached.map((name) => readGroupEntry(dir, "memory.stat", name) ?? 0);
    const left = max - used + files.reduce((sum, bytes) => sum + bytes, 0);
    return { left: Math.min(max, left), max, limit: join(dir, limit) };
  }
  return undefined;
}

/** How many processes of our control group, or of the machine, the kernel has killed so far because memory was short. */
export function countMemoryKills(): number {
  return (
    tryAsk(() => {
      for (const dir of groupDirs("memory")) {
        for (const file of KILL_FILES) {
          const kills = readGroupEntry(dir, file, "oom_kill");
          if (kills !== undefined) return kills;
        }
      }
      return readGroupEntry("/proc", "vmstat", "oom_kill");
    }) ?? 0
  );
}

/** What programs can still get, and what there is: of the machine, or of the tightest of our control groups (bytes). Undefined where the kernel does not say it. */
export function memoryRoom(): Pick<MemoryRoom, "left" | "max"> | undefined {
  const text = tryAsk(() => readProc("/proc/meminfo"))?.toString() ?? "";
  const bytesOf = (name: string): number =>
    1024 * Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(text)?.[1] ?? Number.NaN);
  const [left, max] = [bytesOf("MemAvailable"), bytesOf("MemTotal")];
  if (Number.isNaN(left + max)) return undefined;
  const group = groupMemory();
  return group !== undefined && group.left < left ? group : { left, max };
}

/** For how much of the last ten seconds some process of our group, or else of the machine, waited for memory (%). */
export function memoryPressure(): number {
  const dirs = tryAsk(() => groupDirs("memory")) ?? [];
  const files = dirs.map((dir) => join(dir, "memory.pressure"));
  for (const file of [...files, "/proc/pressure/memory"]) {
    const some = /^some avg10=([\d.]+)/m.exec(tryAsk(() => readProc(file))?.toString() ?? "");
    if (some !== null) return Number(some[1]);
  }
  return 0;
}

export function describeAddressSpace(max: number): string {
  return `ulimit -v allows each process ${bytesText(max)} of address space`;
}

export function describeGroupMemory({ limit, max, left }: MemoryRoom): string {
  return `${limit} allows ${bytesText(max)}, and ${bytesText(Math.max(0, left))} are left`;
}

/** Returns undefined instead of an error, such as when no descriptor is left to read the file. */
function tryAsk<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
