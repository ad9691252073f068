/** The port for a part that puts the programs of a run behind walls. Types only. */

import type { AttemptOutcome } from "../core/outcome.ts";
import type { SandboxWalls } from "../core/sandbox.ts";
import type { AgentSettings, Settings } from "../core/settings.ts";
import type { Task } from "../core/task.ts";
import type { ProgramStart } from "./run-limiter.ts";

/** A file or folder of the machine, and the place where a program sees it. */
export interface Mount {
  from: string;
  to: string;
  isReadOnly?: boolean;
}

/** The git directory of a worktree as its programs see it: they commit, and cannot reach the repository. */
export interface PrivateGit {
  /** Call it before a program starts. @throws system errors, ErrGit */
  enter(): Promise<Mount[]>;
  /** Takes over what the program has committed. Twice is the same as once. @throws system errors, ErrGit */
  leave(): Promise<void>;
}

/** Where a run in a worktree works. */
export interface RunPlace {
  readonly cwd: string;
  /** Variables for its programs. */
  readonly env: Readonly<Record<string, string>>;
  /** The worktree, which holds `cwd`: programs behind walls may write to it. Default: `cwd`. */
  readonly root?: string;
  /** Left out: programs behind walls cannot commit there. */
  readonly git?: PrivateGit | undefined;
}

/** The run of a program that is about to start: of its assignment. */
export interface WalledRun {
  task: Pick<Task, "keep_background">;
  stateDir: string;
  runDir: string;
  dropDir?: string;
  settings: Pick<Settings, "worktrees_dir">;
  workspace?: RunPlace;
}

/** A program that is about to start behind walls. */
export interface WalledProgram {
  /** The command to start in place of the program: it builds the walls, and then becomes the program. */
  readonly argv: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Call this once when no process of it is left, also when it did not start. @returns why its work is not whole */
  leave(): Promise<AttemptOutcome | undefined>;
}

export interface Walls {
  /** Never rejects. @returns the outcome of a run that must not begin without walls */
  enter(
    start: Omit<ProgramStart, "lease">,
    run: WalledRun,
  ): Promise<WalledProgram | AttemptOutcome>;
}

export type MakeWalls = (settings: SandboxWalls, agent: AgentSettings) => Walls;
