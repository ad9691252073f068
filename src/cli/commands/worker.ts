/** `worker`: one more worker process, started by hand, on a state tree that a supervisor looks after. */
import { stateTree } from "../../core/state-tree.ts";
import { defineCommand } from "../command-spec.ts";
import { EXIT } from "../exit-codes.ts";
import { openSettings } from "../options.ts";
import { watchTerminals } from "../terminals.ts";

export const command = defineCommand({
  usage: "[--slots N]",
  isLongLived: true,
  details: [
    "It claims what a supervisor has accepted, and comes on top of that supervisor's own workers. " +
      "Ctrl-C lets what runs end; a second Ctrl-C, SIGTERM, or closing its terminal (also under nohup) gives it back.",
  ],
  options: {
    slots: { type: "number", value: "N", min: 1, max: 1024, help: "tasks at once (default: 1)" },
  },
  async run(ctx) {
    const { settings, mailboxDir } = await openSettings(ctx);
    const { runWorker } = await import("../../worker/main.ts");
    const tree = stateTree(ctx.stateDir, mailboxDir);
    ctx.out.note(`worker on ${tree.mailbox} (pid ${process.pid})`);
    let isInterrupted = false;
    process.on("SIGINT", () => {
      isInterrupted = true;
    });
    const endIfHungUp = watchTerminals();
    const code = await runWorker({
      stateDir: tree.dir,
      mailboxDir: tree.mailbox,
      settings,
      slots: ctx.options.slots ?? 1,
      isSpawned: false,
    });
    endIfHungUp();
    return isInterrupted ? EXIT.interrupted : code;
  },
});
