/** `demo`: a short demonstration on a temporary state tree, with real processes. It checks its own result. */
import fs from "node:fs";
import { type Context, defineCommand } from "../../cli/shell/command-spec.ts";
import { EXIT } from "../../cli/shell/exit-codes.ts";
import { messageOf } from "../../core/errors.ts";
import { pathInPackage } from "../../host/package.ts";
import { tryReadText } from "../../host/regular-file.ts";
import { duration, safe } from "../../text/render.ts";
import { TASK_COUNT } from "./acts.ts";
import { Narrator } from "./narrator.ts";
import { faultsOf, type Outcome, Play } from "./play.ts";
import { ErrDemo, Interrupted, Stage } from "./stage.ts";

/** The demo fails when it takes longer than this (ms). Usually it takes a few seconds. */
const LIMIT_MS = 18_000;
/** Pause between two acts, for a person who watches (ms). */
const REST_MS = 1000;
const LOG_LINES_SHOWN = 20;

export const command = defineCommand({
  usage: "[--keep]",
  isLongLived: true,
  details: [
    "Starts a supervisor with two worker processes on a temporary state tree, drops tasks that succeed, fail, retry and wait for each other, " +
      "kills a worker with SIGKILL, pauses and resumes, and checks the counts at the end. Exit code 1 if a count is wrong. Needs no network.",
  ],
  options: {
    keep: { type: "flag", help: "leave the state tree for you to look at" },
  },
  async run(ctx) {
    const narrator = new Narrator(ctx);
    const stage = new Stage(LIMIT_MS, ctx.isTerminal && !ctx.json ? REST_MS : 0);
    const { keep } = ctx.options;
    narrator.line(narrator.paint("bold", "mailchute demo: a worker pool that is just folders"));
    narrator.line(`state tree: ${stage.tree.dir}`);
    narrator.line(keep ? "(kept for you to look at)" : "(removed at the end; --keep keeps it)");
    try {
      const outcome = await new Play(stage, narrator).perform();
      return report(ctx, narrator, stage, outcome, keep);
    } catch (error) {
      if (error instanceof Interrupted) {
        ctx.out.note("interrupted: stopping the supervisor and its workers");
        return EXIT.interrupted;
      }
      if (!(error instanceof ErrDemo)) throw error;
      ctx.out.note(`the demo failed: ${messageOf(error)}`);
      for (const line of logTail(stage.logFile)) ctx.out.note(`supervisor.log: ${safe(line)}`);
      return EXIT.failed;
    } finally {
      await stage.close(keep);
    }
  },
});

function report(
  ctx: Pick<Context, "out" | "json">,
  narrator: Narrator,
  stage: Stage,
  outcome: Outcome,
  isKept: boolean,
): number {
  const faults = faultsOf(outcome);
  if (ctx.json) {
    ctx.out.json({
      ok: faults.length === 0,
      duration_ms: Math.round(stage.elapsedMs),
      state_dir: isKept ? stage.tree.dir : null,
      ...outcome,
      faults,
    });
  }
  for (const fault of faults) ctx.out.note(`wrong: ${fault}`);
  if (faults.length > 0) return EXIT.failed;
  narrator.line();
  narrator.line(
    narrator.paint(
      "green",
      `All counts are as expected: ${TASK_COUNT} files dropped, none lost, ${duration(stage.elapsedMs)}.`,
    ),
  );
  narrator.line();
  const name = commandHere();
  for (const line of nextLines(name)) narrator.line(line);
  if (isKept) narrator.line(`The demo's tree:  ${name} status --state ${stage.tree.dir}`);
  return EXIT.ok;
}

/** Outside of a clone npx would fetch a package of this name from the registry. The archive has no sources. */
function commandHere(): string {
  return fs.existsSync(pathInPackage("src")) ? "npx mailchute" : "mailchute";
}

const nextLines = (name: string): string[] => [
  "Your turn, in this directory:",
  `   ${`${name} run`.padEnd(61)}# terminal 1`,
  '   echo \'{"exec": ["date"]}\' > state/mailbox/inbox/now.json     # terminal 2',
  "   cat state/mailbox/outbox/now_result.json",
  `   ${name} status; ${name} help`,
];

function logTail(path: string): string[] {
  const text = tryReadText(path);
  return text === undefined ? [] : text.trimEnd().split("\n").slice(-LOG_LINES_SHOWN);
}
