/** What a supervisor starts: the worker process. Its orders are the first message it gets. */
import { runWorker, type WorkerBoot } from "./main.ts";

// It tells others whose worker this is; what a handler starts is none.
delete process.env["MAILCHUTE_WORKER_BOOT"];
if (process.send === undefined) {
  process.stderr.write("mailchute: start workers with `mailchute worker`\n");
  process.exitCode = 2;
} else {
  // Should the supervisor die before it has sent them, nothing holds this process any more, and it ends.
  process.once("message", (orders) => {
    void runWorker(orders as WorkerBoot).then((code) => {
      process.exitCode = code;
    });
  });
}
