/** The port for a part that reads the log of a run at another machine. Types only. */
import type { Context } from "./command-spec.ts";

/** A run that another machine has, or had. */
export interface RunElsewhere {
  /** Of the task. */
  id: string;
  machine: string;
  submission: string;
  attempt: number;
}

/** A copy of what the run has written, in a folder like that of a run here. */
export interface RemoteLog {
  readonly dir: string;
  /**
   * Fetches what is new. `gone`: the machine has nothing of the run.
   * @throws ErrIo when the machine does not answer
   */
  pull(): Promise<"is on" | "has ended" | "gone">;
  /** Removes the copy. */
  close(): Promise<void>;
}

/** @throws ErrIo when no server answers */
export type OpenRemoteLog = (
  ctx: Context,
  run: RunElsewhere,
  isStderr: boolean,
) => Promise<RemoteLog>;
