/** `events`: prints the journal of events as JSON lines, filtered and followed on request. */
import { dirname } from "node:path";
import { visibleJson } from "../../core/visible.ts";
import { JournalTail, readJournal } from "../../journal/read.ts";
import { defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree } from "../shell/options.ts";
import { ChangeSignal } from "../wait/change-signal.ts";

export const command = defineCommand({
  usage: "[-f] [--task ID] [--event NAME]",
  endsWithReader: true,
  details: [
    "Each line is one JSON object, with or without --json. Incomplete and foreign lines are skipped; stderr says how many.",
  ],
  examples: ["events --event failed | jq .task_id", "events -f --task nightly"],
  options: {
    follow: { type: "flag", short: "f", help: "show new events until Ctrl-C" },
    task: { type: "text", value: "ID", many: true, help: "only events of this task" },
    event: { type: "text", value: "NAME", many: true, help: "only events of this name" },
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const { task, event } = ctx.options;
    const isWanted = (record: Record<string, unknown>): boolean =>
      (task.length === 0 || task.includes(String(record["task_id"]))) &&
      (event.length === 0 || event.includes(String(record["event"])));
    const print = async (records: readonly Record<string, unknown>[]): Promise<void> => {
      const lines = records.filter(isWanted).map((record) => `${visibleJson(record)}\n`);
      if (lines.length > 0) await ctx.out.raw(lines.join(""));
    };
    if (ctx.options.follow) {
      const tail = new JournalTail(tree.events);
      for (;;) {
        for (let records = tail.next(); records.length > 0; records = tail.next())
          await print(records);
        const change = new ChangeSignal([tree.events, dirname(tree.events)]);
        await change.next();
        change.close();
      }
    }
    const counts = { records: 0, bad: 0 };
    for await (const record of readJournal(tree.events, counts)) await print([record]);
    if (counts.bad > 0)
      ctx.out.note(
        `${counts.bad} lines of ${tree.events} cannot be read as records and were skipped`,
      );
    return EXIT.ok;
  },
});
