/** One program of an attempt: argv without a shell, output straight into files, the whole process tree ended when it must stop. */

import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { messageOf, systemCode } from "../core/errors.ts";
import { CLAIM_NAME } from "../core/names.ts";
import { type AttemptOutcome, failed, hindered } from "../core/outcome.ts";
import { RUN_DIR_DEPTH } from "../core/state-tree.ts";
import { makeDirs } from "../host/make-dirs.ts";
import {
  endGroup,
  endTree,
  isGroupAlive,
  LEASE_VARIABLE,
  STATE_VARIABLE,
  TASK_FILE_VARIABLE,
} from "../host/process-tree.ts";
import { openToAppend, writeRegularText } from "../host/regular-file.ts";
import { type Assignment, type StopReason, stoppedOutcome, timeLeftMs } from "./agent.ts";
import { readTail } from "./report.ts";

/** Variables that programs need to work at all; everything else of ours stays with us. */
const ENV_ALLOWED =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|TZ|TMPDIR|TERM|LANG|LANGUAGE|LC_[A-Z]+|XDG_[A-Z_]+|SystemRoot|COMSPEC|PATHEXT|TEMP|TMP)$/;
const OUTPUT_LOOK_MS = 1000;
/** Failures to start that will not go away by trying again. */
const SPAWN_FINAL: ReadonlySet<string> = new Set([
  "ENOENT",
  "EACCES",
  "ENOTDIR",
  "ELOOP",
  "ENOEXEC",
  "EINVAL",
  "E2BIG",
  "ERR_INVALID_ARG_VALUE",
]);
/** The machine has no room, descriptors, processes or memory left: no program can be started then. */
const MACHINE_FAULTS: ReadonlySet<string> = new Set([
  "ENOSPC",
  "EDQUOT",
  "EROFS",
  "EIO",
  "EMFILE",
  "ENFILE",
  "EAGAIN",
  "ENOMEM",
]);
const LAST_WORDS_BYTES_MAX = 400;

export interface ProgramSpec {
  argv: readonly string[];
  /** Output is appended. Both may be one file. */
  stdoutLog: string;
  stderrLog: string;
  /** Time limit of the whole attempt (ms); 0 = none. */
  limitMs: number;
  /** Variables beside those of `programEnvironment`. Called when the run's directory is there. */
  moreEnvironment?: () => Record<string, string>;
}

/** It ended by itself with this exit code; or what came of it otherwise: not started, stopped, ended by a signal. */
export type ProgramEnd = { exitCode: number; outcome?: undefined } | { outcome: AttemptOutcome };

/** Runs a program in the attempt's directory and under its lease. Never rejects for what the program did. */
export async function runProgram(assignment: Assignment, spec: ProgramSpec): Promise<ProgramEnd> {
  const { task, runDir } = assignment;
  const { argv, stdoutLog, stderrLog, limitMs } = spec;
  let child: ChildProcess;
  const logs: number[] = [];
  try {
    const cwd = resolveCwd(task.metadata?.worktree ?? task.cwd, assignment);
    const hindrance = makeRunDir(runDir);
    if (hindrance !== undefined) return { outcome: hindrance };
    // An earlier program of this run may have put anything there.
    writeRegularText(taskFileOf(assignment), assignment.taskText);
    writeRegularText(join(runDir, CLAIM_NAME), assignment.claimFile);
    logs.push(openToAppend(stdoutLog), openToAppend(stderrLog));
    child = spawn(argv[0] ?? "", argv.slice(1), {
      cwd,
      env: { ...programEnvironment(assignment), ...spec.moreEnvironment?.() },
      // A group and session of its own: signals meant for us do not reach it, and the group can be ended as one.
      detached: true,
      stdio: ["ignore", logs[0] as number, logs[1] as number],
      windowsHide: true,
    });
  } catch (error) {
    return { outcome: spawnFailure(argv[0] ?? "", error) };
  } finally {
    for (const fd of logs) fs.closeSync(fd);
  }

  const ended = new Promise<{ exitCode: number | null; signal: string | null; error?: unknown }>(
    (resolve) => {
      child.once("error", (error) => resolve({ exitCode: null, signal: null, error }));
      child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    },
  );
  const stop = new Stopper(assignment, child, limitMs, [stdoutLog, stderrLog]);
  const { exitCode, signal, error } = await ended;
  await stop.finish(signal !== null);

  if (error !== undefined) return { outcome: spawnFailure(argv[0] ?? "", error) };
  if (stop.reason === "output") {
    const message = `it wrote more than ${assignment.settings.output_bytes_max} bytes`;
    const facts = { exitCode, signal, canRetry: false };
    return { outcome: failed("output", "ErrOutputLimit", message, facts) };
  }
  if (stop.reason !== undefined) return { outcome: stoppedOutcome(stop.reason, limitMs) };
  if (signal !== null) {
    const facts = { exitCode, signal, lastWords: lastWords(stderrLog) };
    return { outcome: failed("signal", "ErrSignal", `it was ended by ${signal}`, facts) };
  }
  return { exitCode: exitCode ?? 0 };
}

/** @returns what came of the attempt when there can be no directory for it: that is not the fault of its task */
export function makeRunDir(runDir: string): AttemptOutcome | undefined {
  try {
    makeDirs(runDir, RUN_DIR_DEPTH);
    return undefined;
  } catch (error) {
    return hindered(`cannot make directories in ${dirname(runDir)} (${systemCode(error)})`);
  }
}

/** The end of what it wrote to a log: most programs say there why they stop. @param from bytes before it are not its own */
export function lastWords(log: string, from = 0): string {
  return readTail(log, LAST_WORDS_BYTES_MAX, from).trim();
}

/** Programs read a copy of their task: they may do with it as they like. */
function taskFileOf(assignment: Assignment): string {
  return join(assignment.runDir, "task.json");
}

function programEnvironment(assignment: Assignment): NodeJS.ProcessEnv {
  const { task, settings } = assignment;
  const env: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (ENV_ALLOWED.test(name) || settings.env_allow.includes(name)) env[name] = value;
  }
  Object.assign(env, task.env);
  env["MAILCHUTE_TASK_ID"] = task.id;
  env[TASK_FILE_VARIABLE] = taskFileOf(assignment);
  env["MAILCHUTE_ATTEMPT"] = String(assignment.attempt);
  env[LEASE_VARIABLE] = assignment.lease;
  env["MAILCHUTE_RESULT_FILE"] = join(assignment.runDir, "result.json");
  env[STATE_VARIABLE] = assignment.stateDir;
  if (assignment.node !== undefined) {
    env["MAILCHUTE_PHASE"] = assignment.node.phase;
    env["MAILCHUTE_PACKET"] = assignment.node.packetFile;
  }
  return env;
}

/** 0 for what cannot be looked at: the program may have put anything there. */
function sizeOf(log: string): number {
  try {
    return fs.statSync(log).size;
  } catch {
    return 0;
  }
}

/** Watches a running program: its time, its output, and the wish of others that it stop. */
class Stopper {
  reason: StopReason | "output" | undefined;
  private readonly assignment: Assignment;
  private readonly child: ChildProcess;
  private readonly timer: NodeJS.Timeout | undefined;
  private readonly look: NodeJS.Timeout;
  private ending: Promise<unknown> | undefined;

  constructor(
    assignment: Assignment,
    child: ChildProcess,
    limitMs: number,
    logs: readonly string[],
  ) {
    this.assignment = assignment;
    this.child = child;
    const leftMs = timeLeftMs(assignment, limitMs);
    if (leftMs > 0) this.timer = setTimeout(() => this.stop("timeout"), leftMs);
    this.look = setInterval(() => {
      const max = assignment.settings.output_bytes_max;
      if (logs.some((log) => sizeOf(log) > max)) this.stop("output");
    }, OUTPUT_LOOK_MS);
    assignment.stop.onStop((reason) => this.stop(reason));
  }

  private stop(reason: StopReason | "output"): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    if (this.child.pid !== undefined) {
      this.ending = endTree(
        this.assignment.lease,
        this.assignment.settings.grace_ms,
        this.child.pid,
      );
    }
  }

  /**
   * After the exit: what is left in its group is ended. What left the group of a run that ended by itself did so on
   * purpose, and is let be; with one that a signal ended, nobody can say what was on purpose, and all of it goes.
   */
  async finish(isKilled: boolean): Promise<void> {
    clearTimeout(this.timer);
    clearInterval(this.look);
    this.assignment.stop.onStop(undefined);
    await this.ending;
    const pid = this.child.pid;
    if (this.ending !== undefined || pid === undefined) return;
    if (isKilled) await endTree(this.assignment.lease, 0, pid);
    else if (isGroupAlive(pid)) await endGroup(pid);
  }
}

/** Where a program runs: seen from the directory that holds the state tree, without links, under an allowed root. */
function resolveCwd(wanted: string | undefined, { settings, stateDir }: Assignment): string {
  const cwd = fs.realpathSync(resolve(stateDir, "..", wanted ?? "."));
  const isAllowed = settings.roots.some((root) => {
    const real = fs.realpathSync(root);
    return cwd === real || cwd.startsWith(real.endsWith(sep) ? real : real + sep);
  });
  if (!isAllowed) {
    throw Object.assign(
      new Error(`the directory ${cwd} is not under an allowed root (${settings.roots.join(", ")})`),
      { code: "EACCES" },
    );
  }
  return cwd;
}

function spawnFailure(program: string, error: unknown): AttemptOutcome {
  const code = systemCode(error);
  if (MACHINE_FAULTS.has(code)) return hindered(`no program can be started (${code})`);
  const message = `cannot start ${JSON.stringify(program)}: ${messageOf(error)}`;
  return failed("spawn", "ErrSpawn", message, { canRetry: !SPAWN_FINAL.has(code) });
}
