/** The programs that decide whether a run that says "done" is done. They run like the task itself: same place, same lease. */
import fs from "node:fs";
import { join } from "node:path";
import type { Assignment } from "../agents/agent.ts";
import { lastWords, runProgram } from "../agents/program.ts";
import { type AttemptOutcome, failed } from "../core/outcome.ts";
import { RUN_DIR_DEPTH } from "../core/state-tree.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { appendRegularText } from "../host/regular-file.ts";

/**
 * Runs the task's `verify` programs one after the other, into `verify.log`.
 * @param limitMs the time limit of the whole attempt (ms); 0 = none
 * @param nowMs time on the clock that `startedMs` is on
 * @returns why the attempt did not end well, or undefined when all of them exited with 0
 */
export async function runVerify(
  assignment: Assignment,
  limitMs: number,
  startedMs: number,
  nowMs: () => number,
): Promise<AttemptOutcome | undefined> {
  const log = join(assignment.runDir, "verify.log");
  for (const argv of assignment.task.verify ?? []) {
    const shown = JSON.stringify(argv.join(" "));
    makeDirs(assignment.runDir, RUN_DIR_DEPTH);
    appendRegularText(log, `$ ${argv.map((part) => JSON.stringify(part)).join(" ")}\n`);
    const from = fs.statSync(log).size;
    const end = await runProgram(
      { ...assignment, timeLeftMs: limitMs - (nowMs() - startedMs) },
      { argv, stdoutLog: log, stderrLog: log, limitMs },
    );
    if (end.outcome === undefined) {
      if (end.exitCode === 0) continue;
      return failed(
        "verify",
        "ErrVerify",
        `verify: ${shown} ended with exit code ${end.exitCode}`,
        {
          exitCode: end.exitCode,
          lastWords: lastWords(log, from),
        },
      );
    }
    const { outcome } = end;
    // Its work is done, and would be done again: that is not for nothing.
    if (outcome.kind === "deferred")
      return failed("verify", "ErrVerify", `verify: ${shown}: ${outcome.message}`);
    // Stopped from outside: that says nothing about the work.
    if (outcome.kind !== "failed") return outcome;
    switch (outcome.failure) {
      case "signal":
      case "spawn":
      case "output":
        return failed("verify", "ErrVerify", `verify: ${shown}: ${outcome.message}`, {
          lastWords: lastWords(log, from),
          signal: outcome.signal,
          canRetry: outcome.canRetry,
        });
      default:
        return outcome;
    }
  }
  return undefined;
}
