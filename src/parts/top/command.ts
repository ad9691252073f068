/** `top`: shows the pool on a screen that follows it, and takes keys. Needs a terminal; `--json` prints the data of the screen. */
import {
  type Context,
  defineCommand,
  durationOption,
  ErrUsage,
} from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { dropOf } from "../../cli/shell/inside-run.ts";
import { existingTree, openSettings } from "../../cli/shell/options.ts";
import { watchTerminals } from "../../cli/shell/terminals.ts";
import { DEFAULT_SETTINGS } from "../../core/settings.ts";
import { OverviewReader } from "../../view/overview-reader.ts";
import { ASCII_SIGNS, UNICODE_SIGNS } from "./cells.ts";
import { keyTexts } from "./help.ts";
import { Top } from "./top.ts";

const INTERVAL_MS = 250;
const INTERVAL_MS_MIN = 50;

export const command = defineCommand({
  usage: "[--read-only]",
  details: [
    "Shows counts and rates, what runs and what it says, what waits and why, failures by their cause, questions and alerts, what ended last, and the groups and limits. It works without a supervisor, and changes nothing by itself. A key that changes something writes what the command of that name writes, and the screen says when it was taken up. From a width of 140 columns on, what is chosen is shown beside the panes, and the groups below it.",
    `Keys. ${keyTexts().join("; ")}.`,
    "It takes at most a fiftieth of a core, and looks less often when a look takes longer. If it was ended by kill -9, the command `reset` repairs the terminal.",
  ],
  examples: ["top", "top --json | jq .waiting"],
  options: {
    "read-only": { type: "flag", help: "keys change nothing" },
    ascii: {
      type: "flag",
      help: "no signs beyond ASCII; so it is, too, when the locale is not UTF-8",
    },
    interval: durationOption("TIME", "how often it looks (default: 250ms)"),
  },
  async run(ctx) {
    const tree = existingTree(ctx);
    const settings = await openSettings(ctx).then(
      (loaded) => loaded.settings,
      () => DEFAULT_SETTINGS,
    );
    if (ctx.json) {
      const reader = new OverviewReader(tree, { settings });
      ctx.out.json(reader.next(Date.now()));
      reader.close();
      return EXIT.ok;
    }
    if (!ctx.isTerminal || !process.stdin.isTTY || ctx.env["TERM"] === "dumb")
      throw new ErrUsage(
        "top needs a terminal",
        "see `mailchute status`, or `mailchute top --json`",
      );
    const finish = watchTerminals();
    await new Top(ctx, tree, {
      look: { colour: ctx.colour, signs: isAscii(ctx) ? ASCII_SIGNS : UNICODE_SIGNS },
      // A run of an agent may not change the pool.
      isReadOnly: ctx.options["read-only"] || dropOf(ctx) !== undefined,
      intervalMs: Math.max(INTERVAL_MS_MIN, ctx.options.interval ?? INTERVAL_MS),
      settings,
    }).run();
    finish();
    return EXIT.ok;
  },
});

function isAscii({ options, env }: Pick<Context, "options" | "env">): boolean {
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  return options["ascii"] === true || !/utf-?8/i.test(locale);
}
