/** The port for a part that carries out requests, which runs put into their drop folders beside tasks. Types only. */
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import type { Trays } from "../mailbox/files/trays.ts";

export interface RequestPlace {
  readonly tree: StateTree;
  readonly trays: Trays;
  readonly settings: Settings;
}

/** A request of a run: a file in its drop folder. */
export interface RunRequest {
  /** The name of the file, without its ending. */
  id: string;
  bytes: Buffer;
  path: string;
  /** The run that asks. Its folder's lease names it, whatever the file says. */
  sender: { taskId: string; lease: string; runDir: string };
}

export interface RequestTaker {
  /** How the names of its files end, such as `.mail`. */
  readonly ending: string;
  /**
   * Carries out a request. After a crash it gets the same request again.
   * @returns the answer for the program
   * @throws MailchuteError when it is refused; a system error: it is tried again
   */
  take(place: RequestPlace, request: RunRequest): Promise<object>;
}
