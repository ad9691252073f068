/** `help`: the overview, or the help of one command. */
import { readVersion } from "../../host/package.ts";
import { defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { addForeignVerbs } from "../shell/foreign-verbs.ts";
import { commandHelp, overview } from "../shell/help.ts";
import { loadCommand } from "../shell/registry.ts";

export const command = defineCommand({
  usage: "[COMMAND]",
  args: { min: 0, max: 2 },
  details: ["Prints text, also with --json."],
  options: {},
  async run(ctx) {
    const verb = ctx.positionals[0];
    const onPath = await addForeignVerbs(ctx);
    ctx.out.line(
      verb === undefined
        ? overview(readVersion(), onPath)
        : commandHelp(verb, await loadCommand(verb)),
    );
    return EXIT.ok;
  },
});
