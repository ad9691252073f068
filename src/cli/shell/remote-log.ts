/** The port for a part that reads the log of a run on another machine. Types only. */
import type { Context } from "./command-spec.ts";

/** A run on another machine. It may have ended. */
export interface RunElsewhere {
  /** The id of the task. */
  id: string;
  machine: string;
  submission: string;
  attempt: number;
}

/** A local copy of what the run has written, in a folder like that of a local run. */
export interface RemoteLog {
  readonly dir: string;
  /**
   * Fetches what is new. `gone`: the machine has no files of the run.
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
