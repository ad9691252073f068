/** Says which limit a run exceeds, and how soon it could exceed one. Pure. */
import { bytesText } from "../../core/bytes-text.ts";
import type { LimitFault, LimitKind, RunLimits } from "../../core/run-limits.ts";

/** What the processes of a run use; a field is left out when it is not watched. */
export interface RunUse {
  memoryBytes?: number;
  processes?: number;
  cpuMs?: number;
  writtenBytes?: number;
}

const READERS: readonly {
  kind: LimitKind;
  field: keyof RunLimits;
  used: keyof RunUse;
  /** The most that a run can add in a millisecond. */
  perMs: number;
  say: (value: number) => string;
  what: string;
}[] = [
  {
    kind: "memory",
    field: "memory_bytes",
    used: "memoryBytes",
    perMs: 1024 * 1024,
    say: bytesText,
    what: "its processes had %s of memory",
  },
  {
    kind: "processes",
    field: "processes",
    used: "processes",
    perMs: 2,
    say: String,
    what: "it had %s processes",
  },
  {
    kind: "cpu",
    field: "cpu_ms",
    used: "cpuMs",
    perMs: 8,
    say: (ms) => `${Math.round(ms / 10) / 100} s`,
    what: "its processes used %s of the processor",
  },
  {
    kind: "disk",
    field: "disk_bytes",
    used: "writtenBytes",
    perMs: 1024 * 1024,
    say: bytesText,
    what: "its processes wrote %s to the disk",
  },
];

/** @returns the first limit, in the order above, that the run exceeds */
export function overLimit(limits: RunLimits, use: RunUse): LimitFault | undefined {
  for (const { kind, field, used, say, what } of READERS) {
    const max = limits[field] ?? 0;
    const value = use[used];
    if (max === 0 || value === undefined || value <= max) continue;
    return limitFault(kind, limits, what.replace("%s", say(value)));
  }
  return undefined;
}

/** @param found what was found, such as "it had 7 processes" */
export function limitFault(kind: LimitKind, limits: RunLimits, found: string): LimitFault {
  const reader = READERS.find((one) => one.kind === kind);
  const field = reader?.field ?? "memory_bytes";
  const max = limits[field] ?? 0;
  return {
    kind,
    message: `${found}, and run_limits.${field} allows ${reader?.say(max) ?? max}`,
  };
}

/** Time until the run could reach one of its limits at the earliest (ms). */
export function soonestMs(limits: RunLimits, use: RunUse): number {
  let ms = Number.POSITIVE_INFINITY;
  for (const { field, used, perMs } of READERS) {
    const max = limits[field] ?? 0;
    if (max > 0) ms = Math.min(ms, (max - (use[used] ?? 0)) / perMs);
  }
  return Math.max(0, ms);
}
