/** Runs the programs of `setup` in a new worktree: they make it ready for work, as `npm ci` does. */
import { join } from "node:path";
import { timeoutOf } from "../agents/agent.ts";
import { lastWords, runProgram } from "../agents/program.ts";
import { readPrograms } from "../codec/task-rules.ts";
import { type AttemptOutcome, failed } from "../core/outcome.ts";
import { RUN_DIR_DEPTH } from "../core/state-tree.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { appendRegularText } from "../host/regular-file.ts";
import type { AssignedAgent } from "./runner.ts";

/** @returns why the run fails or waits; undefined when all of them exited with 0 */
export async function runSetup({
  agent,
  assignment,
}: AssignedAgent): Promise<AttemptOutcome | undefined> {
  const { runDir, task } = assignment;
  const programs = task.setup ?? readPrograms(agent.settings.setup ?? []);
  const log = join(runDir, "setup.log");
  for (const [index, argv] of programs.entries()) {
    makeDirs(runDir, RUN_DIR_DEPTH);
    appendRegularText(log, `$ ${argv.map((part) => JSON.stringify(part)).join(" ")}\n`);
    const limitMs = timeoutOf(assignment, agent.settings);
    const end = await runProgram(assignment, { argv, stdoutLog: log, stderrLog: log, limitMs });
    const which = programs.length === 1 ? "setup" : `setup[${index}]`;
    if (end.outcome === undefined && end.exitCode === 0) continue;
    // Report only the name of the program: its arguments may be secrets.
    const named = `${which}: ${JSON.stringify(argv[0])}`;
    if (end.outcome === undefined)
      return failed("setup", "ErrSetup", `${named} ended with exit code ${end.exitCode}`, {
        exitCode: end.exitCode,
        lastWords: lastWords(log),
      });
    const { outcome } = end;
    if (outcome.kind !== "failed") return outcome;
    const { signal, canRetry, failure } = outcome;
    // It was stopped from outside, or took too long.
    if (failure === "cancelled" || failure === "timeout") return outcome;
    const facts = { signal, canRetry, lastWords: lastWords(log) };
    return failed("setup", "ErrSetup", `${named}: ${outcome.message}`, facts);
  }
  return undefined;
}
