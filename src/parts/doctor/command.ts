/** `doctor`: runs the checks and says what to do. It changes nothing in a state tree. */

import { type Context, defineCommand } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { existsTree, openSettings, treeOf } from "../../cli/shell/options.ts";
import { whereFrom } from "../../cli/shell/state-dir.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../core/settings.ts";
import { paint, safe, wrap } from "../../text/render.ts";
import { isAttended, readSupervisor } from "../../view/supervisor.ts";
import { type CheckResult, failed, failing, ok, warned } from "./check.ts";
import { checkHost } from "./host.ts";
import { checkMachine } from "./machine.ts";
import { checkMemory } from "./memory.ts";
import { checkProcesses } from "./processes.ts";
import { listPrograms } from "./programs.ts";
import { checkRetention } from "./retention.ts";
import { checkRunLimits } from "./run-limits.ts";
import { checkStateTree } from "./state.ts";

/** The length of the longest name of a check. It keeps all lines in the same columns. */
const NAME_CHARS_MAX = 15;

type Place = Pick<Context, "stateDir" | "stateFrom" | "env" | "cwd" | "out" | "json">;

export const command = defineCommand({
  usage: "[AGENT] [--probe] [--night]",
  args: { min: 0, max: 1 },
  details: [
    "Each check ends in ok, warn or fail, and says what to do. Exit code 1 if one fails.",
    "claude and codex, where they are, are tried out against a mock of their service on this machine: that needs no account and costs nothing. " +
      "What a version can do is remembered in your state directory, so this is done once. --probe does it again, also for programs of kind acp.",
    "With the name of an agent it looks at no other coding agent.",
    "With --night it also asks the real service one small question for each account, tries the sandbox, runs `verify` of the waiting tasks where " +
      "nothing is changed yet (a clean checkout, for tasks with a worktree), and looks for uncommitted changes and for room. That may take minutes and cost a cent.",
  ],
  options: {
    probe: { type: "flag", help: "try out the programs of coding agents once more" },
    night: { type: "flag", help: "check all that a night of work needs" },
  },
  async run(ctx) {
    const { checks, settings } = await checkPool(ctx);
    // These results are shown before the next checks, which may take minutes.
    if (!ctx.json) print(ctx, checks);
    const later = await checkCodingAgents(ctx, settings, {
      ...ctx.options,
      agent: ctx.positionals[0],
    });
    const all = [...checks, ...later];
    const hasFailed = all.some((check) => check.status === "fail");
    if (ctx.json) ctx.out.json({ ok: !hasFailed, checks: all });
    else print(ctx, later);
    return hasFailed ? EXIT.failed : EXIT.ok;
  },
});

/** @returns settings that are undefined when they cannot be read */
async function checkPool(
  ctx: Place,
): Promise<{ checks: CheckResult[]; settings: Settings | undefined }> {
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
  const supervisor = readSupervisor(tree, Date.now());
  const isRunning = isAttended(supervisor);
  checks.push(checkHost(known));
  checks.push(checkProcesses(known, isRunning), ...checkMemory(known, isRunning));
  checks.push(checkRunLimits(isRunning ? supervisor.document?.pid : undefined));
  if (existsTree(tree)) {
    checks.push(ok("state tree", `${tree.dir}${whereFrom({ from: ctx.stateFrom })}`));
    checks.push(...checkStateTree(tree, Date.now(), known?.uids ?? []));
    if (known !== undefined) checks.push(checkRetention(tree, known.retention, Date.now()));
  } else {
    const isNamed = ctx.stateFrom === "flag" || ctx.stateFrom === "environment";
    checks.push(
      (isNamed ? failing : warned)(
        "state tree",
        isNamed ? `${tree.dir} is none` : `there is none at ${tree.dir}, nor in a directory above`,
        "mailchute init, or name another place with --state or MAILCHUTE_STATE",
      ),
    );
  }
  return { checks, settings: known };
}

/** Loads the checks of coding agents only if this machine has such a program. */
async function checkCodingAgents(
  ctx: Place,
  known: Settings | undefined,
  {
    agent,
    probe: isAgain,
    night: isForNight,
  }: { agent: string | undefined; probe: boolean; night: boolean },
): Promise<CheckResult[]> {
  const settings = known ?? DEFAULT_SETTINGS;
  const place = { tree: treeOf(ctx), env: ctx.env };
  const all = listPrograms(settings, place.tree, ctx.env);
  const programs =
    agent === undefined ? all : all.filter((one) => one.agents.some(({ name }) => name === agent));
  const checks: CheckResult[] = [];
  if (agent !== undefined && programs.length === 0)
    checks.push(
      failing("agents", `config.yaml has no coding agent ${agent}`, "give the name of one"),
    );
  if (programs.length > 0) {
    const { checkAgents } = await import("./agents.ts");
    checks.push(...(await checkAgents(programs, settings, { ...place, isAgain })));
  }
  if (isForNight) {
    const { checkNight } = await import("./night.ts");
    const tell = (text: string): void => {
      if (!ctx.json) ctx.out.note(text);
    };
    checks.push(...(await checkNight(programs, settings, { ...place, tell })));
  }
  return checks;
}

function print(
  ctx: Pick<Context, "out" | "colour" | "columns">,
  checks: readonly CheckResult[],
): void {
  const width = NAME_CHARS_MAX + 8;
  const indent = " ".repeat(width);
  for (const { status, name, message, do: todo } of checks) {
    const colour = status === "ok" ? "green" : status === "warn" ? "yellow" : "red";
    const text = wrap(safe(message), ctx.columns - width).join(`\n${indent}`);
    ctx.out.line(`${paint(ctx.colour, colour, status.padEnd(6))}${name.padEnd(width - 6)}${text}`);
    if (todo === undefined) continue;
    const lines = wrap(`do: ${safe(todo)}`, ctx.columns - width - 4);
    ctx.out.line(`${indent}${lines.join(`\n${indent}    `)}`);
  }
}
