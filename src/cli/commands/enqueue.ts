/** `enqueue`: builds tasks from flags or reads them from a file of lines, and submits them. Runs nothing. */
import fs from "node:fs";
import { join, resolve } from "node:path";
import { wallSeconds } from "../../core/clock.ts";
import { compact } from "../../core/compact.ts";
import { ErrTaskExists } from "../../core/errors.ts";
import { inboxName, resultsName } from "../../core/names.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { openInput, statOf, streamOf } from "../../host/regular-file.ts";
import { systemClock } from "../../host/system-clock.ts";
import { makeThreads, SYNC_THREADS, threadsFor } from "../../host/threads.ts";
import { newId } from "../../mailbox/files/random.ts";
import { submitStamped } from "../../mailbox/submit/submit-stamped.ts";
import { ago, countText, safe } from "../../text/render.ts";
import { lookForTask } from "../../view/find-task.ts";
import { buildTask } from "../enqueue/build-task.ts";
import { enqueueFile } from "../enqueue/enqueue-file.ts";
import { FieldCheck } from "../enqueue/field-check.ts";
import type { TaskFile } from "../enqueue/task-file.ts";
import { type EnqueueContext, OPTIONS, openInbox, refuseOthers } from "../enqueue/task-options.ts";
import { tellAll } from "../enqueue/tell-all.ts";
import { defineCommand, ErrUsage } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { openSettings, treeOf } from "../shell/options.ts";
import { waitForTasks } from "../wait/wait-for-tasks.ts";

export const command = defineCommand({
  usage: "[-- CMD ARGS…]",
  takesRest: true,
  details: [
    "Puts a task into the inbox and prints its id. If no supervisor runs, the next one takes the task up. The program after -- is started " +
      "directly, without a shell.",
    "--wait waits for the end of the task and then prints what its program wrote, after the id. Exit code 1: the task has failed.",
    "An id that another task has already is refused with exit code 4. If it differs from that id only in case, the supervisor refuses it " +
      "later; --wait tells you so.",
    "--each makes a task of each line of a file: {} is the line, {#} its number, {.} the line without extension, {/} its file name, {//} its folder, in CMD, --prompt, --title, --cwd, --env, --dedup and --verify. A CMD " +
      'without {} gets the line as its last argument; a command line of --shell finds it in "$1". With --id ID the tasks are ID.1, ID.2 and ' +
      "so on, and sending them again changes nothing. Blank lines are left out. If one line is bad, nothing is submitted.",
    "A Markdown list, as todo.md, gives a task of each open box: `help list`. The other options then hold for each of them.",
    "You may send a task, a line or a batch again, for example when you are not sure that it arrived. If the same one waits, runs or has " +
      "settled, nothing changes: stderr says so, and the exit code is 0. To run it again, use mailchute retry, or another id.",
  ],
  examples: [
    "enqueue -- ls -la",
    "enqueue --id nightly --priority 5 --after build -- make test",
    'enqueue --agent coder --prompt "mend the flaky test" --wait',
    "enqueue --worktree auto --land merge --target main -- make format",
    "enqueue --shell 'make && make install' --verify 'make check'",
    "enqueue --each pictures.txt -- optipng {}",
    "enqueue --agent coder --prompt - < brief.md",
    "enqueue --like nightly --priority 5",
    "enqueue --file tasks.ndjson",
    "enqueue --agent coder --file todo.md",
    "enqueue --batch --file tasks.ndjson --id nightly --wait",
  ],
  options: OPTIONS,
  async run(typed) {
    const isFromStdin = typed.options.prompt === "-" || typed.options.payload === "-";
    const filled = isFromStdin
      ? await (await import("../enqueue/read-stdin.ts")).withStdin(typed)
      : typed;
    const { agent, group } = filled.options;
    const ctx =
      agent === undefined && group === undefined
        ? filled
        : await (await import("../enqueue/place-of-run.ts")).withPlaceOfRun(filled);
    if (ctx.options.edit && ctx.options.like === undefined)
      throw new ErrUsage("--edit needs --like ID", "to change a waiting task: mailchute edit ID");
    if (ctx.options.like !== undefined) {
      const { enqueueLike } = await import("../enqueue/like.ts");
      return enqueueLike(ctx, ctx.options.like);
    }
    if (ctx.options["dry-run"] && ctx.options.each === undefined) return tryOne(ctx);
    if (ctx.env["MAILCHUTE_DROP"] !== undefined) {
      const { dropOf } = await import("../shell/inside-run.ts");
      const drop = dropOf(ctx);
      if (drop !== undefined) return enqueueInRun(ctx, drop);
    }
    // Files that are synced together share the commits of the file system.
    if (ctx.options.file !== undefined || ctx.options.each !== undefined)
      makeThreads(threadsFor(SYNC_THREADS));
    const { file, each } = ctx.options;
    if (each !== undefined) {
      const { enqueueEach } = await import("../enqueue/each.ts");
      return enqueueEach(ctx, each);
    }
    if (ctx.options.null) throw new ErrUsage("-0 needs --each");
    if (ctx.options.batch) return enqueueBatch(ctx);
    if (file === undefined) return enqueueOne(ctx);
    return (await enqueueByPart(ctx, file)) ?? enqueueMany(ctx, file);
  },
});

/** Builds and checks the task, and prints it. */
async function tryOne(ctx: EnqueueContext): Promise<number> {
  const { file, batch: isBatch } = ctx.options;
  if (file !== undefined) {
    if ((await partOf(ctx, file)) !== undefined)
      throw new ErrUsage("--dry-run takes no list", "mailchute list ls shows its boxes");
    refuseOthers(ctx, "--file", new Set(["id", "file", "batch"]));
    const { settings } = await openSettings(ctx);
    const { tryFile } = await import("../enqueue/enqueue-file.ts");
    return tryFile(ctx, settings.agents, file, isBatch);
  }
  const { text } = buildTask(ctx, wallSeconds(systemClock));
  await ctx.out.raw(text);
  return EXIT.ok;
}

async function enqueueOne(ctx: EnqueueContext): Promise<number> {
  const createdAt = wallSeconds(systemClock);
  const { id, text } = buildTask(ctx, createdAt);
  const sinceMs = Date.now();
  const { tree, trays, loaded } = await openInbox(ctx);
  if (ctx.rest === undefined && loaded.settings.agents.some(({ kind }) => kind === "acp")) {
    const { checkAgentOf } = await import("../enqueue/place-of-run.ts");
    checkAgentOf(id, text, loaded.settings.agents);
  }
  // For speed, a submit does not look for batches; when a batch has the id, the supervisor refuses the task.
  const batch = join(trays.inbox, inboxName({ id, isBatch: true }));
  if (trays.storage.look(batch) !== undefined)
    throw new ErrTaskExists(`a batch ${JSON.stringify(id)} waits in the inbox`, {
      id,
      path: batch,
      phase: "enqueue",
    });
  const outcome = await submitStamped(trays, id, createdAt, (atS) =>
    atS === createdAt ? text : buildTask(ctx, atS, id).text,
  );
  const warnings = await warningsFor(ctx, tree, loaded.settings);
  if (!ctx.json) {
    ctx.out.line(id);
    for (const warning of warnings) ctx.out.note(safe(warning));
    if (outcome === "unchanged") ctx.out.note(`${id} is there already: ${stateOf(tree, id)}`);
  }
  const answer = { id, outcome, ...(warnings.length > 0 ? { warnings } : {}) };
  if (!ctx.options.wait) {
    if (ctx.json) ctx.out.json(answer);
    return EXIT.ok;
  }
  const [settled] = (await waitForTasks(ctx, tree, [id], { areKnown: true, sinceMs })).settled;
  if (ctx.json) ctx.out.json({ ...answer, status: settled?.status ?? "unknown" });
  else {
    const { tellEnd } = await import("../enqueue/print-output.ts");
    const isProgram = ctx.rest !== undefined || ctx.options.shell !== undefined;
    await tellEnd(ctx, tree, settled, { id, isProgram });
  }
  return settled?.status === "completed" ? EXIT.ok : EXIT.failed;
}

/** Used inside the run of an agent, which may not be able to write into the mailbox. The worker outside takes the task from the folder. */
async function enqueueInRun(ctx: EnqueueContext, drop: string): Promise<number> {
  const { dropTask, insideRun } = await import("../shell/inside-run.ts");
  const { file, each, batch: isBatch } = ctx.options;
  if (file !== undefined || each !== undefined || isBatch)
    throw insideRun(
      `enqueue --${each === undefined ? "file" : "each"}`,
      "enqueue each task by itself",
    );
  const { id, text } = buildTask(ctx, wallSeconds(systemClock));
  const sinceMs = Date.now();
  const outcome = dropTask(drop, id, text);
  if (!ctx.json) ctx.out.line(id);
  if (!ctx.options.wait) {
    if (ctx.json) ctx.out.json({ id, outcome });
    return EXIT.ok;
  }
  const { settled } = await waitForTasks(ctx, treeOf(ctx), [id], { areKnown: true, sinceMs });
  const [one] = settled;
  if (ctx.json) ctx.out.json({ id, outcome, status: one?.status ?? "unknown" });
  else if (one?.status === "failed") ctx.out.note(`${id} failed: ${safe(one.error ?? "")}`);
  return one?.status === "completed" ? EXIT.ok : EXIT.failed;
}

/** Warnings about possible mistakes in the task. The code is loaded only for tasks that may need one. */
async function warningsFor(
  ctx: EnqueueContext,
  tree: StateTree,
  settings: Settings,
): Promise<string[]> {
  const { options, rest } = ctx;
  const hasLimits = options.limit.length > 0 || options.weight !== undefined;
  const isInherited = options["inherit-env"];
  const hasProgram = rest !== undefined || options.shell !== undefined;
  const isPlain =
    options.after.length === 0 && !hasLimits && !isInherited && options.group === undefined;
  if (hasProgram && rest?.length !== 1 && isPlain) return [];
  const { warnOfAgent, warnOfGroup, warnOfLeftOut, warnOfLimits, warnOfShell, warnOfUnknown } =
    await import("../enqueue/warnings.ts");
  const cwd = resolve(ctx.cwd, options.cwd ?? ".");
  return [
    ...(hasProgram ? [] : warnOfAgent(agentWantedBy(options), settings.agents)),
    ...warnOfShell(rest, cwd, ctx.env["PATH"]),
    ...warnOfGroup(options.group, settings),
    ...warnOfLimits(options, settings),
    ...(isInherited ? warnOfLeftOut(ctx.env) : []),
    ...(options.after.length === 0 ? [] : await warnOfUnknown(tree, options.after)),
  ];
}

function agentWantedBy({ agent, fallback, cap, type }: EnqueueContext["options"]) {
  const agents = agent === undefined || fallback.length === 0 ? undefined : [agent, ...fallback];
  return { capabilities: cap, ...compact({ agent, agents, type }) };
}

/** The state of the task or batch that already has this id. */
function stateOf(tree: StateTree, id: string): string {
  const place = lookForTask(tree, id);
  const atMs = place === undefined ? undefined : mtimeMsOf(place.path);
  const when = atMs === undefined ? "" : ` ${ago(atMs, Date.now())}`;
  switch (place?.state) {
    case "waiting":
    case "ready":
      return "it waits";
    case "done": {
      const isBatch = fs.existsSync(join(tree.mailbox, "outbox", resultsName(id)));
      const again = isBatch ? "" : `; to run it again: mailchute retry ${id} --completed`;
      return `it has completed${when}, and nothing runs${again}`;
    }
    case "failed":
      return `it has failed${when}, and nothing runs; to run it again: mailchute retry ${id}`;
    default:
      return "it runs";
  }
}

function mtimeMsOf(path: string): number | undefined {
  return statOf(path)?.mtimeMs;
}

/** The options that may be used with a batch. The lines of the batch give everything else. */
const BATCH_OPTIONS: ReadonlySet<string> = new Set(["id", "file", "batch", "wait"]);

async function enqueueBatch(ctx: EnqueueContext): Promise<number> {
  const { file } = ctx.options;
  if (file === undefined)
    throw new ErrUsage(
      "--batch needs --file",
      "usage: mailchute enqueue --batch --file tasks.ndjson",
    );
  refuseOthers(ctx, "--batch", BATCH_OPTIONS);
  const { submitBatch } = await import("../../mailbox/submit/submit-batch.ts");
  const { tree, trays, loaded } = await openInbox(ctx);
  const sinceMs = Date.now();
  const id = ctx.options.id ?? newId(systemClock.wallMs(), "b");
  const source = file === "-" ? process.stdin : streamOf(openInput(file));
  const check = new FieldCheck(ctx);
  const submitted = await submitBatch(
    trays,
    id,
    check.lines(source as AsyncIterable<Buffer>),
    loaded.settings.batch_bytes_max,
  );
  if (!ctx.json) {
    ctx.out.line(id);
    ctx.out.note(`${countText(submitted.lines)} ${submitted.lines === 1 ? "line" : "lines"}`);
    const { count, first } = check.noObjects;
    if (count > 0)
      ctx.out.note(
        `${countText(count)} of them ${count === 1 ? "is no task" : "are no tasks"} and will fail, first line ${first}`,
      );
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
    ctx.out.note(`${settled.failed_lines} of its ${settled.lines} lines failed`);
  else if (settled?.status === "failed") ctx.out.note(`${id} failed: ${safe(settled.error ?? "")}`);
  return waited.isAllCompleted ? EXIT.ok : EXIT.failed;
}

/** Undefined when no part handles the file. Then each of its lines is a task. */
async function enqueueByPart(ctx: EnqueueContext, file: string): Promise<number | undefined> {
  return (await partOf(ctx, file))?.enqueue(ctx, file);
}

async function partOf(ctx: EnqueueContext, file: string): Promise<TaskFile | undefined> {
  // Most files need no part. Do not load the list of parts for them.
  if (file === "-" || /\.(?:nd)?jsonl?$/i.test(file)) return undefined;
  const { TASK_FILES } = await import("../../app/task-files.ts");
  return TASK_FILES.find((one) => one.fits(ctx, file));
}

async function enqueueMany(ctx: EnqueueContext, file: string): Promise<number> {
  refuseOthers(ctx, "--file", new Set(["file"]));
  return tellAll(ctx, (open, onIds) => enqueueFile(ctx, open, file, onIds));
}
