/** One process of graphile-worker, plain or with what its documentation recommends for throughput. */
import { EventEmitter } from "node:events";
import { Logger, run } from "graphile-worker";
import { completed, settings, started, waitForGo } from "./tally.mjs";

const events = new EventEmitter();
events.on("job:complete", completed);
await waitForGo();
await run({
  connectionString: settings.url,
  noHandleSignals: true,
  logger: new Logger(() => () => {}),
  events,
  taskList: { task: started },
  preset: {
    worker: settings.isBatched
      ? {
          concurrentJobs: 24,
          maxPoolSize: 26,
          localQueue: { size: 500 },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        }
      : { concurrentJobs: 24, maxPoolSize: 26 },
  },
});
