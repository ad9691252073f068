/** `dep add|remove`: changes the dependencies of a node. */

import { defineCommand, ErrUsage } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { findNode } from "../read/document.ts";
import { editPlan } from "./read-plan.ts";

export const command = defineCommand({
  usage: "add ID ON [--terminal] | remove ID ON",
  args: { min: 2, max: 2 },
  subcommands: {
    add: "node ID waits until node ON is done; with --terminal until it is done or failed",
    remove: "node ID no longer waits for node ON",
  },
  details: ["If ON is an epic or a milestone, ID waits for everything in it."],
  examples: ["dep add T-7 T-6", "dep remove T-7 T-6"],
  options: { terminal: { type: "flag", help: "add: ON may also have failed" } },
  async run(ctx) {
    const [id = "", on = ""] = ctx.positionals;
    const { terminal } = ctx.options;
    if (terminal && ctx.subcommand !== "add")
      throw new ErrUsage("--terminal goes with dep add", "see `mailchute dep --help`");
    const { before, after } = await editPlan(ctx, () => [
      ctx.subcommand === "add"
        ? { kind: "add-dep", id, on, required: terminal ? "terminal" : "done" }
        : { kind: "remove-dep", id, on },
    ]);
    const node = findNode(after, id);
    const isChanged = before.text !== after.text;
    if (ctx.json) {
      ctx.out.json({ id: node?.id, dependencies: node?.dependencies, changed: isChanged });
      return EXIT.ok;
    }
    const list = (node?.dependencies ?? [])
      .map((one) => (one.required === "terminal" ? `${one.id} (terminal)` : one.id))
      .join(", ");
    ctx.out.line(`${node?.id} waits for ${list === "" ? "nothing" : list}`);
    if (!isChanged) ctx.out.note("there was nothing to change");
    return EXIT.ok;
  },
});
