/** What the programs of a run have used and left: fields of its record and of its journal lines. Pure. */

/** A field is left out when it is not known: no program ran, or each ended before mailchute looked at it. */
export interface RunUsage {
  /** Processor time of all of its programs. */
  cpu_ms?: number;
  /** The most memory that one of its programs had at a time, with all processes below it. */
  peak_memory_bytes?: number;
  /** How many processes its programs have left running. */
  left_processes?: number;
}

/** What can be measured while a program runs. */
export type MeasuredUsage = Required<Pick<RunUsage, "cpu_ms" | "peak_memory_bytes">>;

/** Adds what one more program of the run has used. */
export function addUsage(sum: RunUsage, one: MeasuredUsage): void {
  sum.cpu_ms = (sum.cpu_ms ?? 0) + one.cpu_ms;
  sum.peak_memory_bytes = Math.max(sum.peak_memory_bytes ?? 0, one.peak_memory_bytes);
}
