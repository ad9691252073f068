/** Starts and watches one program under the limits of its run. */
import os from "node:os";
import type { LimitedProgram, ProgramStart } from "../../agents/run-limiter.ts";
import type { LimitFault, RunLimits } from "../../core/run-limits.ts";
import { findProgram } from "../../host/find-program.ts";
import { hostKind } from "../../host/host-kind.ts";
import { countOwnThreads, mayExceed } from "../../host/process-room.ts";
import type { RunGroup } from "../../host/run-groups.ts";
import { GroupWatch } from "./group-watch.ts";
import { limitFault } from "./judge.ts";
import { TreeWatch, type Watched } from "./tree-watch.ts";
import { runGroups } from "./worker-groups.ts";
import { type SystemLimits, wrapProgram } from "./wrap.ts";

/** A file may exceed `disk_bytes` by this much, so that the watch reports it before the system refuses it (bytes). */
const FILE_SLACK = 64 * 1024 * 1024;
/** The limit of the user is this much higher than that of the run, because other programs of the user start processes, too. */
const USER_SLACK = 512;
/** A shell adds this to the number of the signal that ended its program. The sum is its exit code. */
const SHELL_BASE = 128;

const watch = new TreeWatch();

/** The programs of a run that have ended. */
export interface PastPrograms {
  /** The processor time that they used (ms). */
  cpuMs: number;
  /** Each ends what one of them has left behind. */
  endLeft: (() => void)[];
}

/** @param past this program is added at its end */
export function limitProgram(
  limits: RunLimits,
  start: ProgramStart,
  past: PastPrograms,
): LimitedProgram {
  const { argv, env, cwd, lease } = start;
  // A missing program is started without a shell, so that the error names the program and not the shell.
  const isThere = findProgram(argv[0] ?? "", env["PATH"], cwd) !== undefined;
  const group = isThere ? runGroups().make(limits) : undefined;
  const system = systemLimits(limits, past.cpuMs, group);
  const counted = group === undefined ? undefined : new GroupWatch(group, limits, past.cpuMs);
  // Only the table of processes counts what a process writes. A control group does not.
  const seen = group === undefined ? limits : { disk_bytes: limits.disk_bytes ?? 0 };
  const isSeen = hostKind() === "proc" && Object.values(seen).some((max) => max > 0);
  let watched: Watched | undefined;
  return {
    argv: isThere ? wrapProgram(argv, system, env) : argv,
    watch(pid, onFault) {
      counted?.start(onFault);
      if (isSeen)
        watched = watch.add({ pid, lease, limits: seen, cpuMsBefore: past.cpuMs, onFault });
    },
    close(end) {
      if (watched !== undefined) watch.remove(watched);
      counted?.stop();
      const fault = counted === undefined ? undefined : lastLook(counted);
      const cpuMs = counted?.use.cpuMs ?? watched?.use.cpuMs ?? 0;
      past.cpuMs = Math.max(past.cpuMs, cpuMs);
      past.endLeft.push(() => {
        group?.kill();
        watched?.killLeft();
      });
      if (group !== undefined) runGroups().remove(group);
      return fault ?? (isThere ? endedBySystem(limits, system, end) : undefined);
    },
  };
}

/** Looks once more, because the kernel may have killed the program after the last look. */
function lastLook(counted: GroupWatch): LimitFault | undefined {
  try {
    return counted.look();
  } catch {
    return undefined;
  }
}

function systemLimits(
  limits: RunLimits,
  usedMs: number,
  group: RunGroup | undefined,
): SystemLimits {
  const { cpu_ms: cpuMs = 0, disk_bytes: disk = 0, memory_bytes: memory = 0 } = limits;
  const processes = limits.processes ?? 0;
  const user =
    group === undefined && processes > 0 && !mayExceed() ? userProcesses(processes) : undefined;
  return {
    // One second above the limit, because the watch reports first and more exactly.
    ...(cpuMs > 0 ? { cpuS: Math.ceil(Math.max(0, cpuMs - usedMs) / 1000) + 1 } : {}),
    ...(disk > 0 ? { fileBytes: disk + FILE_SLACK } : {}),
    ...(user === undefined ? {} : { userProcesses: user }),
    ...(memory > 0 && hostKind() === "proc" ? { isFirstToGo: true } : {}),
    ...(group === undefined ? {} : { groupFile: group.entry }),
  };
}

function userProcesses(processes: number): number | undefined {
  try {
    const now = countOwnThreads();
    // If the threads cannot be counted, any number might be too small.
    return now === 0 ? undefined : now + processes + USER_SLACK;
  } catch {
    return undefined;
  }
}

/** The system ends a process over a limit by a signal. A shell around it ends with a code for that signal. */
function endedBySystem(
  limits: RunLimits,
  system: SystemLimits,
  { exitCode, signal }: { exitCode: number | null; signal: string | null },
): LimitFault | undefined {
  const isEndedBy = (name: "SIGXCPU" | "SIGXFSZ"): boolean =>
    signal === name || exitCode === SHELL_BASE + os.constants.signals[name];
  if (system.cpuS !== undefined && isEndedBy("SIGXCPU"))
    return limitFault("cpu", limits, "a process of it used all of the processor that it may");
  if (system.fileBytes !== undefined && isEndedBy("SIGXFSZ"))
    return limitFault("disk", limits, "a file of it became too large");
  return undefined;
}
