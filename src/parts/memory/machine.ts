/** What the kernel says about memory. Only Linux says it. */
import { memoryPressure, memoryRoom } from "../../host/memory-room.ts";
import { LEASE_VARIABLE } from "../../host/process-tree.ts";
import { childrenOf, readResidentTree } from "../../host/process-usage.ts";
import { startTicksOf } from "../../host/processes/proc-table.ts";
import { readProc } from "../../host/read-proc.ts";
import type { MemoryLook, RunMemory } from "./admit.ts";

/** The programs of runs are children of this process, or of its workers. */
const GENERATIONS = 2;

/** @returns undefined when the kernel does not say it, or cannot be asked now */
export function lookAtMemory(): MemoryLook | undefined {
  try {
    const room = memoryRoom();
    if (room === undefined) return undefined;
    const { left: freeBytes, max: allBytes } = room;
    const runs = runsBelow(process.pid, GENERATIONS);
    return { freeBytes, allBytes, runs, pressure: memoryPressure() };
  } catch {
    return undefined;
  }
}

function runsBelow(pid: number, generations: number): RunMemory[] {
  return childrenOf(pid).flatMap((child) => {
    const environ = readProc(`/proc/${child}/environ`)?.toString() ?? "";
    const lease = variable(environ, LEASE_VARIABLE);
    const id = variable(environ, "MAILCHUTE_TASK_ID");
    const isOurs = lease !== undefined && lease !== process.env[LEASE_VARIABLE];
    if (!isOurs || id === undefined)
      return generations > 1 ? runsBelow(child, generations - 1) : [];
    return [{ id, lease, bytes: readResidentTree(child), born: startTicksOf(child) ?? 0 }];
  });
}

function variable(environ: string, name: string): string | undefined {
  const at = `\0${environ}`.indexOf(`\0${name}=`);
  return at === -1 ? undefined : environ.slice(at + name.length + 1).split("\0", 1)[0];
}
