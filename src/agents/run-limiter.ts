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
  /** The command to start in place of the program: it sets the limits, and then becomes the program. */
  readonly argv: readonly string[];
  /** Call this when it has started. @param onFault called at most once, when the run must end */
  watch(pid: number, onFault: (fault: LimitFault) => void): void;
  /** Call this once, when only processes are left that left the run on purpose. @returns the limit at which the system ended the program */
  close(end: { exitCode: number | null; signal: string | null }): LimitFault | undefined;
}

/** The limits of one run. If it starts several programs one after the other, their processor time is added up. */
export interface RunLimiter {
  readonly limits: RunLimits;
  /** Never rejects. */
  begin(start: ProgramStart): Promise<LimitedProgram>;
  /** Ends the processes that its programs have left behind, as far as they are known. Their programs have ended. */
  endLeft(): void;
}

export type MakeLimiter = (limits: RunLimits) => RunLimiter;
