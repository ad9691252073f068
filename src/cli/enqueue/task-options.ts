/** The options of `enqueue`, and the task fields that they set. */
import { resolve } from "node:path";
import { compact } from "../../core/compact.ts";
import { LAND_MODES } from "../../core/landing.ts";
import { MAX_ATTEMPTS_MAX, WEIGHT_MAX } from "../../core/limits.ts";
import type { RunLimits } from "../../core/run-limits.ts";
import { systemClock } from "../../host/system-clock.ts";
import {
  type Context,
  durationOption,
  ErrUsage,
  numberOption,
  priorityOf,
  priorityOption,
  sizeOption,
  textOption,
} from "../shell/command-spec.ts";
import { describeTree, type OpenMailbox, openMailbox } from "../shell/options.ts";
import { readUntil } from "../shell/until.ts";
import { checkSize, inheritedFrom, readEnvFile, readReferences } from "./surroundings.ts";

const callbackOption = (when: string) =>
  textOption("TEXT", `a command line for /bin/sh that runs when it ${when}`);

const TASK_OPTIONS = {
  id: textOption("ID", "the task's id; left out = a fresh one"),
  title: textOption("TEXT", "what people see in lists"),
  type: textOption("WORD", "what kind of work it is, for people and programs that read it"),
  priority: priorityOption("higher first (default 0)"),
  after: {
    type: "text",
    value: "ID",
    many: true,
    help: "run only when this task or roadmap item has completed",
  },
  delay: textOption("TIME", "not before this time has passed, or comes: 30, 5m, 1h30m, 07:00"),
  "max-attempts": numberOption("N", "how often it may run in all", {
    min: 1,
    max: MAX_ATTEMPTS_MAX,
  }),
  timeout: durationOption("TIME", "stop a run after this long: 30, 500ms, 5m"),
  "max-memory": sizeOption("SIZE", "memory that a run may use: 500M, 2G; more, and it fails"),
  "max-cpu": durationOption("TIME", "processor time that a run may use: 30, 10m"),
  "max-processes": numberOption("N", "processes that a run may have at a time", { min: 1 }),
  "max-disk": sizeOption("SIZE", "how much a run may write to disks: 500M, 2G"),
  agent: textOption("NAME", "the configured agent that runs it"),
  fallback: {
    type: "text",
    value: "NAME",
    many: true,
    help: "an agent that takes it over while --agent is at its limit",
  },
  model: textOption("NAME", "in place of the model of its agent"),
  prompt: textOption("TEXT", "what a coding agent is asked; - reads it from stdin"),
  shell: textOption("TEXT", "a command line for /bin/sh, in place of -- CMD"),
  verify: {
    type: "text",
    value: "TEXT",
    many: true,
    help: "a command line for /bin/sh that must succeed after the run",
  },
  "on-success": callbackOption("has completed"),
  "on-failure": callbackOption("has failed for good"),
  "on-settled": callbackOption("has ended, well or not"),
  group: textOption("NAME", "the group whose slots it takes"),
  weight: numberOption("N", "how many slots of its group it takes (default 1)", {
    min: 1,
    max: WEIGHT_MAX,
  }),
  limit: {
    type: "text",
    value: "NAME",
    many: true,
    help: "a limit of config.yaml that holds for it",
  },
  cap: { type: "text", value: "NAME", many: true, help: "a capability that the agent must have" },
  cwd: textOption("DIR", "where the program runs (default with -- CMD: here)"),
  env: { type: "text", value: "K=V", many: true, help: "a variable for the program" },
  // It is not called `--env-file`: Node 20 searches all arguments for that name, and takes it as its own option.
  vars: textOption("FILE", "variables for the program, one NAME=value a line"),
  "inherit-env": {
    type: "flag",
    help: "all variables of yours, but those that look like secrets or belong to this terminal",
  },
  "env-from": {
    type: "text",
    value: "NAME=REF",
    many: true,
    help: "a variable that is read at each start, from file:/PATH or env:NAME of the worker",
  },
  worktree: {
    type: "text",
    value: "MODE",
    choices: ["auto", "none"],
    help: "auto: it works in a git worktree of its own",
  },
  land: {
    type: "text",
    value: "MODE",
    choices: LAND_MODES,
    help: "what to do with the work in its worktree (default: what its agent says, else branch)",
  },
  target: textOption("BRANCH", "the branch into which its work is brought"),
  "keep-background": {
    type: "text",
    value: "BOOL",
    choices: ["true", "false"],
    help: "whether processes that its programs leave behind go on (default: only those of a plain command without limits)",
  },
  payload: textOption("JSON", "any JSON value; reaches the worker digit for digit; - reads stdin"),
  dedup: textOption("KEY", "at most one task of this key: the id is derived from it"),
  "dedup-window": durationOption(
    "TIME",
    "with --dedup: under a new id, and not run while another task of this key waits or runs, or came within this time",
  ),
} as const;

export const OPTIONS = {
  ...TASK_OPTIONS,
  file: textOption(
    "FILE",
    "one JSON task per line; - reads stdin. Or a Markdown list: a task of each open box",
  ),
  each: textOption("FILE", "a task of each line; - reads stdin. {} stands for the line"),
  null: {
    type: "flag",
    short: "0",
    help: "with --each: zero bytes part the items, not line breaks",
  },
  batch: {
    type: "flag",
    help: "with --file: the file as one batch, under one id; for very many small tasks",
  },
  like: textOption("ID", "as that task is or was; other options change it"),
  edit: { type: "flag", help: "with --like: change it in your editor first" },
  "allow-unknown": {
    type: "flag",
    help: "pass fields on that have no effect, such as misspelt ones, in place of an error",
  },
  "dry-run": { type: "flag", help: "check and print the task, submit nothing" },
  wait: { type: "flag", help: "wait until it has settled; exit 1 when it failed" },
} as const;

export type EnqueueContext = Context<typeof OPTIONS> & {
  /** True when its program runs at other machines, which do not have the current directory. */
  isAbroad?: boolean;
};

/** What a task is built from. */
export type TaskSource = Pick<EnqueueContext, "options" | "rest" | "cwd" | "env" | "isAbroad">;

/** Like `openMailbox`. When the tree is not in the current directory it prints which tree it is, because it may be the wrong one. */
export async function openInbox(ctx: EnqueueContext): Promise<OpenMailbox> {
  const which = describeTree(ctx);
  const open = await openMailbox(ctx);
  if (which !== undefined && !ctx.json) ctx.out.note(which);
  return open;
}

/**
 * The fields that the options set, without the id and the payload.
 * @param shellArgs the arguments "$1", "$2" and so on of command lines: `--shell` gets the first two, `--verify` all, if it names one
 * @throws ErrUsage
 */
export function fieldsOf(
  { options, rest, cwd, env, isAbroad = false }: TaskSource,
  shellArgs: readonly string[] = [],
): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  const put = (field: string, value: unknown): void => {
    if (value !== undefined && !(Array.isArray(value) && value.length === 0)) fields[field] = value;
  };
  put("title", options.title);
  put("type", options.type);
  put("priority", priorityOf(options.priority));
  put("max_attempts", options["max-attempts"]);
  put("timeout_ms", options.timeout);
  put("run_limits", runLimitsOf(options));
  put(
    "not_before",
    options.delay === undefined
      ? undefined
      : Math.ceil(readUntil(options.delay, systemClock.wallMs(), "--delay") / 1000),
  );
  put("group", options.group);
  put("weight", options.weight);
  put("limits", options.limit);
  put("agent", options.agent);
  put("agents", agentsFrom(options));
  put("model", options.model);
  put("prompt", options.prompt);
  put("capabilities", options.cap);
  const exec = options.shell === undefined ? rest : shellOf(options.shell, shellArgs.slice(0, 2));
  put("exec", exec);
  put(
    "verify",
    options.verify.map((line) => shellOf(line, /\$\{?[1-5]/.test(line) ? shellArgs : [])),
  );
  for (const event of ["success", "failure", "settled"] as const) {
    const line = options[`on-${event}`];
    put(`on_${event}`, line === undefined ? undefined : shellOf(line));
  }
  if (options.cwd !== undefined || (exec !== undefined && !isAbroad))
    put("cwd", resolve(cwd, options.cwd ?? "."));
  put("env", environmentOf(options, env, cwd));
  put("env_from", readReferences(options["env-from"]));
  put("worktree", options.worktree);
  put("land", options.land);
  put("target", options.target);
  const keep = options["keep-background"];
  put("keep_background", keep === undefined ? undefined : keep === "true");
  put("dedup_key", options.dedup);
  put("dedup_window_ms", options["dedup-window"]);
  if (options.after.length > 0) put("metadata", { dependencies: options.after });
  return fields;
}

function agentsFrom({ agent, fallback }: EnqueueContext["options"]): string[] | undefined {
  if (fallback.length === 0) return undefined;
  if (agent === undefined)
    throw new ErrUsage("--fallback needs an agent", "name the first one with --agent");
  return [agent, ...fallback];
}

function runLimitsOf(options: EnqueueContext["options"]): RunLimits | undefined {
  const limits = compact({
    memory_bytes: options["max-memory"],
    processes: options["max-processes"],
    cpu_ms: options["max-cpu"],
    disk_bytes: options["max-disk"],
  });
  return Object.keys(limits).length === 0 ? undefined : limits;
}

/** The first argument after the command line is the name that the shell uses in its messages. */
function shellOf(line: string, args: readonly string[] = []): string[] {
  return ["/bin/sh", "-c", line, ...(args.length === 0 ? [] : ["sh", ...args])];
}

/** A variable of `--env` overrides the file, and the file overrides inherited variables. */
function environmentOf(
  options: EnqueueContext["options"],
  ours: NodeJS.ProcessEnv,
  cwd: string,
): Record<string, string> | undefined {
  const { vars: file, "inherit-env": isInherited } = options;
  const said = readVariables(options.env);
  if (file === undefined && !isInherited) return said;
  const env = {
    ...(isInherited ? inheritedFrom(ours).env : {}),
    ...(file === undefined ? {} : readEnvFile(resolve(cwd, file))),
    ...said,
  };
  checkSize(env);
  return env;
}

function readVariables(pairs: readonly string[]): Record<string, string> | undefined {
  if (pairs.length === 0) return undefined;
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at <= 0) throw new ErrUsage(`--env wants K=V, found ${JSON.stringify(pair)}`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

/** @throws ErrUsage when an option is given that does not fit `flag` */
export function refuseOthers(
  ctx: EnqueueContext,
  flag: string,
  allowed: ReadonlySet<string>,
  hint = "put the field into each line of the file",
): void {
  const given = Object.keys(TASK_OPTIONS).filter((name) => {
    const value = ctx.options[name as keyof typeof TASK_OPTIONS];
    const isGiven = Array.isArray(value)
      ? value.length > 0
      : value !== undefined && value !== false;
    return isGiven && !allowed.has(name);
  });
  if (given.length > 0) throw new ErrUsage(`${flag} and --${given[0]} exclude each other`, hint);
  if (ctx.rest !== undefined) throw new ErrUsage(`${flag} and -- CMD exclude each other`);
}
