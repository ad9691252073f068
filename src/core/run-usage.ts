/** What the programs of a run have used and left, and what they were denied: fields of its record and of its journal lines. Pure. */

/** A field is left out when it is not known: no program ran, or each ended before mailchute looked at it. */
export interface RunUsage {
  /** Processor time of all of its programs. */
  cpu_ms?: number;
  /** The most memory that one of its programs had at a time, with all processes below it. */
  peak_memory_bytes?: number;
  /** How many processes its programs have left running. */
  left_processes?: number;
  /** The tools that its coding agents were not allowed to use: each once. */
  denied?: string[];
}

/** At most so many tools are named, and so much of each name (characters). */
export const DENIED_MAX = 20;
export const DENIED_CHARS_MAX = 200;

/** What can be measured while a program runs. */
export type MeasuredUsage = Required<Pick<RunUsage, "cpu_ms" | "peak_memory_bytes">>;

/** Adds the tools that one more program of the run was denied. */
export function addDenied(sum: RunUsage, tools: readonly string[]): void {
  if (tools.length === 0) return;
  const names = tools.map((name) => name.slice(0, DENIED_CHARS_MAX));
  sum.denied = [...new Set([...(sum.denied ?? []), ...names])].slice(0, DENIED_MAX);
}

/** Adds what one more program of the run has used. */
export function addUsage(sum: RunUsage, one: MeasuredUsage): void {
  sum.cpu_ms = (sum.cpu_ms ?? 0) + one.cpu_ms;
  sum.peak_memory_bytes = Math.max(sum.peak_memory_bytes ?? 0, one.peak_memory_bytes);
}
