/** What a process and its descendants use, from `/proc`. Reads only these processes, not the list of all. */
import { TICK_MS } from "./processes/proc-table.ts";
import { listProc, readProc } from "./read-proc.ts";

export interface ProcessUsage {
  /** Processor time (ms, in steps of 10). Includes descendants that have ended and were waited for. */
  cpuMs: number;
  /** The memory that all of them have now, or the peak of a single one, if that is more. */
  memoryBytes: number;
}

/** Reads at most about this many processes of a tree. */
const PROCESSES_MAX = 500;

/**
 * @returns undefined when the process cannot be seen: it is gone, or there is no `/proc`
 * @throws the system's error when it cannot be read now
 */
export function readUsage(rootPid: number): ProcessUsage | undefined {
  let ticks = 0;
  let kib = 0;
  let peakKib = 0;
  const pids = [rootPid];
  // The list grows while it is read.
  for (const pid of pids) {
    const stat = readProc(`/proc/${pid}/stat`)?.toString();
    const status = readProc(`/proc/${pid}/status`)?.toString() ?? "";
    if (stat === undefined) {
      if (pid === rootPid) return undefined;
      continue;
    }
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // utime and stime, and the same for the children that were waited for.
    for (const field of fields.slice(11, 15)) ticks += Number(field);
    kib += numberOf(status, "VmRSS");
    peakKib = Math.max(peakKib, numberOf(status, "VmHWM"));
    if (pids.length < PROCESSES_MAX) pids.push(...childrenOf(pid));
  }
  return { cpuMs: ticks * TICK_MS, memoryBytes: Math.max(kib, peakKib) * 1024 };
}

/** What one process has in memory now, counting what it shares (bytes). @throws like `readUsage` */
export function readResident(pid: number): number {
  const status = readProc(`/proc/${pid}/status`)?.toString() ?? "";
  return (numberOf(status, "VmRSS") + numberOf(status, "VmSwap")) * 1024;
}

/** What a process and its descendants have in memory now (bytes). @throws like `readUsage` */
export function readResidentTree(rootPid: number): number {
  const pids = [rootPid];
  let bytes = 0;
  // The list grows while it is read.
  for (const pid of pids) {
    bytes += readResident(pid);
    if (pids.length < PROCESSES_MAX) pids.push(...childrenOf(pid));
  }
  return bytes;
}

/** The same, but of shared memory it counts only the process's share; slow. Undefined when it is not visible. @throws like `readUsage` */
export function readShare(pid: number): number | undefined {
  const rollup = readProc(`/proc/${pid}/smaps_rollup`)?.toString() ?? "";
  if (rollup === "") return undefined;
  return (numberOf(rollup, "Pss") + numberOf(rollup, "SwapPss")) * 1024;
}

/** What it and its ended children wrote to disks, without cancelled writes (bytes). @throws like `readUsage` */
export function readWritten(pid: number): number {
  const io = readProc(`/proc/${pid}/io`)?.toString() ?? "";
  const count = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, "m").exec(io)?.[1] ?? 0);
  return Math.max(0, count("write_bytes") - count("cancelled_write_bytes"));
}

/** Each thread has its own list of children. @throws like `readUsage` */
export function childrenOf(pid: number): number[] {
  const children: number[] = [];
  for (const thread of listProc(`/proc/${pid}/task`)) {
    const text = readProc(`/proc/${pid}/task/${thread}/children`)?.toString() ?? "";
    for (const child of text.split(" ")) if (child !== "") children.push(Number(child));
  }
  return children;
}

/** A process that is ending has no such line. */
function numberOf(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(status)?.[1] ?? 0);
}
