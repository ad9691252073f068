/** `enqueue`: builds tasks from flags or reads them from a file of lines, and submits them. Runs nothing. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join, resolve } from "node:path";
import { parseObject } from "../../codec/json.ts";
import { checkTask } from "../../codec/task-codec.ts";
import { wallSeconds } from "../../core/clock.ts";
import { ErrTaskExists, messageOf } from "../../core/errors.ts";
import { MAX_ATTEMPTS_MAX } from "../../core/limits.ts";
import { inboxName } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { systemClock } from "../../host/system-clock.ts";
import { newId } from "../../mailbox/random.ts";
import { submit } from "../../mailbox/submit.ts";
import { type Context, defineCommand, ErrUsage } from "../command-spec.ts";
import { enqueueFile } from "../enqueue-file.ts";
import { EXIT } from "../exit-codes.ts";
import { lookForTask } from "../find-task.ts";
import { existsTree, type OpenMailbox, openMailbox, treeOf } from "../options.ts";
import { countText, safe } from "../render.ts";
import { waitForTasks } from "../wait-for-tasks.ts";

const TASK_OPTIONS = {
  id: { type: "text", value: "ID", help: "the task's id; left out = a fresh one" },
  title: { type: "text", value: "TEXT", help: "what people see in lists" },
  priority: {
    type: "number",
    value: "N",
    min: -1_000_000_000,
    max: 1_000_000_000,
    help: "higher first (default 0)",
  },
  after: {
    type: "text",
    value: "ID",
    many: true,
    help: "run only when this task or roadmap item has completed",
  },
  delay: {
    type: "duration",
    value: "TIME",
    unit: "s",
    help: "not before this time has passed: 30, 10s, 5m, 2h",
  },
  "max-attempts": {
    type: "number",
    value: "N",
    min: 1,
    max: MAX_ATTEMPTS_MAX,
    help: "how often it may run in all",
  },
  timeout: {
    type: "duration",
    value: "TIME",
    unit: "s",
    help: "stop a run after this long: 30, 500ms, 5m",
  },
  agent: { type: "text", value: "NAME", help: "the configured agent that runs it" },
  prompt: { type: "text", value: "TEXT", help: "what a coding agent is asked" },
  cap: { type: "text", value: "NAME", many: true, help: "a capability that the agent must have" },
  cwd: { type: "text", value: "DIR", help: "where the program runs (default with -- CMD: here)" },
  env: { type: "text", value: "K=V", many: true, help: "a variable for the program" },
  payload: {
    type: "text",
    value: "JSON",
    help: "any JSON value; reaches the worker digit for digit",
  },
  dedup: {
    type: "text",
    value: "KEY",
    help: "at most one task of this key: the id is derived from it",
  },
} as const;

const OPTIONS = {
  ...TASK_OPTIONS,
  file: { type: "text", value: "FILE", help: "one JSON task per line; - reads stdin" },
  batch: {
    type: "flag",
    help: "with --file: the file as one batch, under one id; for very many small tasks",
  },
  wait: { type: "flag", help: "wait until it has settled; exit 1 when it failed" },
} as const;

type EnqueueContext = Context<typeof OPTIONS>;

export const command = defineCommand({
  usage: "[-- CMD ARGS…]",
  takesRest: true,
  details: [
    "Works with or without a running supervisor. Prints the id of each task. A program after -- is started without a shell. An id that exists already is refused with exit code 4; one that differs from it in case only is refused by the supervisor, which --wait tells. " +
      "A line or batch of which the very same bytes are there already, waiting, running or settled, is left as it is, with exit code 0 and a word on stderr: " +
      "whoever is not sure that a file was taken may send it again.",
  ],
  examples: [
    "enqueue -- ls -la",
    "enqueue --id nightly --priority 5 --after build -- make test",
    'enqueue --agent coder --prompt "mend the flaky test" --wait',
    "enqueue --file tasks.ndjson",
    "enqueue --batch --file tasks.ndjson --id nightly --wait",
  ],
  options: OPTIONS,
  async run(ctx) {
    if (ctx.options.batch) return enqueueBatch(ctx);
    return ctx.options.file === undefined ? enqueueOne(ctx) : enqueueMany(ctx, ctx.options.file);
  },
});

/** Like `openMailbox`, but says that the tree is new: it may be the wrong place. */
async function openInbox(ctx: EnqueueContext): Promise<OpenMailbox> {
  const isNew = !existsTree(treeOf(ctx));
  const open = await openMailbox(ctx);
  if (isNew && !ctx.json) ctx.out.note(`made a new state tree at ${safe(open.tree.dir)}`);
  return open;
}

async function enqueueOne(ctx: EnqueueContext): Promise<number> {
  const { id, text } = buildTask(ctx);
  const sinceMs = Date.now();
  const { tree, trays } = await openInbox(ctx);
  // The hot path of a submit does not look for batches: there the supervisor refuses the second of an id.
  const batch = join(trays.inbox, inboxName({ id, isBatch: true }));
  if (trays.storage.look(batch) !== undefined)
    throw new ErrTaskExists(`a batch ${JSON.stringify(id)} waits in the inbox`, {
      id,
      path: batch,
      phase: "enqueue",
    });
  const outcome = await submit(trays, { id, bytes: Buffer.from(text, "utf8") });
  // The bytes hold the second they were made in. So two commands that say the same are one task by chance only.
  if (outcome === "unchanged") {
    const key =
      ctx.options.dedup === undefined ? "" : `, of the key ${JSON.stringify(ctx.options.dedup)}`;
    throw new ErrTaskExists(`there is a task ${JSON.stringify(id)}${key}: ${stateOf(tree, id)}`, {
      id,
      phase: "enqueue",
      hint: "choose another id, or leave it out to get a fresh one",
    });
  }
  if (!ctx.json) ctx.out.line(id);
  if (!ctx.options.wait) {
    if (ctx.json) ctx.out.json({ id, outcome });
    return EXIT.ok;
  }
  const [settled] = (await waitForTasks(ctx, tree, [id], { areKnown: true, sinceMs })).settled;
  if (ctx.json) ctx.out.json({ id, outcome, status: settled?.status ?? "unknown" });
  else if (settled?.status === "failed") ctx.out.note(`${id} failed: ${safe(settled.error ?? "")}`);
  return settled?.status === "completed" ? EXIT.ok : EXIT.failed;
}

/** How the task or batch stands that an id belongs to already. */
function stateOf(tree: StateTree, id: string): string {
  switch (lookForTask(tree, id)?.state) {
    case "waiting":
    case "ready":
      return "it waits already";
    case "done":
      return "it has a result already, nothing runs";
    case "failed":
      return `it has failed already, nothing runs; see \`mailchute retry ${id}\``;
    default:
      return "it runs already";
  }
}

/** The task's id and its JSON text. @throws ErrUsage, ErrInvalidTask */
function buildTask(ctx: EnqueueContext): { id: string; text: string } {
  const { options, rest } = ctx;
  if (options.id !== undefined && options.dedup !== undefined)
    throw new ErrUsage("--id and --dedup exclude each other");
  if (rest?.length === 0) throw new ErrUsage("there is no program after --");
  const id =
    options.id ??
    (options.dedup === undefined ? newId(systemClock.wallMs()) : idOfKey(options.dedup));
  const nowSeconds = wallSeconds(systemClock);
  const task: Record<string, unknown> = { id, created_at: nowSeconds };
  const put = (field: string, value: unknown): void => {
    if (value !== undefined && !(Array.isArray(value) && value.length === 0)) task[field] = value;
  };
  put("title", options.title);
  put("priority", options.priority);
  put("max_attempts", options["max-attempts"]);
  put("timeout_ms", options.timeout);
  put(
    "not_before",
    options.delay === undefined
      ? undefined
      : Math.ceil((systemClock.wallMs() + options.delay) / 1000),
  );
  put("agent", options.agent);
  put("prompt", options.prompt);
  put("capabilities", options.cap);
  put("exec", rest);
  if (options.cwd !== undefined || rest !== undefined)
    put("cwd", resolve(ctx.cwd, options.cwd ?? "."));
  put("env", readVariables(options.env));
  put("dedup_key", options.dedup);
  if (options.after.length > 0) put("metadata", { dependencies: options.after });
  const payload = options.payload === undefined ? undefined : readPayload(options.payload);
  const isEmpty =
    rest === undefined &&
    options.agent === undefined &&
    options.prompt === undefined &&
    payload === undefined;
  if (isEmpty && options.title === undefined) {
    throw new ErrUsage(
      "there is nothing to run",
      "give a program after --, or --agent with --prompt, or --payload, or --file tasks.ndjson",
    );
  }
  const head = JSON.stringify(task);
  checkTask(payload === undefined ? task : { ...task, payload: null }, id);
  return {
    id,
    text: payload === undefined ? `${head}\n` : `${head.slice(0, -1)},"payload":${payload}}\n`,
  };
}

/** Checked as strictly as a dropped file, kept as it was typed. */
function readPayload(text: string): string {
  try {
    parseObject(Buffer.from(`{"payload":${text}}`, "utf8"), new Set(["payload"]));
  } catch (error) {
    throw new ErrUsage(
      `--payload is not JSON: ${messageOf(error)}`,
      "quote it for the shell: --payload '{\"a\":1}'",
    );
  }
  return text.trim();
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

/** The same key gives the same id, for ever. */
function idOfKey(key: string): string {
  return `d-${createHash("sha256").update(key, "utf8").digest("hex").slice(0, 24)}`;
}

/** The options that fit a batch: everything else is said line by line. */
const BATCH_OPTIONS: ReadonlySet<string> = new Set(["id", "file", "batch", "wait"]);

async function enqueueBatch(ctx: EnqueueContext): Promise<number> {
  const { file } = ctx.options;
  if (file === undefined)
    throw new ErrUsage(
      "--batch needs --file",
      "usage: mailchute enqueue --batch --file tasks.ndjson",
    );
  refuseOthers(ctx, "--batch", BATCH_OPTIONS);
  const { submitBatch } = await import("../../mailbox/submit-batch.ts");
  const { tree, trays, loaded } = await openInbox(ctx);
  const sinceMs = Date.now();
  const id = ctx.options.id ?? newId(systemClock.wallMs(), "b");
  const source =
    file === "-" ? process.stdin : fs.createReadStream(file, { highWaterMark: 2 ** 20 });
  const submitted = await submitBatch(
    trays,
    id,
    source as AsyncIterable<Buffer>,
    loaded.settings.batch_bytes_max,
  );
  if (!ctx.json) {
    ctx.out.line(id);
    ctx.out.note(`${countText(submitted.lines)} ${submitted.lines === 1 ? "line" : "lines"}`);
    if (submitted.outcome === "unchanged") ctx.out.note(`unchanged: ${stateOf(tree, id)}`);
  }
  if (!ctx.options.wait) {
    if (ctx.json) ctx.out.json({ id, ...submitted });
    return EXIT.ok;
  }
  const waited = await waitForTasks(ctx, tree, [id], { areKnown: true, sinceMs });
  const [settled] = waited.settled;
  if (ctx.json) ctx.out.json({ id, ...submitted, ...settled });
  else if (settled?.failed_lines !== undefined)
    ctx.out.note(`${settled.failed_lines} of its lines failed`);
  else if (settled?.status === "failed") ctx.out.note(`${id} failed: ${safe(settled.error ?? "")}`);
  return waited.isAllCompleted ? EXIT.ok : EXIT.failed;
}

/** @throws ErrUsage when an option is given that makes no sense beside `flag` */
function refuseOthers(ctx: EnqueueContext, flag: string, allowed: ReadonlySet<string>): void {
  const given = Object.keys(TASK_OPTIONS).filter((name) => {
    const value = ctx.options[name as keyof typeof TASK_OPTIONS];
    return !allowed.has(name) && (Array.isArray(value) ? value.length > 0 : value !== undefined);
  });
  if (given.length > 0)
    throw new ErrUsage(
      `${flag} and --${given[0]} exclude each other`,
      "put the field into each line of the file",
    );
  if (ctx.rest !== undefined) throw new ErrUsage(`${flag} and -- CMD exclude each other`);
}

async function enqueueMany(ctx: EnqueueContext, file: string): Promise<number> {
  refuseOthers(ctx, "--file", new Set(["file"]));
  const { tree, trays } = await openInbox(ctx);
  const sinceMs = Date.now();
  const ids: string[] = [];
  const counts = await enqueueFile(ctx, trays, file, (more) => {
    if (ctx.json || ctx.options.wait) ids.push(...more);
    if (!ctx.json) ctx.out.line(more.join("\n"));
  });
  const waited =
    ctx.options.wait && ids.length > 0
      ? await waitForTasks(ctx, tree, ids, { areKnown: true, sinceMs })
      : undefined;
  if (ctx.json) {
    const failed = waited?.settled.filter((one) => one.status === "failed").length;
    ctx.out.json({ ids, ...counts, ...(failed === undefined ? {} : { failed }) });
  } else {
    const refused = counts.bad + counts.refused;
    const parts = [
      `${countText(counts.submitted)} submitted`,
      ...(counts.unchanged > 0 ? [`${countText(counts.unchanged)} unchanged: there already`] : []),
      ...(refused > 0 ? [`${countText(refused)} lines refused`] : []),
    ];
    if (parts.length > 1) ctx.out.note(parts.join(", "));
  }
  if (counts.bad > 0 || (waited !== undefined && !waited.isAllCompleted)) return EXIT.failed;
  return counts.refused > 0 ? counts.exitCode : EXIT.ok;
}
