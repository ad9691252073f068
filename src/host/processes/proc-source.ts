/** The processes as `/proc` shows them; without `/proc` there are none. */
import fs from "node:fs";
import { readProc, readProcLink } from "../read-proc.ts";
import { isPidAlive } from "./is-pid-alive.ts";
import { isNewborn } from "./newborn.ts";
import { listProcesses, startTicksOf } from "./proc-table.ts";
import type { ProcessSource } from "./process-source.ts";

export const procSource: ProcessSource = {
  restMs: 0,
  noteProgram: () => () => {},
  bootId: () => readProc("/proc/sys/kernel/random/boot_id")?.toString() ?? "",
  pidSpace: () => readProcLink("/proc/self/ns/pid") ?? "",
  startOf: startTicksOf,
  judge(pid, startTicks) {
    if (!fs.existsSync("/proc/self/stat")) return isPidAlive(pid) ? "alive" : "dead";
    try {
      return startTicksOf(pid) === startTicks ? "alive" : "dead";
    } catch {
      return "unknown";
    }
  },
  look: () => ({
    rows: listProcesses(),
    environ: (pid) => readProc(`/proc/${pid}/environ`),
    isNewborn,
    nameOf: (pid) => readProc(`/proc/${pid}/comm`)?.toString() ?? "",
    argsOf: (pid) => readProc(`/proc/${pid}/cmdline`)?.toString(),
    cwdOf: (pid) => readProcLink(`/proc/${pid}/cwd`),
  }),
};
