/** The processes of this machine, as far as `/proc` tells; elsewhere none. */
import fs from "node:fs";
import { listDir } from "./list-dir.ts";

export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  session: number;
  threads: number;
  /** Clock ticks after boot. */
  startTicks: number;
}

/** All but zombies. */
export function listProcesses(): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const name of listDir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    try {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (fields[0] === "Z" || fields[0] === "X") continue;
      const [, parent, group, session] = fields.map(Number) as [number, number, number, number];
      const threads = Number(fields[17]);
      rows.push({ pid, parent, group, session, threads, startTicks: Number(fields[19]) });
    } catch {
      // Gone between the listing and the look.
    }
  }
  return rows;
}
