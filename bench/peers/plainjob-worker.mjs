/** One process of a plainjob worker. */
import Database from "better-sqlite3";
import { better, defineQueue, defineWorker } from "plainjob";
import { QUIET } from "./plainjob.mjs";
import { completed, settings, started, waitForGo } from "./tally.mjs";

const queue = defineQueue({ connection: better(new Database(settings.path)), logger: QUIET });
const worker = defineWorker("task", started, {
  queue,
  logger: QUIET,
  pollIntervall: 5,
  onCompleted: completed,
});
await waitForGo();
void worker.start();
