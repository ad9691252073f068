/** `spawn`: makes an agent with the settings of another one, gives it a task, and can wait for the end of the task. */
import fs from "node:fs";
import { resolve } from "node:path";
import {
  type Context,
  defineCommand,
  durationOption,
  ErrUsage,
  textOption,
} from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { askOutside, insideRun } from "../../../cli/shell/inside-run.ts";
import { existingTree, openMailbox } from "../../../cli/shell/options.ts";
import { waitForTasks } from "../../../cli/wait/wait-for-tasks.ts";
import { compact } from "../../../core/compact.ts";
import { BUILT_IN_EXEC } from "../../../core/matching.ts";
import { DROP_VARIABLE } from "../../../host/process-tree.ts";
import { newId } from "../../../mailbox/files/random.ts";
import { safe } from "../../../text/render.ts";
import { spawnAgent } from "../agents/spawn.ts";
import { agentToSpawn } from "../requests/spawn.ts";
import { REQUEST } from "../requests/taker.ts";
import { openOwn } from "../roots/open-own.ts";
import { callerOf, isInRun, openMail } from "./open-mail.ts";

const OPTIONS = {
  name: textOption("NAME", "its name (default: that of AGENT with a number)"),
  context: textOption("TEXT", "what it should know for the task"),
  files: {
    type: "text",
    value: "PATH",
    many: true,
    help: "a file that it should look at first",
  },
  cwd: textOption("DIR", "where the task runs (default: the directory around the state tree)"),
  from: textOption("NAME", "who spawns it (default: human, in a run its agent)"),
  detach: { type: "flag", help: "do not wait for the end of the task" },
  timeout: durationOption("TIME", "wait no longer than this: 30, 500ms, 5m"),
} as const;

type SpawnContext = Context<typeof OPTIONS>;

/** `name` is undefined when the worker outside has not answered yet. */
interface Spawned {
  name: string | undefined;
  taskId: string | undefined;
}

export const command = defineCommand({
  usage: "AGENT TASK [--name NAME] [--detach]",
  args: { min: 2, max: Number.POSITIVE_INFINITY },
  details: [
    "AGENT is a coding agent of config.yaml, or a kind: claude, codex. The new agent has its settings, its own name (`coder-2`) and its own mail; with `mail_enabled: true` it is woken for that. `archive NAME` ends it.",
    "Prints its name, then waits until its task has ended: exit code 1 when that failed, 124 when the time of --timeout was over; the task goes on.",
    "`spawn.depth_max`, `spawn.agents_max` and `spawn.per_hour_max` limit how many are spawned; above that, exit code 4. An agent may use this in its run.",
  ],
  examples: [
    'spawn coder "mend the flaky test in parser.ts"',
    'spawn coder "write the changelog" --name writer --files CHANGELOG.md --detach',
  ],
  options: OPTIONS,
  async run(ctx) {
    const [kind = "", ...words] = ctx.positionals;
    const text = words.join(" ");
    if (text.trim() === "") throw new ErrUsage("there is no task", "say what it is to do");
    const { drop } = await openMail(ctx);
    if (drop !== undefined && ctx.options.from !== undefined)
      throw new ErrUsage("a run spawns agents under its own name", "leave out --from");
    const sinceMs = Date.now();
    const { name, taskId } =
      drop === undefined
        ? await spawnHere(ctx, kind, text)
        : await spawnOutside(ctx, drop, kind, text);
    if (name === undefined || taskId === undefined) {
      ctx.out.note("left for the worker of this run, which has not answered yet");
      if (ctx.json) ctx.out.json({ name: null, task_id: null, state: "left" });
      return EXIT.ok;
    }
    if (!ctx.json) ctx.out.line(`${safe(name)}: task ${taskId}`);
    if (ctx.options.detach) {
      if (ctx.json) ctx.out.json({ name, task_id: taskId });
      return EXIT.ok;
    }
    return await waitForEnd(ctx, { name, taskId, sinceMs });
  },
});

async function spawnHere(ctx: SpawnContext, kind: string, text: string): Promise<Spawned> {
  if ((ctx.env[DROP_VARIABLE] ?? "") !== "")
    throw insideRun(
      "spawn --state",
      "leave out --state: a run spawns agents in its own state tree",
    );
  existingTree(ctx);
  const { loaded, trays, tree } = await openMailbox(ctx);
  const { settings } = loaded;
  const agent = agentToSpawn(settings.agents, kind);
  const { folder } = await openOwn(settings, tree.dir, ctx.env);
  const made = await spawnAgent(
    { folder, settings, stateDir: tree.dir, trays },
    {
      request: newId(Date.now(), "cli"),
      by: isInRun(ctx.env) ? BUILT_IN_EXEC.name : callerOf(ctx.env, ctx.options.from),
      agent,
      text,
      ...givenOf(ctx),
    },
    Date.now(),
  );
  if (!settings.mail_enabled && !ctx.json)
    ctx.out.note("mail_enabled is not true in config.yaml, so it is not woken for its mail");
  return { name: made.agent.name, taskId: made.agent.spawned?.task_id };
}

async function spawnOutside(
  ctx: SpawnContext,
  drop: string,
  kind: string,
  text: string,
): Promise<Spawned> {
  const body = { spawn: kind, content: text, ...givenOf(ctx) };
  const answer = await askOutside(ctx, drop, newId(Date.now(), "r"), { ending: REQUEST, body });
  const at = (key: string): string | undefined => answer?.[key] as string | undefined;
  return { name: at("name"), taskId: at("task_id") };
}

/** @throws ErrUsage for a missing file */
function givenOf({ cwd, options }: SpawnContext) {
  const { context, name } = options;
  const files = options.files.map((file) => {
    const path = resolve(cwd, file);
    if (fs.existsSync(path)) return path;
    throw new ErrUsage(`--files: there is no ${JSON.stringify(file)}`, "check the path");
  });
  const dir = options.cwd === undefined ? undefined : resolve(cwd, options.cwd);
  return compact({ context, name, cwd: dir, files: files.length === 0 ? undefined : files });
}

async function waitForEnd(
  ctx: SpawnContext,
  { name, taskId, sinceMs }: { name: string; taskId: string; sinceMs: number },
): Promise<number> {
  const { timeout: timeoutMs } = ctx.options;
  const tree = existingTree(ctx);
  const { settled } = await waitForTasks(ctx, tree, [taskId], {
    areKnown: true,
    sinceMs,
    timeoutMs,
  });
  const [one] = settled;
  const status = one?.status ?? "open";
  if (ctx.json) ctx.out.json({ name, task_id: taskId, status });
  else if (one?.status === "failed") ctx.out.note(`${safe(name)} failed: ${safe(one.error ?? "")}`);
  else if (one === undefined)
    ctx.out.note(`${safe(name)} still works: mailchute logs -f ${taskId}`);
  if (one === undefined) return EXIT.waitTimedOut;
  return one.status === "completed" ? EXIT.ok : EXIT.failed;
}
