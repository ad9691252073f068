/** What knows of the tasks that wait, run and have ended. Shapes only. */
import type { Backlog } from "../../core/backlog.ts";
import type { InboxScanner } from "../inbox/scanner.ts";
import type { Pool } from "../pool/pool.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { FinishedIds } from "./finished-ids.ts";
import type { ProcessingTray } from "./processing-tray.ts";

export interface Queue {
  /** What waits, in order. */
  readonly backlog: Backlog;
  readonly scanner: InboxScanner;
  readonly dispatcher: Dispatcher;
  /** What was accepted, and lies in `processing/`. */
  readonly processing: ProcessingTray;
  readonly finishedIds: FinishedIds;
  readonly pool: Pool;
}
