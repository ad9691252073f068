/** `worker`: starts one more worker process by hand, on a state tree that has a supervisor. */
import { stateTree } from "../../core/state-tree.ts";
import { threadsFor, threadsWanted } from "../../host/threads.ts";
import { defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree, openSettings } from "../shell/options.ts";
import { watchTerminals } from "../shell/terminals.ts";

export const command = defineCommand({
  usage: "[--slots N]",
  isLongLived: true,
  details: [
    "Claims tasks that a supervisor has accepted. Its slots are added to those of the supervisor's own workers. " +
      "After Ctrl-C it finishes the tasks that it runs, and ends. A second Ctrl-C, SIGTERM, or closing its terminal (also under nohup) makes it give them back.",
  ],
  options: {
    slots: { type: "number", value: "N", min: 1, max: 1024, help: "tasks at once (default: 1)" },
  },
  async run(ctx) {
    existingTree(ctx);
    const { settings, mailboxDir } = await openSettings(ctx);
    const { runWorker } = await import("../../worker/main.ts");
    const { WORKER_PARTS } = await import("../../app/worker-parts.ts");
    const slots = ctx.options.slots ?? 1;
    const tree = stateTree(ctx.stateDir, mailboxDir);
    ctx.out.note(`worker on ${tree.mailbox} (pid ${process.pid})`);
    let isInterrupted = false;
    process.on("SIGINT", () => {
      isInterrupted = true;
    });
    const endIfHungUp = watchTerminals();
    const boot = {
      stateDir: tree.dir,
      mailboxDir: tree.mailbox,
      settings,
      slots,
      threads: threadsFor(threadsWanted(settings.durability), slots),
      isSpawned: false,
    };
    const code = await runWorker(boot, WORKER_PARTS);
    endIfHungUp();
    return isInterrupted ? EXIT.interrupted : code;
  },
});
