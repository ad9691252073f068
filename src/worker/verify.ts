/**
 * Runs the programs that check whether a run that reports success has succeeded. They run like the task itself: in the same
 * place, under the same lease.
 */
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type Assignment, stoppedOutcome } from "../agents/agent.ts";
import { lastWords, type ProgramEnd, runProgram } from "../agents/program.ts";
import { shorten } from "../agents/run-folder.ts";
import { type AttemptOutcome, failed } from "../core/outcome.ts";
import { RUN_DIR_DEPTH } from "../core/state-tree.ts";
import type { Task } from "../core/task.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { appendRegularText, dropLink, statOf } from "../host/regular-file.ts";
import { checkExpectedFiles } from "./expected-files.ts";

/** The pause before a program that could not be started is tried again (ms). It starts at `first` and is doubled up to `max`. */
const AGAIN_MS = { first: 100, max: 5000 } as const;

function isHindered({ outcome }: ProgramEnd): boolean {
  return outcome?.kind === "deferred" && outcome.isHindered === true;
}

/** Whether the task has checks for a run that reports success. */
export function isVerified({ verify, expect_files: files }: Task): boolean {
  return verify !== undefined || files !== undefined;
}

/**
 * Checks the task's `expect_files`, then runs its `verify` programs one after the other, with their output in `verify.log`.
 * @param limitMs the time limit of the whole attempt (ms); 0 = no limit
 * @param nowMs time on the clock of `startedMs`
 * @returns why the attempt failed, or undefined when all files are there and all programs exited with 0
 */
export async function runVerify(
  assignment: Assignment,
  limitMs: number,
  startedMs: number,
  nowMs: () => number,
): Promise<AttemptOutcome | undefined> {
  const missing = checkExpectedFiles(assignment);
  if (missing !== undefined) return missing;
  const log = join(assignment.runDir, "verify.log");
  const programs = assignment.task.verify ?? [];
  for (const [index, argv] of programs.entries()) {
    // Report its number and its name only: its arguments may be secrets, and this text gets into records and journals.
    const which = programs.length === 1 ? "verify" : `verify[${index}]`;
    const named = `${which}: ${JSON.stringify(argv[0])}`;
    makeDirs(assignment.runDir, RUN_DIR_DEPTH);
    // The task's own program may have put a link there.
    dropLink(log);
    appendRegularText(log, `$ ${argv.map((part) => JSON.stringify(part)).join(" ")}\n`);
    const from = statOf(log)?.size ?? 0;
    const run = async (): Promise<ProgramEnd> => {
      const timed: Assignment = { ...assignment, timeLeftMs: limitMs - (nowMs() - startedMs) };
      const ended = await runProgram(timed, { argv, stdoutLog: log, stderrLog: log, limitMs });
      // What it printed is kept, without these.
      if (timed.secrets !== undefined) assignment.secrets = timed.secrets;
      return ended;
    };
    let end = await run();
    // The machine refuses for now. The run waits, because its finished work would be lost otherwise.
    for (let pauseMs: number = AGAIN_MS.first; isHindered(end); pauseMs *= 2) {
      if (end.outcome !== undefined && end.isRoomShort === true) shorten(log, from);
      await wait(Math.min(pauseMs, AGAIN_MS.max));
      const { reason = limitMs > 0 && nowMs() - startedMs > limitMs ? "timeout" : undefined } =
        assignment.stop;
      if (reason !== undefined) return stoppedOutcome(reason, limitMs);
      end = await run();
    }
    if (end.outcome === undefined) {
      if (end.exitCode === 0) continue;
      return failed("verify", "ErrVerify", `${named} ended with exit code ${end.exitCode}`, {
        exitCode: end.exitCode,
        lastWords: lastWords(log, from),
      });
    }
    const { outcome } = end;
    // A deferred run would repeat its finished work, which has a cost. So this counts as a failure.
    if (outcome.kind === "deferred")
      return failed("verify", "ErrVerify", `${which}: ${outcome.message}`);
    // The run was stopped from outside, which says nothing about its work.
    if (outcome.kind !== "failed") return outcome;
    switch (outcome.failure) {
      case "signal":
      case "spawn":
      case "output": {
        const what = outcome.failure === "spawn" ? which : named;
        return failed("verify", "ErrVerify", `${what}: ${outcome.message}`, {
          lastWords: lastWords(log, from),
          signal: outcome.signal,
          canRetry: outcome.canRetry,
        });
      }
      default:
        return outcome;
    }
  }
  return undefined;
}
