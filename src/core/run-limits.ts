/** How much the programs of one run may use. A task, its agent and the tree may each set limits. Pure. */
import { bytesText } from "./bytes-text.ts";

/** For a field that is left out, the agent decides, then the tree; 0 = no limit. */
export interface RunLimits {
  /** Memory of all its processes together. */
  memory_bytes?: number;
  /** Processes at a time. */
  processes?: number;
  /** Processor time of all its processes together. */
  cpu_ms?: number;
  /** What its processes write to the disk; no file may become larger than that either. */
  disk_bytes?: number;
  /** What it writes into its logs and its folder, in place of `output_bytes_max`. */
  output_bytes?: number;
}

/** The limits of a tree. What a run may write into its folder is a setting of its own. */
export type TreeLimits = Required<Omit<RunLimits, "output_bytes">>;

export const NO_RUN_LIMITS: TreeLimits = {
  memory_bytes: 0,
  processes: 0,
  cpu_ms: 0,
  disk_bytes: 0,
};

/** The limits that a program can reach. Each word is also the kind of the failure. */
export type LimitKind = "memory" | "processes" | "cpu" | "disk";

/** Why a run must stop, or was stopped: it is over a limit. */
export interface LimitFault {
  kind: LimitKind;
  message: string;
}

/** No program starts with less, so a smaller number has the wrong unit (bytes). */
const MEMORY_MIN = 1024 * 1024;
const DISK_MIN = 4096;

/** Says why these limits make no sense; undefined when they do. */
export function explainBadRunLimits({
  memory_bytes: memory = 0,
  disk_bytes: disk = 0,
}: RunLimits): string | undefined {
  for (const [name, bytes, least] of [
    ["memory_bytes", memory, MEMORY_MIN],
    ["disk_bytes", disk, DISK_MIN],
  ] as const)
    if (bytes > 0 && bytes < least)
      return `${name}: ${bytes} is too little for any program: it is in bytes, at least ${least} (${bytesText(least)})`;
  return undefined;
}

/** The limits of a run, the nearest of those given; undefined when none is set. */
export function nearestLimits(
  task: RunLimits | undefined,
  agent: RunLimits | undefined,
  tree: TreeLimits,
): RunLimits | undefined {
  if (task === undefined && agent === undefined && !hasLimit(tree)) return undefined;
  const limits = { ...tree, ...agent, ...task };
  return hasLimit(limits) ? limits : undefined;
}

/** Checks member by member, because it must be fast: each line of a batch calls it. */
function hasLimit({
  memory_bytes: memory = 0,
  processes = 0,
  cpu_ms: cpu = 0,
  disk_bytes: disk = 0,
  output_bytes: output = 0,
}: RunLimits): boolean {
  return memory > 0 || processes > 0 || cpu > 0 || disk > 0 || output > 0;
}

const CODES = {
  memory: "ErrMemoryLimit",
  processes: "ErrProcessLimit",
  cpu: "ErrCpuLimit",
  disk: "ErrDiskLimit",
} as const satisfies Record<LimitKind, string>;

/** The code of a record whose run reached this limit. */
export function codeOfLimit(kind: LimitKind): string {
  return CODES[kind];
}
