/** `doctor`: runs the checks and says what to do. Changes nothing. */
import { defineCommand } from "../command-spec.ts";
import { type CheckResult, failed, ok, warned } from "../doctor/check.ts";
import { checkMachine } from "../doctor/machine.ts";
import { checkStateTree } from "../doctor/state.ts";
import { EXIT } from "../exit-codes.ts";
import { existsTree, openSettings, treeOf } from "../options.ts";
import { paint, safe, wrap } from "../render.ts";

export const command = defineCommand({
  usage: "",
  details: [
    "Each check ends in ok, warn or fail, and says what to do. Exit code 1 when one fails.",
  ],
  options: {},
  async run(ctx) {
    const tree = treeOf(ctx);
    const checks: CheckResult[] = [...checkMachine(tree, ctx.env)];
    let uids: readonly number[] = [];
    try {
      const { file, settings } = await openSettings(ctx);
      uids = settings.uids;
      checks.push(
        ok("settings", file === undefined ? "no config.yaml: built-in values" : `${file} is valid`),
      );
    } catch (error) {
      checks.push(failed("settings", error));
    }
    if (existsTree(tree)) checks.push(...checkStateTree(tree, Date.now(), uids));
    else
      checks.push(
        warned(
          "state tree",
          `there is none at ${tree.dir}`,
          "mailchute init, or name another place with --state",
        ),
      );
    const hasFailed = checks.some((check) => check.status === "fail");
    if (ctx.json) {
      ctx.out.json({ ok: !hasFailed, checks });
      return hasFailed ? EXIT.failed : EXIT.ok;
    }
    const width = Math.max(...checks.map((check) => check.name.length)) + 8;
    for (const check of checks) {
      const colour = check.status === "ok" ? "green" : check.status === "warn" ? "yellow" : "red";
      const text = wrap(safe(check.message), ctx.columns - width).join(`\n${" ".repeat(width)}`);
      ctx.out.line(
        `${paint(ctx.colour, colour, check.status.padEnd(6))}${check.name.padEnd(width - 6)}${text}`,
      );
      if (check.do !== undefined)
        ctx.out.line(
          `${" ".repeat(width)}${wrap(`do: ${safe(check.do)}`, ctx.columns - width - 4).join(`\n${" ".repeat(width + 4)}`)}`,
        );
    }
    return hasFailed ? EXIT.failed : EXIT.ok;
  },
});
