/**
 * Runs one program of an attempt. No shell reads its arguments. Its output goes straight into files. When it must stop, its whole
 * process tree ends.
 */

import type { ChildProcess } from "node:child_process";
import fs from "node:fs";
import { dirname, join, sep } from "node:path";
import type { Writable } from "node:stream";
import { messageOf, systemCode } from "../core/errors.ts";
import { CLAIM_NAME } from "../core/names.ts";
import { type AttemptOutcome, deferred, failed } from "../core/outcome.ts";
import { codeOfLimit, type LimitFault } from "../core/run-limits.ts";
import type { Settings } from "../core/settings.ts";
import { RUN_DIR_DEPTH } from "../core/state-tree.ts";
import { explainInterpreter } from "../host/interpreter.ts";
import { makeDirs } from "../host/make-dirs.ts";
import {
  DROP_VARIABLE,
  endGroup,
  endTree,
  isGroupAlive,
  LEASE_VARIABLE,
  STATE_VARIABLE,
  stopGroup,
  TASK_FILE_VARIABLE,
} from "../host/process-tree.ts";
import { processes } from "../host/processes/processes.ts";
import { openToAppend, tryStatOf, writeRegularText } from "../host/regular-file.ts";
import { spawn } from "../host/spawn.ts";
import {
  type Assignment,
  type StopReason,
  stoppedOutcome,
  timeLeftMs,
  workDirOf,
} from "./agent.ts";
import { OUTPUT_FILES_MAX, type OutputFault, OutputWatch, UsageWatch } from "./program-watch.ts";
import { readTail } from "./report.ts";
import type { LimitedProgram, ProgramStart } from "./run-limiter.ts";
import { readSecrets } from "./secrets.ts";
import type { WalledProgram } from "./walls.ts";

/** Variables that every program needs. It gets no other variable of ours. */
const ENV_ALLOWED =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|TZ|TMPDIR|TERM|LANG|LANGUAGE|LC_[A-Z]+|XDG_[A-Z_]+|SystemRoot|COMSPEC|PATHEXT|TEMP|TMP)$/;
/** Errors of a start that another try cannot mend. */
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
  /** Variables besides those that all programs get. Called when the run's directory exists. */
  moreEnvironment?: () => Record<string, string>;
  /** True for variables that the program must not get, such as those of other agents' sessions. */
  withoutEnvironment?: (name: string) => boolean;
  /** Changes the variables before it starts. */
  changeEnvironment?: ((env: NodeJS.ProcessEnv) => void) | undefined;
  /** True: when it has ended, all processes that it started are ended, even those that left its process group. */
  endsTree?: boolean;
  /** Asks the program to stop through its own protocol, before it gets a signal. Resolves soon, and never rejects. */
  beforeStop?: () => Promise<void>;
  /** Called once it has been started. */
  onStarted?: () => void;
  /** Called at its exit, before the processes that it has left are ended. */
  onExit?: () => void;
  /** Like `onStarted`, with its standard input. Without this function it has no standard input. */
  onStdin?: (stdin: Writable) => void;
}

/**
 * The exit code of a program that ended by itself; or the outcome of one that did not start, was stopped, or was ended by a signal.
 */
export type ProgramEnd =
  | { exitCode: number; outcome?: undefined }
  /**
   * `isRoomShort`: it wrote while the disk was nearly full, and its files must be removed. `wasShort`: the disk was nearly full, and what it
   * wrote may be missing.
   */
  | { outcome: AttemptOutcome; isRoomShort?: true; wasShort?: true };

const NO_SECRETS = { variables: {} };

/** Runs a program in the attempt's directory and under its lease. Never rejects for what the program did. */
export async function runProgram(assignment: Assignment, spec: ProgramSpec): Promise<ProgramEnd> {
  const { runDir } = assignment;
  const { argv, stdoutLog, stderrLog, limitMs } = spec;
  const { task, settings } = assignment;
  const secrets = task.env_from === undefined ? NO_SECRETS : readSecrets(task, settings);
  if ("outcome" in secrets) return secrets;
  assignment.secrets = Object.values(secrets.variables);
  let child: ChildProcess;
  let begun: Begun | undefined;
  let forget = (): void => {};
  const logs: number[] = [];
  try {
    const cwd = resolveCwd(assignment);
    const hindrance = makeRunDir(runDir);
    if (hindrance !== undefined) return { outcome: hindrance };
    // An earlier program of this run may have put anything there.
    writeRegularText(taskFileOf(assignment), assignment.taskText);
    writeRegularText(join(runDir, CLAIM_NAME), assignment.claimFile);
    logs.push(openToAppend(stdoutLog), openToAppend(stderrLog));
    const env = environmentOf(assignment, spec, secrets.variables);
    const { limiter, walls } = assignment;
    if (limiter !== undefined || walls !== undefined) {
      const entered = await enter(assignment, { argv, env, cwd });
      if ("kind" in entered) return { outcome: entered };
      begun = entered;
    }
    const [program = "", ...args] = begun?.argv ?? argv;
    const sinceMs = Date.now();
    child = spawn(program, args, {
      cwd,
      env: begun?.env ?? env,
      // The program gets its own group and session. Signals meant for us do not reach it, and we can end the group as a whole.
      detached: true,
      stdio: [spec.onStdin === undefined ? "ignore" : "pipe", logs[0] as number, logs[1] as number],
      windowsHide: true,
    });
    if (child.pid !== undefined) forget = processes().noteProgram(child.pid, env, sinceMs);
  } catch (error) {
    await begun?.walled?.leave();
    return { outcome: spawnFailure(argv, error, assignment) };
  } finally {
    for (const fd of logs) fs.closeSync(fd);
  }

  const ended = new Promise<{ exitCode: number | null; signal: string | null; error?: unknown }>(
    (resolve) => {
      child.once("error", (error) => resolve({ exitCode: null, signal: null, error }));
      child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    },
  );
  const stop = new Stopper(assignment, child, limitMs, spec.beforeStop);
  if (child.pid !== undefined) begun?.limited?.watch(child.pid, (fault) => stop.atLimit(fault));
  spec.onStarted?.();
  if (child.stdin !== null) {
    // A program that has ended reads nothing more. Its exit code decides the outcome.
    child.stdin.on("error", () => {});
    spec.onStdin?.(child.stdin);
  }
  const { exitCode, signal, error } = await ended;
  spec.onExit?.();
  await stop.finish(signal !== null || spec.endsTree === true);
  forget();
  const fault = begun?.limited?.close({ exitCode, signal }) ?? stop.limitFault;
  const lost = await begun?.walled?.leave();

  if (error !== undefined) return { outcome: spawnFailure(argv, error, assignment) };
  if (stop.reason === "room") return { outcome: writtenTooLong(), isRoomShort: true };
  if (stop.reason === "output" || (stop.reason === undefined && stop.output.fault === "output")) {
    await stop.output.cut([stdoutLog, stderrLog]);
    const message = `it wrote more than ${outputBytesMax(assignment)} bytes or ${OUTPUT_FILES_MAX} files into its logs and its folder`;
    const facts = { exitCode, signal, canRetry: false };
    return { outcome: failed("output", "ErrOutputLimit", message, facts) };
  }
  if (fault !== undefined && (stop.reason === undefined || stop.reason === "limit")) {
    const facts = { exitCode, signal, canRetry: false };
    return { outcome: failed(fault.kind, codeOfLimit(fault.kind), fault.message, facts) };
  }
  if (stop.reason !== undefined && stop.reason !== "limit")
    return {
      outcome: stoppedOutcome(stop.reason, limitMs),
      ...(stop.output.wasShort ? { wasShort: true } : {}),
    };
  if (signal !== null) {
    const facts = { exitCode, signal, lastWords: lastWords(stderrLog) };
    return { outcome: failed("signal", "ErrSignal", `it was ended by ${signal}`, facts) };
  }
  return lost === undefined ? { exitCode: exitCode ?? 0 } : { outcome: lost };
}

/**
 * @param depth how many directories may be missing, with itself
 * @returns the outcome of the attempt when its directory cannot be made: that is not the fault of its task
 */
export function makeRunDir(runDir: string, depth = RUN_DIR_DEPTH): AttemptOutcome | undefined {
  try {
    makeDirs(runDir, depth);
    return undefined;
  } catch (error) {
    const code = systemCode(error);
    const todo = MACHINE_FAULTS.has(code)
      ? ""
      : ": it must be a directory that mailchute may write";
    return deferred(`cannot make directories in ${dirname(runDir)} (${code})${todo}`);
  }
}

/** The outcome of a run that wrote while the disk was nearly full. It runs again when there is room, so its files are not needed. */
export function writtenTooLong(): AttemptOutcome {
  return deferred("the disk is nearly full, and it kept writing: its output was removed");
}

/**
 * The end of a log, where most programs say why they stop. It returns whole lines, or the end of a long line.
 * @param from where its own part of the log begins (bytes)
 */
export function lastWords(log: string, from = 0): string {
  const words = readTail(log, LAST_WORDS_BYTES_MAX, from).trim();
  if (sizeOf(log) - from <= LAST_WORDS_BYTES_MAX) return words;
  const lineEnd = words.indexOf("\n");
  return lineEnd === -1 ? `…${words}` : words.slice(lineEnd + 1).trimStart();
}

function outputBytesMax({ limiter, settings }: Assignment): number {
  return limiter?.limits.output_bytes ?? settings.output_bytes_max;
}

/** A program with limits or walls, or both, that is about to start. */
interface Begun {
  argv: readonly string[];
  env: NodeJS.ProcessEnv;
  walled?: WalledProgram;
  limited?: LimitedProgram | undefined;
}

/** @returns the outcome of a run that must not begin. Never rejects */
async function enter(
  assignment: Assignment,
  start: Omit<ProgramStart, "lease">,
): Promise<Begun | AttemptOutcome> {
  const { limiter, walls, lease } = assignment;
  const walled = await walls?.enter(start, assignment);
  if (walled !== undefined && "kind" in walled) return walled;
  const { argv, env } = walled ?? start;
  const limited = await limiter?.begin({ argv, env, cwd: start.cwd, lease });
  return { argv: limited?.argv ?? argv, env, limited, ...(walled === undefined ? {} : { walled }) };
}

/** The size of the files in a run's folder that we have written. */
function ownBytesOf({ taskText, claimFile, packetBytes = 0 }: Assignment): number {
  return Buffer.byteLength(taskText) + Buffer.byteLength(claimFile) + packetBytes;
}

/** Programs read a copy of their task, which they may change. */
function taskFileOf(assignment: Assignment): string {
  return join(assignment.runDir, "task.json");
}

function environmentOf(
  assignment: Assignment,
  spec: ProgramSpec,
  secrets: Readonly<Record<string, string>>,
): NodeJS.ProcessEnv {
  const { task, settings, workspace } = assignment;
  const env = inheritedVariables(process.env, settings);
  const trace = task.traceparent === undefined ? {} : { TRACEPARENT: task.traceparent };
  Object.assign(env, workspace?.env, trace, task.env, secrets);
  env["MAILCHUTE_TASK_ID"] = task.id;
  env[TASK_FILE_VARIABLE] = taskFileOf(assignment);
  env["MAILCHUTE_ATTEMPT"] = String(assignment.attempt);
  env[LEASE_VARIABLE] = assignment.lease;
  env["MAILCHUTE_RESULT_FILE"] = join(assignment.runDir, "result.json");
  env["MAILCHUTE_PROGRESS_FILE"] = join(assignment.runDir, "progress");
  env[STATE_VARIABLE] = assignment.stateDir;
  if (assignment.lastCheck !== undefined) env["MAILCHUTE_LAST_CHECK"] = assignment.lastCheck;
  if (assignment.dropDir !== undefined) env[DROP_VARIABLE] = assignment.dropDir;
  if (assignment.node !== undefined) {
    env["MAILCHUTE_PHASE"] = assignment.node.phase;
    env["MAILCHUTE_PACKET"] = assignment.node.packetFile;
  }
  Object.assign(env, spec.moreEnvironment?.());
  for (const name of Object.keys(env))
    if (spec.withoutEnvironment?.(name) === true) delete env[name];
  spec.changeEnvironment?.(env);
  return env;
}

/** The variables of our own environment that a program gets. */
export function inheritedVariables(
  ours: NodeJS.ProcessEnv,
  { env_allow: allowed }: Pick<Settings, "env_allow">,
): NodeJS.ProcessEnv {
  const names = Object.keys(ours).filter(
    (name) => ENV_ALLOWED.test(name) || allowed.includes(name),
  );
  return Object.fromEntries(names.map((name) => [name, ours[name]]));
}

/** The size of a log; 0 when it cannot be read, because the program may have put anything there. */
function sizeOf(log: string): number {
  return tryStatOf(log)?.size ?? 0;
}

/** Watches the time, the output and the usage of a running program, and stops it when it is asked to. */
class Stopper {
  reason: StopReason | OutputFault | "limit" | undefined;
  limitFault: LimitFault | undefined;
  readonly output: OutputWatch;
  private readonly timer: NodeJS.Timeout | undefined;
  private readonly usage: UsageWatch | undefined;
  private ending: Promise<unknown> | undefined;
  private hasEnded = false;

  constructor(
    private readonly assignment: Assignment,
    private readonly child: ChildProcess,
    limitMs: number,
    private readonly beforeStop: ProgramSpec["beforeStop"],
  ) {
    const leftMs = timeLeftMs(assignment, limitMs);
    if (leftMs > 0) this.timer = setTimeout(() => this.stop("timeout"), leftMs);
    if (child.pid !== undefined) this.usage = new UsageWatch(child.pid, assignment.usage);
    this.output = new OutputWatch({
      dir: assignment.runDir,
      ownBytes: ownBytesOf(assignment),
      bytesMax: outputBytesMax(assignment),
      freeBytesMin: assignment.settings.free_bytes_min,
      onFault: (fault) => this.stop(fault),
    });
    assignment.stop.onStop((reason) => this.stop(reason));
  }

  /** Ends the program at once, because it is over a limit. */
  atLimit(fault: LimitFault): void {
    if (this.reason !== undefined || this.hasEnded) return;
    this.limitFault = fault;
    this.stop("limit");
  }

  private stop(reason: StopReason | OutputFault | "limit"): void {
    if (this.reason !== undefined || this.hasEnded) return;
    this.reason = reason;
    const { pid } = this.child;
    if (pid === undefined) return;
    const { lease, settings } = this.assignment;
    const isTakingMore = reason === "output" || reason === "room" || reason === "limit";
    // Otherwise the program would keep taking more while it is asked to end.
    if (isTakingMore) stopGroup(pid);
    this.usage?.look();
    const end = () => endTree(lease, isTakingMore ? 0 : settings.grace_ms, pid);
    // A run that lost its lease must not go on at all.
    const isAsked = !isTakingMore && reason !== "fenced" && this.beforeStop !== undefined;
    this.ending = isAsked ? this.beforeStop?.().then(end) : end();
  }

  /**
   * Called after the exit: ends the processes that are left in its group. If the program ended by itself, a process that left the group did
   * so on purpose, and goes on. If a signal ended the program, the purpose is not known, so all of its processes are ended.
   * @param endsAll ends all of them in any case
   */
  async finish(endsAll: boolean): Promise<void> {
    this.hasEnded = true;
    clearTimeout(this.timer);
    this.usage?.close();
    this.assignment.stop.onStop(undefined);
    await this.ending;
    const { pid } = this.child;
    if (this.ending === undefined && pid !== undefined) {
      if (endsAll) await endTree(this.assignment.lease, 0, pid);
      else if (isGroupAlive(pid)) await endGroup(pid);
    }
    await this.output.close();
  }
}

/** Where a program runs: a path without links, under an allowed root. For a worktree, the path of its repository was checked before. */
export function resolveCwd(assignment: Assignment): string {
  const cwd = fs.realpathSync(workDirOf(assignment));
  if (tryStatOf(cwd)?.isDirectory() === false)
    throw Object.assign(new Error(`cwd ${cwd} is a file, and not a directory (ENOTDIR)`), {
      code: "ENOTDIR",
    });
  if (assignment.workspace !== undefined) return cwd;
  const { settings } = assignment;
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

/** Names only the program: its arguments may be secrets, and records and journals hold this message. */
function spawnFailure(
  argv: readonly string[],
  error: unknown,
  assignment: Assignment,
): AttemptOutcome {
  const code = systemCode(error);
  if (MACHINE_FAULTS.has(code)) return deferred(`no program can be started (${code})`);
  const [program = ""] = argv;
  // A common mistake is a whole command line in one word. It names no program. Only its first word is surely no secret.
  const [first = ""] = /^\s*\S*/.exec(program) ?? [];
  const isLine = code === "ENOENT" && first !== program;
  const shown = JSON.stringify(isLine ? `${first} …` : program);
  const why = code === "ENOENT" ? interpreterFault(program, error, assignment) : undefined;
  const hint =
    why !== undefined
      ? `; ${why}`
      : isLine && argv.length === 1
        ? `; no shell reads it: write the program and each argument by itself, or ["sh", "-c", ${shown}]`
        : "";
  const message = `cannot start ${shown}: ${reasonOf(error)}${hint}`;
  return failed("spawn", "ErrSpawn", message, { canRetry: !SPAWN_FINAL.has(code) });
}

/** Undefined when nothing else than the program itself is missing. */
function interpreterFault(
  program: string,
  error: unknown,
  assignment: Assignment,
): string | undefined {
  if ((error as { syscall?: string }).syscall?.startsWith("spawn") !== true) return undefined;
  const path = assignment.task.env?.["PATH"] ?? process.env["PATH"];
  return explainInterpreter(program, path, workDirOf(assignment));
}

/** Node's own message about a program quotes it, or the argument at fault. */
function reasonOf(error: unknown): string {
  const { syscall = "" } = error as { syscall?: string };
  const code = systemCode(error);
  return syscall.startsWith("spawn") || code === "ERR_INVALID_ARG_VALUE" ? code : messageOf(error);
}
