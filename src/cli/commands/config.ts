/** `config`: shows each setting, its value and the source of the value. */

import { safe, table } from "../../text/render.ts";
import { CONFIG_NEWER, isConfigNewer, readSupervisor } from "../../view/supervisor.ts";
import { defineCommand } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { openSettings, treeOf } from "../shell/options.ts";

export const command = defineCommand({
  usage: "",
  details: [
    "The first of these that has a value wins: a flag of the command that uses the setting, the environment (MAILCHUTE_RETRY_MAX_ATTEMPTS for retry.max_attempts), config.yaml, the built-in value.",
  ],
  options: {},
  async run(ctx) {
    const { settings, sources, mailboxDir, file } = await openSettings(ctx);
    const tree = treeOf(ctx);
    const rows = Object.entries(sources).map(([path, source]) => ({
      path,
      value: valueAt(settings, path),
      source,
    }));
    if (ctx.json) {
      ctx.out.json({
        state_dir: tree.dir,
        mailbox_dir: tree.mailbox,
        mailbox_dir_source: mailboxDir === undefined ? "built-in" : "environment",
        file: file ?? null,
        settings: Object.fromEntries(
          rows.map(({ path, value, source }) => [path, { value, source }]),
        ),
      });
      return EXIT.ok;
    }
    const cells = [
      ...rows.map(({ path, value, source }) => [path, safe(value), source]),
      [
        "mailbox directory",
        safe(tree.mailbox),
        mailboxDir === undefined ? "built-in" : "environment",
      ],
    ];
    const columns = [
      { title: "SETTING" },
      { title: "VALUE", ...(ctx.isTerminal ? { min: 10 } : {}) },
      { title: "SOURCE" },
    ];
    for (const line of table(columns, cells, ctx.columns, ctx.colour)) ctx.out.line(line);
    ctx.out.note(file === undefined ? `there is no ${tree.config}` : `read ${file}`);
    if (isConfigNewer(tree, readSupervisor(tree, Date.now())))
      ctx.out.note(`${CONFIG_NEWER.what}; do: ${CONFIG_NEWER.do}`);
    return EXIT.ok;
  },
});

function valueAt(settings: object, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], settings);
}
