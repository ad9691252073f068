/** Lists the processes of this machine from `/proc`; without `/proc` the list is empty. */
import { listProc, readProc } from "./read-proc.ts";

/** Length of a clock tick in `/proc` (ms): Linux has the same on all machines. */
export const TICK_MS = 10;

export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  session: number;
  threads: number;
  /** Clock ticks after boot. */
  startTicks: number;
}

/** All processes except zombies. @throws the system's error when they cannot be read now */
export function listProcesses(): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const name of listProc("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const stat = readProc(`/proc/${pid}/stat`)?.toString();
    // The process ended between the listing and the look.
    if (stat === undefined) continue;
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") continue;
    const [, parent, group, session] = fields.map(Number) as [number, number, number, number];
    const threads = Number(fields[17]);
    rows.push({ pid, parent, group, session, threads, startTicks: Number(fields[19]) });
  }
  return rows;
}
