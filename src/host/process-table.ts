/** The processes of this machine, as far as `/proc` tells; elsewhere none. */
import { listProc, readProc } from "./read-proc.ts";

export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  session: number;
  threads: number;
  /** Clock ticks after boot. */
  startTicks: number;
}

/** All but zombies. @throws what the system says when it cannot tell now */
export function listProcesses(): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const name of listProc("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const stat = readProc(`/proc/${pid}/stat`)?.toString();
    // Gone between the listing and the look.
    if (stat === undefined) continue;
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") continue;
    const [, parent, group, session] = fields.map(Number) as [number, number, number, number];
    const threads = Number(fields[17]);
    rows.push({ pid, parent, group, session, threads, startTicks: Number(fields[19]) });
  }
  return rows;
}
