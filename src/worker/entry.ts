/** What a supervisor starts: the worker process with its orders in one environment variable. */
import { runWorker, type WorkerBoot } from "./main.ts";

const orders = process.env["MAILCHUTE_WORKER_BOOT"];
delete process.env["MAILCHUTE_WORKER_BOOT"];
if (orders === undefined) {
  process.stderr.write("mailchute: start workers with `mailchute worker`\n");
  process.exitCode = 2;
} else {
  void runWorker(JSON.parse(orders) as WorkerBoot).then((code) => {
    process.exitCode = code;
  });
}
