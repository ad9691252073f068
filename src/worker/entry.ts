/** What a supervisor starts: the worker process. Its orders are the first message it gets. */
import { WORKER_PARTS } from "../app/worker-parts.ts";
import { messageOf } from "../core/errors.ts";
import { say } from "../host/say.ts";
import { runWorker } from "./main.ts";
import type { WorkerBoot } from "./protocol.ts";

// It tells others whose worker this is; what a handler starts is none.
delete process.env["MAILCHUTE_WORKER_BOOT"];
if (process.send === undefined) {
  process.stderr.write("mailchute: start workers with `mailchute worker`\n");
  process.exitCode = 2;
} else {
  // Should the supervisor die before it has sent them, nothing holds this process any more, and it ends.
  process.once("message", (orders) => {
    runWorker(orders as WorkerBoot, WORKER_PARTS).then(
      (code) => {
        process.exitCode = code;
      },
      (error: unknown) => {
        say(`a worker process cannot start: ${messageOf(error)}`);
        process.exit(1);
      },
    );
  });
}
