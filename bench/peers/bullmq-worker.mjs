/** One process of BullMQ workers. */
import { Worker } from "bullmq";
import { completed, settings, started, waitForGo } from "./tally.mjs";

const worker = new Worker(
  settings.queue,
  async () => {
    started();
    return null;
  },
  { connection: settings.connection, concurrency: settings.concurrency, autorun: false },
);
worker.on("completed", completed);
await worker.waitUntilReady();
await waitForGo();
void worker.run();
