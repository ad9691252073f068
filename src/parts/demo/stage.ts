/** A temporary state tree with a real supervisor. However the demo ends, it leaves no process, and no file without --keep. */
import type { ChildProcess } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type StateTree, stateTree } from "../../core/state-tree.ts";
import { identityOf, judge } from "../../host/identity.ts";
import { listDir } from "../../host/list-dir.ts";
import { pathInPackage } from "../../host/package.ts";
import { processes } from "../../host/processes/processes.ts";
import { openToAppend } from "../../host/regular-file.ts";
import { spawn } from "../../host/spawn.ts";
import { readJsonObject } from "../../view/scan.ts";

const LAUNCHER = pathInPackage("bin/mailchute.js");
/** The signals of Ctrl-C, of `kill`, and of a terminal that is closed. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const LOOK_MS = 10;
/** The supervisor is killed if it has not stopped after this time (ms). */
const STOP_MS = 4000;
/** A process should have ended this long after SIGKILL (ms). */
const KILL_MS = 1000;

/** The demo waited for something that did not happen. */
export class ErrDemo extends Error {}

/** One of `SIGNALS` arrived. */
export class Interrupted extends Error {}

export class Stage {
  /** Holds the state tree, and is the working directory of every program. */
  readonly dir: string;
  readonly tree: StateTree;
  readonly logFile: string;
  private readonly startedMs = performance.now();
  private supervisor: ChildProcess | undefined;
  private interruptions = 0;
  private readonly onSignal = (): void => {
    this.interruptions += 1;
    // A second Ctrl-C does not wait for an orderly end.
    if (this.interruptions > 1) process.exit(130);
  };
  private readonly onExit = (): void => {
    this.killRest();
    this.remove();
  };

  /** @param limitMs the demo must be over by then; @param restMs time for a person to read between two acts */
  constructor(
    private readonly limitMs: number,
    private readonly restMs: number,
  ) {
    this.dir = fs.realpathSync(fs.mkdtempSync(join(os.tmpdir(), "mailchute-demo-")));
    this.tree = stateTree(join(this.dir, "state"));
    this.logFile = join(this.dir, "supervisor.log");
    for (const signal of SIGNALS) process.on(signal, this.onSignal);
    // Cleans up when this process ends before `close` is called.
    process.on("exit", this.onExit);
  }

  get elapsedMs(): number {
    return performance.now() - this.startedMs;
  }

  /** Starts `mailchute run` as a process of its own. @returns its pid */
  start(args: readonly string[]): number {
    const log = openToAppend(this.logFile);
    const command = [LAUNCHER, "run", "--state", this.tree.dir, ...args];
    this.supervisor = spawn(process.execPath, command, {
      cwd: this.dir,
      // The mail and the other state of a user stay in the demo's directory.
      env: { ...withoutOurs(process.env), XDG_STATE_HOME: this.dir, XDG_DATA_HOME: this.dir },
      // The supervisor gets its own process group, so that Ctrl-C does not reach it: the demo stops it in an orderly way.
      detached: true,
      stdio: ["ignore", log, log],
    });
    fs.closeSync(log);
    // If it cannot be started, the wait for its first event fails and the log is shown.
    this.supervisor.on("error", () => {});
    return this.supervisor.pid ?? 0;
  }

  /** Waits until `look` returns a value. @throws ErrDemo when it returns none in time, Interrupted on Ctrl-C */
  async until<T>(what: string, look: () => T | undefined | false): Promise<T> {
    for (;;) {
      if (this.interruptions > 0) throw new Interrupted("interrupted");
      const found = look();
      if (found !== undefined && found !== false) return found;
      if (this.elapsedMs > this.limitMs)
        throw new ErrDemo(`${what} did not happen within ${this.limitMs / 1000} s`);
      const how = this.supervisor?.exitCode ?? this.supervisor?.signalCode;
      if (how !== null && how !== undefined)
        throw new ErrDemo(`the supervisor ended (${how}) before ${what}`);
      await wait(LOOK_MS);
    }
  }

  async rest(ms = this.restMs): Promise<void> {
    const untilMs = this.elapsedMs + ms;
    await this.until("time", () => this.elapsedMs >= untilMs);
  }

  /** Asks the supervisor to end and waits for it. @returns its exit code; null if it was killed or never ran */
  async stop(): Promise<number | null> {
    const child = this.supervisor;
    if (child?.pid === undefined) return null;
    if (child.exitCode === null && child.signalCode === null) {
      const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await gone;
      clearTimeout(timer);
    }
    this.supervisor = undefined;
    return child.exitCode;
  }

  /** The pids of living workers and of living programs that they started, even if the parent has ended. */
  processes(): number[] {
    const look = processes().look();
    const found = look.rows
      .map(({ pid }) => pid)
      .filter((pid) => variablesIn(look.environ(pid)).some((variable) => this.isOurs(variable)));
    if (found.length > 0) return found;
    // Without a list of processes only the pids that workers have reported are known.
    return readNames(this.tree.workers)
      .map((name) => Number(readJsonObject(join(this.tree.workers, name))?.["pid"]))
      .filter((pid) => Number.isInteger(pid) && pid > 0 && judge(identityOf(pid)) === "alive");
  }

  /** A program has the first of these two variables, a worker has the second. */
  private isOurs(variable: string): boolean {
    return (
      variable === `MAILCHUTE_STATE=${this.tree.dir}` ||
      (variable.startsWith("MAILCHUTE_WORKER_BOOT=") && variable.includes(this.tree.dir))
    );
  }

  /** Ends all processes that are left, and removes the tree unless it is kept. */
  async close(isKept: boolean): Promise<void> {
    await this.stop();
    this.killRest();
    process.off("exit", this.onExit);
    for (const signal of SIGNALS) process.off(signal, this.onSignal);
    if (!isKept) this.remove();
  }

  /** Kills all processes that are left and waits for their end: they must not write into a tree that is being removed. */
  private killRest(): void {
    const deadline = performance.now() + KILL_MS;
    for (;;) {
      const { pid } = this.supervisor ?? {};
      const isThere = pid !== undefined && judge(identityOf(pid)) === "alive";
      // The supervisor is killed first; otherwise it would start another worker.
      const left = isThere ? [pid, ...this.processes()] : this.processes();
      if (left.length === 0) return;
      for (const one of left) kill(one);
      if (performance.now() > deadline) return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS);
    }
  }

  private remove(): void {
    fs.rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Removes the variables of mailchute: the user's settings must not change the demo. */
function withoutOurs(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^(?:MAILCHUTE|DROVER)_/.test(name)),
  );
}

/** Empty for a process of another user. */
function variablesIn(environ: Buffer | undefined): string[] {
  return environ?.toString("latin1").split("\0") ?? [];
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

/** The sorted names in a directory. Empty if the directory does not exist. */
export function readNames(dir: string): string[] {
  return listDir(dir).sort();
}
