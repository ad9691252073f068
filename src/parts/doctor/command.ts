/** `doctor`: runs the checks and says what to do. Changes nothing. */

import { defineCommand } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existsTree, openSettings, treeOf } from "../../cli/shell/options.ts";
import { whereFrom } from "../../cli/shell/state-dir.ts";
import type { Settings } from "../../core/settings.ts";
import { paint, safe, wrap } from "../../text/render.ts";
import { isAttended, readSupervisor } from "../../view/supervisor.ts";
import { type CheckResult, failed, failing, ok, warned } from "./check.ts";
import { checkMachine } from "./machine.ts";
import { checkMemory } from "./memory.ts";
import { checkProcesses } from "./processes.ts";
import { checkRetention } from "./retention.ts";
import { checkStateTree } from "./state.ts";

export const command = defineCommand({
  usage: "",
  details: ["Each check ends in ok, warn or fail, and says what to do. Exit code 1 if one fails."],
  options: {},
  async run(ctx) {
    const tree = treeOf(ctx);
    const checks: CheckResult[] = [...checkMachine(tree, ctx.env)];
    let known: Settings | undefined;
    try {
      const { file, settings } = await openSettings(ctx);
      known = settings;
      checks.push(
        ok("settings", file === undefined ? "no config.yaml: built-in values" : `${file} is valid`),
      );
    } catch (error) {
      checks.push(failed("settings", error));
    }
    const isRunning = isAttended(readSupervisor(tree, Date.now()));
    checks.push(checkProcesses(known, isRunning), ...checkMemory(known, isRunning));
    if (existsTree(tree)) {
      checks.push(ok("state tree", `${tree.dir}${whereFrom({ from: ctx.stateFrom })}`));
      checks.push(...checkStateTree(tree, Date.now(), known?.uids ?? []));
      if (known !== undefined) checks.push(checkRetention(tree, known.retention, Date.now()));
    } else {
      const isNamed = ctx.stateFrom === "flag" || ctx.stateFrom === "environment";
      checks.push(
        (isNamed ? failing : warned)(
          "state tree",
          isNamed
            ? `${tree.dir} is none`
            : `there is none at ${tree.dir}, nor in a directory above`,
          "mailchute init, or name another place with --state or MAILCHUTE_STATE",
        ),
      );
    }
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
