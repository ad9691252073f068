/** `kv`: the values that nodes leave for each other. Inside a task, a program may write only the task's own keys and those of the run. */
import fs from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { ErrForeignKey, ErrInvalidKv, ErrLeaseLost } from "../../core/errors.ts";
import { explainBadScope, type KvEntry, type KvSource } from "../../core/kv.ts";
import { CLAIM_NAME, cleanRun, foldId, parseLease } from "../../core/names.ts";
import { RUN_SCOPE } from "../../core/roadmap.ts";
import { stateTree } from "../../core/state-tree.ts";
import { tryReadText } from "../../host/regular-file.ts";
import { systemClock } from "../../host/system-clock.ts";
import { safe, table } from "../../text/render.ts";
import { type Context, defineCommand, ErrUsage } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree, openSettings } from "../shell/options.ts";

/** A value for people and shell scripts: text as it is, everything else as JSON. */
function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The task that runs this command, if the command uses the task's own state tree; undefined outside of tasks. */
function callingTask(
  ctx: Pick<Context, "env" | "stateDir">,
): (KvSource & { id: string }) | undefined {
  const id = ctx.env["MAILCHUTE_TASK_ID"];
  const lease = ctx.env["MAILCHUTE_LEASE"];
  const state = ctx.env["MAILCHUTE_STATE"];
  if (!id || !lease || (state !== undefined && resolve(state) !== ctx.stateDir)) return undefined;
  const resultFile = ctx.env["MAILCHUTE_RESULT_FILE"];
  return {
    id,
    lease,
    run: resultFile === undefined ? null : runAt(ctx.stateDir, dirname(resultFile)),
    attempt: parseLease(lease)?.attempt ?? Number(ctx.env["MAILCHUTE_ATTEMPT"] ?? 0),
    by: id,
  };
}

/** The path of a run below `runs/`; for a line of a batch, the number of the line. */
function runAt(stateDir: string, dir: string): string {
  return cleanRun(relative(stateTree(stateDir).runs, dir)) ?? basename(dir);
}

/** @throws ErrForeignKey, ErrLeaseLost */
function sourceOf(ctx: Pick<Context, "env" | "stateDir">, node: string): KvSource {
  const caller = callingTask(ctx);
  if (caller === undefined) return { run: null, lease: null, attempt: 0, by: "cli" };
  const claimed = claimFileOf(ctx.env["MAILCHUTE_RESULT_FILE"]);
  if (claimed === "")
    throw new ErrForeignKey("a program that the chat asks runs no task: it may read kv, not put", {
      phase: "put",
      hint: "put it yourself with `mailchute kv put`, or let a task do it",
    });
  if (node !== RUN_SCOPE && foldId(node) !== foldId(caller.id))
    throw new ErrForeignKey(`the task ${caller.id} cannot write a key of ${node}`, {
      id: caller.id,
      phase: "put",
      hint: `write into ${caller.id}, or into ${RUN_SCOPE}, which all share`,
    });
  // The claimed file's name is the lease; a process that took the lease over has renamed the file.
  if (claimed !== undefined && !fs.existsSync(claimed) && fs.existsSync(dirname(claimed)))
    throw new ErrLeaseLost(`this run of ${caller.id} holds its task no more; nothing was put`, {
      id: caller.id,
      phase: "put",
    });
  const { id: _id, ...source } = caller;
  return source;
}

function claimFileOf(resultFile: string | undefined): string | undefined {
  if (resultFile === undefined) return undefined;
  return tryReadText(join(dirname(resultFile), CLAIM_NAME));
}

async function readValue(given: string, isJson: boolean): Promise<unknown> {
  const whole = given === "-" ? await textOf(process.stdin) : given;
  if (!isJson) return whole;
  try {
    return JSON.parse(whole) as unknown;
  } catch {
    throw new ErrInvalidKv("the value is not valid JSON", {
      phase: "put",
      hint: "leave --json-value out to put it as a text",
    });
  }
}

function rowsOf(entries: readonly (KvEntry & { key: string; op?: string })[]): string[][] {
  return entries.map(({ key, op, value, at, attempt, by }) => [
    safe(key),
    op === "remove" ? "(removed)" : safe(shown(value)),
    safe(by ?? ""),
    attempt === 0 ? "" : String(attempt),
    safe(at),
  ]);
}

const COLUMNS = [
  { title: "KEY" },
  { title: "VALUE", min: 10 },
  { title: "BY", min: 3 },
  { title: "RUN", align: "right" as const },
  { title: "AT", min: 10 },
];

export const command = defineCommand({
  usage: "get NODE KEY | put NODE KEY VALUE | ls NODE",
  subcommands: {
    get: "print a value: NODE KEY",
    put: "put a value: NODE KEY VALUE (`-` reads it from stdin)",
    ls: "list the values of a node: NODE",
  },
  args: { min: 1, max: 3 },
  details: [
    `NODE is the id of a node or task, or ${RUN_SCOPE} for values of the run as a whole. Texts are printed as they are, other values as JSON.`,
    "Every run of a node leaves out.summary, out.last_stdout_path and out.last_result_path, and err.summary if it did not succeed.",
    `A task can write only its own keys and those of ${RUN_SCOPE}.`,
  ],
  examples: [
    "kv get build-1 out.summary",
    "kv put __run__ ctx.branch main",
    "kv put build-1 ctx.ports '[80, 443]' --json-value",
    "kv ls build-1 --history",
  ],
  options: {
    "json-value": { type: "flag", help: "with put: VALUE is JSON, not a text" },
    history: { type: "flag", help: "with ls: every put and removal, the oldest first" },
  },
  async run(ctx) {
    const [node = "", key, text] = ctx.positionals;
    const isPut = ctx.subcommand === "put";
    const count = { get: 2, put: 3, ls: 1 }[ctx.subcommand] ?? 0;
    if (ctx.positionals.length !== count)
      throw new ErrUsage(
        `kv ${ctx.subcommand} takes ${["", "NODE", "NODE KEY", "NODE KEY VALUE"][count]}`,
        "see `mailchute kv --help`",
      );
    if (ctx.options["json-value"] && !isPut)
      throw new ErrUsage(`--json-value does not go with ${ctx.subcommand}`);
    if (ctx.options.history && ctx.subcommand !== "ls")
      throw new ErrUsage(`--history does not go with ${ctx.subcommand}`);
    const fault = explainBadScope(node);
    if (fault !== undefined) throw new ErrInvalidKv(fault, { phase: ctx.subcommand });
    const { KvStore } = await import("../../kv/store.ts");
    const { kv: dir } = existingTree(ctx);
    const durability = isPut ? (await openSettings(ctx)).settings.durability : "process";
    const kv = new KvStore(dir, systemClock, durability);
    try {
      if (key !== undefined && isPut) {
        const source = sourceOf(ctx, node);
        const value = await readValue(text ?? "", ctx.options["json-value"]);
        const isChanged = await kv.put(node, key, value, source);
        if (ctx.json) ctx.out.json({ node, key, changed: isChanged, ...kv.get(node, key) });
        return EXIT.ok;
      }
      if (key !== undefined) {
        const entry = kv.get(node, key);
        if (ctx.json) ctx.out.json(entry === undefined ? null : { node, key, ...entry });
        else if (entry === undefined) ctx.out.note(`${node} has no ${safe(key)}`);
        else if (ctx.isTerminal) ctx.out.line(shown(entry.value));
        else await ctx.out.raw(`${shown(entry.value)}\n`);
        return entry === undefined ? EXIT.notFound : EXIT.ok;
      }
      return await list(ctx, kv, node);
    } finally {
      kv.close();
    }
  },
});

async function list(
  ctx: Context,
  kv: import("../../kv/store.ts").KvStore,
  node: string,
): Promise<number> {
  const entries: (KvEntry & { key: string; op?: string })[] = [];
  if (ctx.options["history"] === true) for await (const one of kv.history(node)) entries.push(one);
  else for (const [key, entry] of kv.list(node)) entries.push({ key, ...entry });
  if (ctx.json) {
    const list = ctx.options["history"] === true ? "history" : "values";
    ctx.out.json({ node, [list]: entries });
  } else if (entries.length === 0) ctx.out.note(`${node} has no values`);
  else
    for (const line of table(COLUMNS, rowsOf(entries), ctx.columns, ctx.colour)) ctx.out.line(line);
  return entries.length === 0 ? EXIT.notFound : EXIT.ok;
}
