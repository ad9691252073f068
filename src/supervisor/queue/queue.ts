/** Types only: the services that know the waiting, running and ended tasks. */
import type { Backlog } from "../../core/backlog.ts";
import type { InboxScanner } from "../inbox/scanner.ts";
import type { Pool } from "../pool/pool.ts";
import type { AcceptedTasks } from "./accepted-tasks.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { ProcessingTray } from "./processing-tray.ts";
import type { FinishedIds, IdProbe } from "./taken-ids.ts";

/** The tasks that the supervisor knows, by where they are. */
export interface KnownTasks {
  /** The waiting tasks, in order. */
  readonly backlog: Backlog;
  /** Those in `processing/`. */
  readonly accepted: AcceptedTasks;
  readonly finishedIds: FinishedIds;
  /** Asks the others whether an id is free. */
  readonly ids: IdProbe;
}

/** What finds tasks, accepts them and gives them to workers. */
export interface Queue extends KnownTasks {
  readonly scanner: InboxScanner;
  readonly dispatcher: Dispatcher;
  /** The files of `processing/`. */
  readonly processing: ProcessingTray;
  readonly pool: Pool;
}
