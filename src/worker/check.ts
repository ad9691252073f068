/**
 * Step "check" of an attempt: whether a run that reports success has succeeded. Each file of `expect_files` must be there, and not be
 * older than the task's first run; then the programs of `verify` run, in the same place and under the same lease as the task. How a
 * check failed is kept, so that the next run of the task does not work blind: `sessions/<id>@<submission>.check.txt`. Its program finds
 * it in MAILCHUTE_LAST_CHECK, an agent also in its packet.
 */
import fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type Assignment, stoppedOutcome, timeoutOf, workDirOf } from "../agents/agent.ts";
import { headOfQuestion } from "../agents/last-check-text.ts";
import { lastWords, makeRunDir, type ProgramEnd, runProgram } from "../agents/program.ts";
import { shorten } from "../agents/run-folder.ts";
import { hideSecrets } from "../agents/secrets.ts";
import type { Clock } from "../core/clock.ts";
import {
  type AttemptOutcome,
  type Completed,
  errorText,
  type Failed,
  failed,
  headlineOf,
  retryPolicyOf,
} from "../core/outcome.ts";
import { type AgentSettings, isCoding } from "../core/settings.ts";
import { RUN_DIR_DEPTH, stateTree } from "../core/state-tree.ts";
import type { Task } from "../core/task.ts";
import { listDir } from "../host/list-dir.ts";
import { makeDirs } from "../host/make-dirs.ts";
import {
  appendRegularText,
  dropLink,
  readEnd,
  statOf,
  tryReadText,
  tryStatOf,
  writeAnew,
} from "../host/regular-file.ts";
import { systemClock } from "../host/system-clock.ts";
import { Alerts } from "../journal/alerts.ts";
import type { ProseQuestion } from "./prose-question.ts";
import type { AssignedAgent } from "./runner.ts";

/** The pause before a program that could not be started is tried again (ms). It starts at `first` and is doubled up to `max`. */
const AGAIN_MS = { first: 100, max: 5000 } as const;

function isHindered({ outcome }: ProgramEnd): boolean {
  return outcome?.kind === "deferred" && outcome.isHindered === true;
}

/** Without checks and questions the own outcome of a run that reports success counts. */
export function isToBeChecked(assignment: Assignment, prose: ProseQuestion | undefined): boolean {
  return isVerified(assignment.task) || prose !== undefined || assignment.lastCheck !== undefined;
}

/**
 * What becomes of a run that reports success, and is to be checked.
 * @param prose set for a run that may end with a question in prose
 */
export async function checkRun(
  assigned: AssignedAgent,
  outcome: Completed,
  {
    startedMs,
    clock,
    prose,
  }: { startedMs: number; clock: Clock; prose: ProseQuestion | undefined },
): Promise<AttemptOutcome> {
  const { agent, assignment } = assigned;
  const isChecked = isVerified(assignment.task);
  const idle = isChecked ? judgeIdle(agent.settings, assignment, outcome.output) : undefined;
  if (idle !== undefined) return idle;
  const limitMs = timeoutOf(assignment, agent.settings);
  const fault = isChecked
    ? await runVerify(assignment, limitMs, startedMs, () => clock.monotonicMs())
    : undefined;
  const mayAsk = isChecked ? isRed(fault) : true;
  const asked = mayAsk ? await prose?.after(outcome) : undefined;
  const judged = asked ?? (await judge(assigned, fault));
  const question = judged?.kind === "deferred" ? judged.question : undefined;
  if (keepLastCheck(assignment, fault, question)) agent.keepSession(assignment);
  return judged ?? (isChecked ? agent.reopen(assignment) : undefined) ?? outcome;
}

/** Asks whose fault a red check is. The module is loaded only then. */
async function judge(
  assigned: AssignedAgent,
  fault: AttemptOutcome | undefined,
): Promise<AttemptOutcome | undefined> {
  if (fault === undefined || assigned.base === undefined) return fault;
  const { judgeByBase } = await import("./base-check.ts");
  return judgeByBase(assigned, fault);
}

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

/**
 * Call it before a run. Makes the folder of the run when files are expected: its birth shows which files are older. A function
 * would make no folder.
 * @returns the outcome of the attempt when the folder cannot be made
 */
export function markStart({ task, runDir }: Assignment): AttemptOutcome | undefined {
  return task.expect_files === undefined ? undefined : makeRunDir(runDir);
}

/** @returns why the attempt failed, or undefined when all files are there */
function checkExpectedFiles(assignment: Assignment): Failed | undefined {
  const { task } = assignment;
  const cwd = workDirOf(assignment);
  const faults: string[] = [];
  let startMs: number | undefined;
  for (const name of task.expect_files ?? []) {
    const stats = tryStatOf(resolve(cwd, name));
    startMs ??= firstRunMs(assignment);
    if (stats === undefined) faults.push(`${name} is not there`);
    else if (assignment.isByHand !== true && isOlder(stats, startMs))
      faults.push(`${name} is older than the task's first run`);
  }
  if (faults.length === 0) return undefined;
  return failed("verify", "ErrVerify", `expect_files: ${faults.join("; ")}`);
}

/** A coding agent that says nothing and leaves no file where some are expected was not allowed to work. */
function judgeIdle(
  agent: AgentSettings,
  assignment: Assignment,
  output: unknown,
): Failed | undefined {
  const missing = isCoding(agent) && output === "" ? checkExpectedFiles(assignment) : undefined;
  if (missing === undefined) return undefined;
  const message = `it said nothing, and ${missing.message}; see permissions of the agent in config.yaml`;
  return failed("permission", "ErrPermission", message, { canRetry: false });
}

/** When the first run of this submission made its folder, by the clock of the file system (epoch ms). */
function firstRunMs({ task, lease, runDir }: Assignment): number {
  const day = dirname(runDir);
  const prefix = `${task.id}@${lease.slice(0, lease.indexOf("."))}.`;
  const runs = listDir(day).filter((name) => name.startsWith(prefix));
  // All runs of a line of a batch have the same folder, and it is not named by an id.
  const paths = runs.length === 0 ? [runDir] : runs.map((name) => join(day, name));
  const births = paths.map((path) => statOf(path)?.birthtimeMs);
  return Math.min(...births.filter((ms) => ms !== undefined));
}

/** Some file systems and tools keep whole seconds only. A folder always passes: its contents may be new when the folder is not. */
function isOlder(stats: fs.Stats, startMs: number): boolean {
  if (stats.isDirectory()) return false;
  const writtenMs = Math.max(stats.mtimeMs, stats.birthtimeMs);
  return writtenMs < (writtenMs % 1000 === 0 ? Math.floor(startMs / 1000) * 1000 : startMs);
}

/** How much of the output of the check is kept (bytes). */
const OUTPUT_BYTES_MAX = 8 * 1024;

export function isRed(fault: AttemptOutcome | undefined): fault is Failed {
  return fault?.kind === "failed" && fault.failure === "verify";
}

/** The path of the text. */
export function lastCheckPath(sessionsDir: string, id: string, lease: string): string {
  return join(sessionsDir, `${id}@${lease.slice(0, lease.indexOf("."))}.check.txt`);
}

/**
 * Keeps the text for the next run of the task, and tells a person when the check has failed in the same way before. When all is well, it
 * removes the text. Without room on the disk the next run works without it.
 * @param fault what the check says; another fault is left alone
 * @param question the question that the task waits for
 * @returns whether there is a next run to which it is told
 */
export function keepLastCheck(
  assignment: Assignment,
  fault: AttemptOutcome | undefined,
  question?: string,
): boolean {
  const { stateDir, task, lease, attempt, settings } = assignment;
  const { sessions } = stateTree(stateDir);
  const path = lastCheckPath(sessions, task.id, lease);
  if (!isRed(fault) && question === undefined) {
    if (fault === undefined && assignment.lastCheck !== undefined) fs.rmSync(path, { force: true });
    return false;
  }
  const text = `${headOfQuestion(question)}${isRed(fault) ? textOf(assignment, fault) : ""}`;
  const before = assignment.lastCheck === undefined ? undefined : tryReadText(assignment.lastCheck);
  if (isRed(fault) && before !== undefined && shapeOf(before) === shapeOf(text))
    tellSame(assignment, fault);
  if (question === undefined && attempt >= retryPolicyOf(settings, task).maxAttempts) return false;
  try {
    makeDirs(sessions, 1);
    writeAnew(path, text);
    return true;
  } catch {
    // The disk is full. The next run finds out by itself.
    return false;
  }
}

/** What the check says, without the secrets of the task. */
function textOf({ runDir, secrets = [] }: Assignment, fault: Failed): string {
  const log = readEnd(join(runDir, "verify.log"), OUTPUT_BYTES_MAX);
  // The lines that begin a program show its arguments, which may be secrets.
  const lastWords = log.replace(/^\$ ".*\n/gm, "").trim();
  return hideSecrets(`${fault.message}\n\n${lastWords}\n`, secrets);
}

/** Times, sizes and addresses differ from run to run. */
function shapeOf(text: string): string {
  return text.replace(/0x[0-9a-f]+|\d+/gi, "#");
}

function tellSame({ stateDir, task, secrets = [] }: Assignment, fault: Failed): void {
  const alerts = new Alerts(stateTree(stateDir).alerts, systemClock, () => {});
  alerts.raise(
    "same_check",
    `the check of ${task.id} has failed twice in the same way: ${hideSecrets(headlineOf(errorText(fault)), secrets).slice(0, 300)}; see \`mailchute logs ${task.id} --verify\``,
  );
  alerts.close();
}
