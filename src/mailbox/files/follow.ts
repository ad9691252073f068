/** Types only: the port for what follows from a settled task. */
import type { ProcessingName } from "../../core/names.ts";
import type { Settings } from "../../core/settings.ts";
import type { Task } from "../../core/task.ts";
import type { Trays } from "./trays.ts";

/** A settlement, as the port `Follow` sees it. */
export interface Ended {
  claim: { name: ProcessingName };
  status: "completed" | "failed";
  record: Buffer;
  /** Undefined for a batch, and for a file that holds no task. */
  task?: Task | undefined;
  recordAs?: string;
}

/**
 * Called for each settlement, so it decides from memory and makes no system call.
 * @returns undefined when nothing follows. Else the step to run when the record is visible: it runs before the marker is removed,
 *   and again after a crash in between
 */
export type Follow = (ended: Ended) => (() => Promise<void>) | undefined;

/** Called once in each process that settles tasks. */
export type MakeFollow = (place: FollowPlace) => Follow;

export interface FollowPlace {
  readonly trays: Trays;
  /** The folder `runs/`, which holds the files of each run. */
  readonly runs: string;
  readonly settings: Pick<Settings, "groups" | "on_success" | "on_failure" | "on_settled">;
  /** Tells people what could not be done. */
  readonly tell: (message: string) => void;
}
