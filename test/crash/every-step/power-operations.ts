/** Operations that only a power cut can harm: what the command line has answered. Walked like all others: see operations.ts. */
import fs from "node:fs";
import { join } from "node:path";
import { makeTree, type Operation } from "./operations.ts";
import { acknowledge, taskText } from "./place.ts";

/** Runs one command line in this process. @throws Error when it fails */
async function runLine(...argv: string[]): Promise<void> {
  // Most victims do without.
  const { main } = await import("../../../src/cli/main.ts");
  const code = await main(argv);
  if (code !== 0) throw new Error(`${argv.join(" ")}: exit code ${code}`);
}

export const POWER_OPERATIONS: readonly Operation[] = [
  {
    name: "cli-enqueue",
    prepare(place) {
      const book = makeTree(place);
      for (const id of ["a", "b", "c"])
        book.tasks[id] = {
          text: taskText(place, id),
          isSafe: false,
          ends: ["completed"],
          hasEvents: true,
        };
      return book;
    },
    async act({ place }) {
      const file = join(place.dir, "tasks.ndjson");
      fs.writeFileSync(file, `${taskText(place, "a")}\n${taskText(place, "b")}\n`);
      await runLine("enqueue", "--file", file, "--state", place.state);
      for (const id of ["a", "b"]) acknowledge(place, "submit", id);
      const { payload } = JSON.parse(taskText(place, "c")) as { payload: unknown };
      const words = ["--id", "c", "--payload", JSON.stringify(payload)];
      await runLine("enqueue", ...words, "--state", place.state);
      acknowledge(place, "submit", "c");
    },
  },
  {
    name: "cli-command",
    prepare: makeTree,
    async act({ place }) {
      const { sendCommand } = await import("../../../src/mailbox/commands/send-command.ts");
      const { id } = await sendCommand(place.state, "set-workers", { workers: 2 });
      acknowledge(place, "command", id);
    },
  },
];
