/** Reads the table of processes from `/proc`. */
import { listProc, readProc } from "../read-proc.ts";
import type { ProcessRow } from "./process-source.ts";

/** Length of a clock tick in `/proc` (ms). It is the same on all Linux machines. */
export const TICK_MS = 10;

/** All processes except zombies. @throws the system's error when they cannot be read now */
export function listProcesses(): ProcessRow[] {
  return list((row) => row);
}

function list<Row>(make: (row: ProcessRow, fields: readonly string[]) => Row): Row[] {
  const rows: Row[] = [];
  for (const name of listProc("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const fields = fieldsOf(pid);
    // The process ended between the listing and the look.
    if (fields === undefined) continue;
    const [, parent, group, session] = fields.map(Number) as [number, number, number, number];
    const threads = Number(fields[17]);
    const startTicks = Number(fields[19]);
    rows.push(make({ pid, parent, group, session, threads, startTicks }, fields));
  }
  return rows;
}

/** A process with the processor time that it has used. */
export interface UsageRow extends ProcessRow {
  ownMs: number;
  /** The time of its children that have ended and were waited for, and of their children. */
  childrenMs: number;
}

/** All processes except zombies. @throws the system's error when they cannot be read now */
export function listUsage(): UsageRow[] {
  return list((row, fields) => {
    const [user = 0, system = 0, ofChildren = 0, inChildren = 0] = fields.slice(11, 15).map(Number);
    return {
      ...row,
      ownMs: (user + system) * TICK_MS,
      childrenMs: (ofChildren + inChildren) * TICK_MS,
    };
  });
}

/** The start time of a live process (zombies are dead), or undefined. @throws the system's error when it cannot be read now */
export function startTicksOf(pid: number): number | undefined {
  const fields = fieldsOf(pid);
  return fields === undefined ? undefined : Number(fields[19]);
}

/** The parent of a live process; undefined when it is gone, and 0 for the first process. @throws the system's error when it cannot be read now */
export function parentOf(pid: number): number | undefined {
  const fields = fieldsOf(pid);
  return fields === undefined ? undefined : Number(fields[1]);
}

/** The fields after its name in `stat`; undefined for a process that is gone, or a zombie. */
function fieldsOf(pid: number): string[] | undefined {
  const stat = readProc(`/proc/${pid}/stat`)?.toString();
  if (stat === undefined) return undefined;
  // The name in parentheses may hold any character; the fields follow its last ')'.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields;
}
