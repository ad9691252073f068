/** The entry file of a worker process, which a supervisor starts. Its first message holds the orders. */
import { WORKER_PARTS } from "../app/worker-parts.ts";
import { messageOf } from "../core/errors.ts";
import { DEFAULT_SETTINGS } from "../core/settings.ts";
import { say } from "../host/say.ts";
import { runWorker } from "./main.ts";
import type { WorkerBoot } from "./protocol.ts";

// The variable shows other processes whose worker this is. Programs that a handler starts are no workers.
delete process.env["MAILCHUTE_WORKER_BOOT"];
if (process.send === undefined) {
  process.stderr.write("mailchute: start workers with `mailchute worker`\n");
  process.exitCode = 2;
} else {
  // If the supervisor dies before it sends the orders, nothing keeps this process alive, and it ends.
  process.once("message", (orders) => {
    runWorker(completed(orders as WorkerBoot), WORKER_PARTS).then(
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

/** A supervisor that began before an upgrade knows fewer settings. Its own stand first, because `digestSettings` reads their order. */
function completed(orders: WorkerBoot): WorkerBoot {
  const { settings } = orders;
  return { ...orders, settings: { ...settings, ...DEFAULT_SETTINGS, ...settings } };
}
