/** Types only: the port for what follows from a settled task. */
import type { ProcessingName } from "../../core/names.ts";
import type { Settings } from "../../core/settings.ts";
import type { Task } from "../../core/task.ts";
import type { Trays } from "./trays.ts";

/** A settlement, for those who look what follows from it. */
export interface Ended {
  claim: { name: ProcessingName };
  status: "completed" | "failed";
  record: Buffer;
  /** Undefined for a batch, and for a file that holds no task. */
  task?: Task | undefined;
  recordAs?: string;
}

/**
 * Asked of each settlement, so it decides from memory, and makes no call of the system. @returns undefined when nothing follows. Else what
 * to do when the record is visible: it is done before the marker goes, and once more after a crash in between
 */
export type Follow = (ended: Ended) => (() => Promise<void>) | undefined;

/** Called once for each process that settles tasks. */
export type MakeFollow = (place: FollowPlace) => Follow;

export interface FollowPlace {
  readonly trays: Trays;
  /** The folder of the files of runs. */
  readonly runs: string;
  readonly settings: Pick<Settings, "groups" | "on_success" | "on_failure" | "on_settled">;
  /** Tells people what could not be done. */
  readonly tell: (message: string) => void;
}
