/** The port for a part that keeps the programs of a run within their limits. Types only. */
import type { LimitFault, RunLimits } from "../core/run-limits.ts";

/** A program that is about to start. */
export interface ProgramStart {
  argv: readonly string[];
  env: NodeJS.ProcessEnv;
  cwd: string;
  lease: string;
}

/** One program under its limits. */
export interface LimitedProgram {
  /** What is started in its place: it sets limits, and becomes the program. */
  readonly argv: readonly string[];
  /** Call once it has started. @param onFault called at most once: the run must end */
  watch(pid: number, onFault: (fault: LimitFault) => void): void;
  /** Call once, when nothing of the run is left but what left it on purpose. @returns the limit at which it was ended by the system */
  close(end: { exitCode: number | null; signal: string | null }): LimitFault | undefined;
}

/** Of one run, also when it starts several programs, one after the other: the time of its processor counts together. */
export interface RunLimiter {
  readonly limits: RunLimits;
  /** Never rejects. */
  begin(start: ProgramStart): Promise<LimitedProgram>;
}

export type MakeLimiter = (limits: RunLimits) => RunLimiter;
