/** `run`: the supervisor with its pool, in the foreground. */
import { join } from "node:path";
import { compact } from "../../core/compact.ts";
import { stateTree } from "../../core/state-tree.ts";
import { keepAwake } from "../../host/keep-awake.ts";
import { makeThreads, threadsFor, USUAL_THREADS } from "../../host/threads.ts";
import { treeIdOf } from "../../host/tree-id.ts";
import type { RunStart, RunSummary, Supervisor } from "../../supervisor/supervisor.ts";
import { localTime } from "../../text/local-time.ts";
import { counted, describeCounts, safe } from "../../text/render.ts";
import { liveHeld } from "../../view/blocked-tasks.ts";
import {
  type Context,
  defineCommand,
  ErrUsage,
  numberOption,
  textOption,
} from "../shell/command-spec.ts";
import { startDetached, watchLog } from "../shell/detached.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { describeTree, existingTree, openSettings, shortPath } from "../shell/options.ts";
import { watchTerminals } from "../shell/terminals.ts";
import { callAt, readUntil } from "../shell/until.ts";
import { RunLines } from "../wait/run-lines.ts";

/** It names at most this many tasks that do not start, and as many nodes. */
const NAMED_MAX = 5;

export const command = defineCommand({
  usage: "",
  isLongLived: true,
  details: [
    "Runs until you stop it. Ctrl-C or `mailchute stop` ends it and gives back the running tasks; the next run starts them again. A second Ctrl-C " +
      "kills them. Closing the terminal stops it, too, even under nohup, which has no effect on Node: use --detach, or `mailchute service`.",
    "With --drain, --once, --until or --max-iterations it ends by itself. Exit code 0: all tasks completed and the plan is done; 1: a task, or " +
      "a line of a batch, failed, cannot run or waits for your answer.",
  ],
  examples: [
    "run --workers 4 --processes 2",
    "run --drain",
    "run --once --dry-run",
    "run --until 07:00 --keep-awake",
    "run --detach",
  ],
  options: {
    workers: numberOption("N", "slots over all worker processes", { min: 0, max: 1024 }),
    processes: { type: "number", value: "P", min: 1, max: 64, help: "worker processes" },
    once: { type: "flag", help: "one pass: run what can run now, then end" },
    drain: { type: "flag", help: "end when nothing is left that could run" },
    "dry-run": { type: "flag", help: "say what would run, in order, and change nothing" },
    "max-iterations": numberOption("N", "end after N tasks were started", { min: 1 }),
    until: textOption(
      "TIME",
      "start nothing new after this local time (07:00) or duration (8h), and end when what runs has ended",
    ),
    "keep-awake": {
      type: "flag",
      help: "keep the machine from sleeping until it ends, with systemd-inhibit",
    },
    "interval-ms": numberOption("N", "longest pause before the folders are scanned again", {
      min: 0,
    }),
    durability: {
      type: "text",
      value: "LEVEL",
      choices: ["power", "process"],
      help: "what an acknowledged task survives",
    },
    live: {
      type: "toggle",
      help: "a line on stderr for each task that starts, ends or waits again, and with --drain or --once how many have ended (default where stderr is a terminal); --no-live: no lines at all",
    },
    paused: { type: "flag", help: "start paused" },
    detach: {
      type: "flag",
      help: "run in the background, also when the terminal is closed; what it reports goes to run.log in the state tree, which stays small",
    },
  },
  async run(ctx) {
    const { options } = ctx;
    watchLog(ctx.env);
    makeThreads(threadsFor(USUAL_THREADS));
    const untilMs = options.until === undefined ? undefined : readUntil(options.until, Date.now());
    const { workers, processes, durability } = options;
    const interval = options["interval-ms"];
    const sweepMs = interval === undefined ? undefined : Math.max(10, interval);
    const flags = compact({ workers, processes, durability, sweep_ms: sweepMs });
    const { settings, sources, mailboxDir } = await openSettings(ctx, flags);
    const tree = stateTree(ctx.stateDir, mailboxDir);
    if (options.detach && options["dry-run"])
      throw new ErrUsage("--dry-run only prints: leave out --detach");
    if (options.detach) return startDetached(ctx, tree, process.argv.slice(2));
    const { Supervisor } = await import("../../app/supervisor.ts");
    const isQuiet = options.live === false;
    // Show events to a person at a terminal. A log or a pipe does not need them, because the journal has them.
    const isLive =
      (options.live ?? (process.stderr.isTTY === true && !ctx.json)) && !options["dry-run"];
    const lines = isLive ? new RunLines(ctx, tree, options.drain || options.once) : undefined;
    const out = lines?.out ?? ctx.out;
    if (options["dry-run"]) existingTree(ctx);
    const which = describeTree(ctx);
    const mode = {
      once: options.once,
      drain: options.drain,
      dryRun: options["dry-run"],
      paused: options.paused,
      ...compact({ maxTasks: options["max-iterations"] }),
      areWorkersGiven: sources["workers"] === "flag" || sources["workers"] === "environment",
    };
    const onStart = (start: RunStart): void => {
      if (isQuiet) return;
      const inbox = shortPath(ctx, join(tree.mailbox, "inbox"));
      for (const line of describeStart(inbox, start, settings.workers, { ...options, untilMs }))
        out.note(line);
    };
    const onNotice = (notice: string): void => {
      if (!isQuiet) out.note(safe(notice));
    };
    const supervisor = new Supervisor({ tree, settings, ...mode, onStart, onNotice });
    if (which !== undefined && !isQuiet) out.note(which);
    const endIfHungUp = watchTerminals();
    const wasInterrupted = stopOnSignals({ out }, supervisor);
    const treeId = treeIdOf(tree.dir);
    lines?.follow(tree.events, () => supervisor.progress());
    const endWaits = options["dry-run"]
      ? () => {}
      : watchTheNight(supervisor, untilMs, options["keep-awake"], onNotice);
    const ran = await supervisor.run().finally(() => {
      lines?.close();
      endWaits();
    });
    const summary = { ...ran, held: liveHeld(tree, ran.held) };
    const isMoved = treeIdOf(tree.dir) !== treeId;
    if (ctx.json) ctx.out.json(summary);
    else if (summary.endedBy === "lock-lost" && isMoved)
      ctx.out.line(`${safe(tree.dir)} was moved, removed or replaced; this supervisor ended`);
    else for (const line of describe(summary, options["dry-run"])) ctx.out.line(line);
    if (summary.roadmapProblem !== undefined)
      out.note("ErrInvalidRoadmap: the plan cannot be used; mailchute roadmap check says why");
    endIfHungUp();
    if (wasInterrupted()) return EXIT.interrupted;
    if (summary.endedBy === "lock-lost") return EXIT.conflict;
    const isLimited = options["max-iterations"] !== undefined || untilMs !== undefined;
    const endsByItself = options.drain || options.once || isLimited;
    return endsByItself ? exitCodeOf(summary) : EXIT.ok;
  },
});

/** Starts `--until` and `--keep-awake`. @returns a function that ends both */
function watchTheNight(
  supervisor: Supervisor,
  untilMs: number | undefined,
  isAwake: boolean,
  onNotice: (notice: string) => void,
): () => void {
  const letSleep = isAwake
    ? keepAwake("tasks run", (reason) =>
        onNotice(`cannot keep the machine from sleeping: ${reason}`),
      )
    : () => {};
  const endWait =
    untilMs === undefined
      ? () => {}
      : callAt(untilMs, () => {
          onNotice(
            `the time of --until has come: nothing new starts, and running tasks go on to their end${supervisor.settings.until_grace_ms > 0 ? "; completed work still lands" : ""}`,
          );
          supervisor.finish();
        });
  return () => {
    endWait();
    letSleep();
  };
}

/** @returns whether Ctrl-C was pressed */
function stopOnSignals(ctx: Pick<Context, "out">, supervisor: Supervisor): () => boolean {
  let signals = 0;
  let isInterrupted = false;
  // A closed terminal may send SIGHUP twice: once from its shell and once from the system.
  process.on("SIGHUP", () => supervisor.stop(false));
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      signals += 1;
      isInterrupted ||= signal === "SIGINT";
      if (signals > 1) process.exit(EXIT.interrupted);
      ctx.out.note("stopping: running tasks are given back (signal again to stop at once)");
      supervisor.stop(false);
    });
  }
  return () => isInterrupted;
}

function exitCodeOf(summary: RunSummary): number {
  if (summary.roadmapProblem !== undefined) return EXIT.config;
  const { failed, failedNodes, skipped, batchesWithFailedLines, refused, blocked } = summary;
  const left = failed - failedNodes + skipped + batchesWithFailedLines + refused + blocked;
  return left + unfinished(summary) > 0 ? EXIT.failed : EXIT.ok;
}

/** Describes what the run watches, how many slots it has and why, and how it ends. @param place the inbox */
function describeStart(
  place: string,
  { slots, areSlotsRemembered }: RunStart,
  given: number,
  options: {
    drain: boolean;
    once: boolean;
    "max-iterations": number | undefined;
    untilMs: number | undefined;
  },
): string[] {
  const many = counted(slots, "slot");
  const lines = [`watching ${safe(place)} with ${many} (pid ${process.pid})`];
  if (areSlotsRemembered && slots !== given)
    lines.push(`${many}, as set-workers said before, not ${given} (\`set-workers N\` changes it)`);
  if (slots === 0) lines.push("0 slots: nothing starts before `mailchute set-workers N`");
  const limit = options["max-iterations"];
  const ends: string[] = [];
  if (options.once) ends.push("after one pass");
  if (options.drain) ends.push("when nothing is left to run");
  if (limit !== undefined) ends.push(`after ${counted(limit, "task")}`);
  if (options.untilMs !== undefined) ends.push(`after ${localTime(options.untilMs)}`);
  lines.push(
    ends.length > 0
      ? `ends ${ends.join(" or ")}; Ctrl-C stops it before`
      : "Ctrl-C or `mailchute stop` ends it",
  );
  return lines;
}

/** How many nodes of the plan make this run a failure. Open nodes count only when the run ended because all work was done. */
function unfinished({ roadmap, endedBy }: RunSummary): number {
  if (roadmap === undefined) return 0;
  const { failed, blocked, needs_human, open, in_progress } = roadmap;
  const stuck = failed + blocked + needs_human;
  return endedBy === "drained" ? stuck + open + in_progress : stuck;
}

function describe(summary: RunSummary, isDryRun: boolean): string[] {
  if (isDryRun) {
    const blocked =
      summary.blocked > 0 ? [`${summary.blocked} cannot run yet; see \`mailchute status\``] : [];
    if (summary.wouldRun.length === 0) return ["nothing would run", ...blocked];
    return [...summary.wouldRun.map((id) => `would run ${safe(id)}`), ...blocked];
  }
  if (summary.endedBy === "lock-lost") return ["another supervisor has taken over; this one ended"];
  const parts = [`${summary.completed} completed`, `${summary.failed} failed`];
  if (summary.skipped > 0) parts.push(`${summary.skipped} skipped`);
  if (summary.duplicates > 0) parts.push(`${counted(summary.duplicates, "duplicate")} not run`);
  const { failedLines, batchesWithFailedLines: batches } = summary;
  if (batches > 0)
    parts.push(
      `${counted(failedLines, "line")} failed in ${counted(batches, "completed batch", "completed batches")}`,
    );
  if (summary.refused > 0) parts.push(`${summary.refused} refused`);
  if (summary.blocked > 0) parts.push(`${summary.blocked} cannot run:`);
  const lines = [parts.join(", ")];
  lines.push(...nameHeld(summary.held, summary.blocked));
  if (summary.roadmap !== undefined) lines.push(`roadmap: ${describeCounts(summary.roadmap)}`);
  const { asking = [], held = [], held_count: heldCount = 0 } = summary.planHolds ?? {};
  for (const { id, question } of asking)
    lines.push(
      safe(
        `  ${id} ${question === null ? "waits" : `asks: ${question}`} (mailchute answer ${id} TEXT)`,
      ),
    );
  lines.push(...nameHeld(held, heldCount));
  if (summary.roadmapProblem !== undefined) lines.push(safe(summary.roadmapProblem));
  return lines;
}

/** One line for each named task, and one line for all others. */
function nameHeld(held: readonly { id: string; why: string }[], total: number): string[] {
  const shown = held.slice(0, NAMED_MAX).map(({ id, why }) => safe(`  ${id}: ${why}`));
  const more = total - shown.length;
  return more > 0 ? [...shown, `  and ${more} more: \`mailchute status\` says why`] : shown;
}
