/** Types only: the services that know the waiting, running and ended tasks. */
import type { Backlog } from "../../core/backlog.ts";
import type { InboxScanner } from "../inbox/scanner.ts";
import type { Pool } from "../pool/pool.ts";
import type { AcceptedTasks } from "./accepted-tasks.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { FinishedIds } from "./finished-ids.ts";
import type { IdProbe } from "./id-probe.ts";
import type { ProcessingTray } from "./processing-tray.ts";

export interface Queue {
  /** The waiting tasks, in order. */
  readonly backlog: Backlog;
  readonly scanner: InboxScanner;
  readonly dispatcher: Dispatcher;
  readonly ids: IdProbe;
  readonly accepted: AcceptedTasks;
  /** The files of `processing/`. */
  readonly processing: ProcessingTray;
  readonly finishedIds: FinishedIds;
  readonly pool: Pool;
}
