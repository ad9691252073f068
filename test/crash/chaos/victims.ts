/** The processes of a pool as `/proc` shows them: who may be struck, and what a signal does to them. */
import fs from "node:fs";

export interface Victim {
  pid: number;
  /** Ticks after boot: with the pid, that very process. */
  startTicks: number;
  role: "supervisor" | "worker" | "program";
  /** Whether it stands still now (SIGSTOP). */
  isStopped: boolean;
}

/** Living processes whose arguments or environment name this directory, other than ours. */
export function findVictims(dir: string): Victim[] {
  const needle = Buffer.from(dir);
  return fs.readdirSync("/proc").flatMap((name): Victim[] => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    try {
      const cmdline = fs.readFileSync(`/proc/${pid}/cmdline`);
      const environ = fs.readFileSync(`/proc/${pid}/environ`);
      if (!cmdline.includes(needle) && !environ.includes(needle)) return [];
      const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const state = fields[0] ?? "Z";
      if (state === "Z" || state === "X") return [];
      const role = environ.includes("\0MAILCHUTE_LEASE=")
        ? "program"
        : environ.includes("\0MAILCHUTE_WORKER_BOOT=")
          ? "worker"
          : "supervisor";
      return [{ pid, startTicks: Number(fields[19]), role, isStopped: state === "T" }];
    } catch {
      // Gone between the listing and the look, or not ours to look at.
      return [];
    }
  });
}

/** @returns false when it had ended */
export function signalTo({ pid }: Pick<Victim, "pid">, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
