/**
 * A real `mailchute run` on a state tree of its own, as a stranger would start it: the built launcher, child processes,
 * files. Whatever it started is killed when the test is over, also workers that lead sessions of their own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { SupervisorDocument, WorkerDocument } from "../../src/core/documents.ts";
import { errorName, isRunsFolder, resultName } from "../../src/core/names.ts";
import type { ErrorRecord, ResultRecord, Task } from "../../src/core/task.ts";
import { isGone } from "../../src/host/identity.ts";
import { type OnEnd, tempDir } from "./temp-dir.ts";
import { waitFor } from "./wait-for.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));

/** Settings that suit tests: quick to refuse and to retry, and no fsync. */
export const QUICK_CONFIG = `
workers: 4
durability: process
settle_ms: 300
sweep_ms: 200
grace_ms: 500
retry: {max_attempts: 3, backoff_ms: 20, backoff_max_ms: 100}
`;

export interface PoolOptions {
  /** Text of `config.yaml`; default `QUICK_CONFIG`. */
  config?: string;
  /** Added to the environment of everything that is started. */
  env?: Record<string, string>;
  /** Runs everything as this user; the state tree is given to it. Only root may ask for it. */
  uid?: number;
  /** Put before the command that starts it: a program that lowers a limit, say, and then becomes what it is given. */
  prefix?: readonly string[];
  /** The launcher of another build. */
  launcher?: string;
  /** The folder in which its directory is made; default the system's for temporary files. */
  parent?: string;
  /** When everything goes away: by default with the running test; Vitest's `afterAll` for a whole suite. */
  onEnd?: OnEnd;
}

interface Ended {
  exitCode: number | null;
  signal: NodeJS.Signals | null;
}

/** A started `mailchute …`. */
export interface Running {
  child: ChildProcess;
  pid: number;
  /** What it printed so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves when it ended and all its output was read. */
  ended: Promise<Ended>;
}

export interface Pool {
  /** Temporary directory of this test; the state tree is `state` in it. */
  dir: string;
  state: string;
  mailbox: string;
  inbox: string;
  processing: string;
  outbox: string;
  failed: string;
  tmp: string;
  /** Starts `mailchute run ARGS` and resolves when `supervisor.json` says that it runs. May be called again after an end. */
  start(args?: readonly string[]): Promise<Running>;
  /** Starts `mailchute ARGS --state …` and does not wait. */
  spawn(args: readonly string[], launcher?: string): Running;
  /** Runs `mailchute ARGS --state …` to its end. */
  run(
    args: readonly string[],
    input?: string,
  ): Promise<{ code: number | null; stdout: string; stderr: string }>;
  /** SIGTERM to the supervisor last started, and waits for its end. */
  stop(): Promise<Ended>;
  /** SIGKILL to everything of this state tree at once: supervisors, workers, programs. Resolves when none is left. */
  killAll(): Promise<void>;
  /** Pids of the living processes of this state tree. */
  pids(): number[];
  supervisor(): SupervisorDocument | undefined;
  workers(): WorkerDocument[];
  /** Writes `inbox/<id>.json` as `mv` does: whole, from elsewhere on the same file system. */
  drop(id: string, task: Partial<Task> | Record<string, unknown>): void;
  /**
   * Waits until `outbox/<id>_result.json` is there and its settlement is through: what follows the record, from its
   * journal lines to the end of its marker and its staged file, has happened as well.
   */
  result(id: string, timeoutMs?: number): Promise<ResultRecord>;
  /** The same for `failed/<id>_error.json`. */
  error(id: string, timeoutMs?: number): Promise<ErrorRecord>;
  /** Paths below `runs/` of what attempts have left, now. */
  runs(): string[];
  /** How many result and error records there are, now: as cheap as two listings. */
  settledCount(): number;
  /** All result records, now. */
  results(): ResultRecord[];
  /** All error records, now, with the name of their file. */
  errors(): (ErrorRecord & { recordFile: string })[];
  /** Lines of the lifecycle journal, the lease journal, the alerts: now. */
  events(): Record<string, unknown>[];
  leases(): Record<string, unknown>[];
  alerts(): Record<string, unknown>[];
}

/** Makes a state tree with its `config.yaml`; nothing runs yet. Everything goes away at the end of the test. */
export function newPool(options: PoolOptions = {}): Pool {
  const { onEnd = onTestFinished } = options;
  const dir = tempDir(onEnd, options.parent);
  const state = join(dir, "state");
  const mailbox = join(state, "mailbox");
  const tray = (name: string): string => join(mailbox, name);
  const [inbox, processing, outbox, failed, tmp] = [
    "inbox",
    "processing",
    "outbox",
    "failed",
    ".tmp",
  ].map(tray) as [string, string, string, string, string];
  for (const path of [state, mailbox, inbox, processing, outbox, failed, tmp])
    fs.mkdirSync(path, { mode: 0o700 });
  fs.writeFileSync(join(state, "config.yaml"), options.config ?? QUICK_CONFIG);
  if (options.uid !== undefined)
    for (const path of [dir, ...fs.readdirSync(dir, { recursive: true }).map(String)])
      fs.chownSync(path === dir ? dir : join(dir, path), options.uid, options.uid);
  let last: Running | undefined;

  const pids = (): number[] => processesNaming(dir);
  const killAll = async (): Promise<void> => {
    const struck = new Set<number>();
    await waitFor(
      () => {
        const alive = pids();
        // Stopped first: a supervisor would start another worker, a worker another program.
        for (const signal of ["SIGSTOP", "SIGKILL"] as const)
          for (const pid of alive) signalTo(pid, signal);
        for (const pid of alive) struck.add(pid);
        // A process that ends has lost its arguments before it counts as dead.
        return alive.length === 0 && [...struck].every(isGone);
      },
      { what: `the end of the processes of ${dir}` },
    );
  };
  onEnd(killAll);

  const spawnIt = (args: readonly string[], launcher = options.launcher ?? LAUNCHER): Running => {
    const [verb = "", ...rest] = args;
    // `--` ends the options, so ours go before the caller's.
    const words = [process.execPath, launcher, verb, "--state", state, ...rest];
    const [program = "", ...others] = [...(options.prefix ?? []), ...words];
    const child = spawn(program, others, {
      cwd: dir,
      env: { ...process.env, NO_COLOR: "1", ...options.env },
      ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
    });
    return followed(child);
  };
  const supervisor = (): SupervisorDocument | undefined =>
    readJson<SupervisorDocument>(join(state, "supervisor.json"));
  /** The marker goes after the journal lines, the staged file after the marker. */
  const isSettling = (id: string): boolean =>
    list(processing).some((file) => file.startsWith(`${id}@`) && /~(?:ok|err|bad)-/.test(file)) ||
    list(tmp).some((file) => file.startsWith(`${id}@`));
  const settled = <T>(id: string, path: string, what: string, timeoutMs?: number) =>
    waitFor(
      () => {
        const record = readJson<T>(path);
        return record !== undefined && !isSettling(id) ? record : undefined;
      },
      { what, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
    ).catch((error: unknown) => {
      // The directory goes with the test: this is what is left to find the reason.
      throw new Error(`${String(error)}; ${lastEvents(id)}`, { cause: error });
    });
  const lastEvents = (id: string): string => {
    const ofTask = readLines(join(state, "analytics", "supervisor_lifecycle.jsonl")).filter(
      (line) => line["task_id"] === id,
    );
    const shown = ofTask
      .slice(-8)
      .map(({ event, attempt, error, gate, t }) =>
        JSON.stringify({ event, attempt, error, gate, t }),
      );
    const places = [inbox, processing, outbox, failed].flatMap((dir) =>
      list(dir).filter((name) => name.startsWith(id)),
    );
    return `files: ${places.join(" ")}; last events: ${shown.join(" ")}`;
  };
  const hasBegun = async (running: Running): Promise<"begun" | "ended"> => {
    let hasEnded = false;
    const end = (): void => {
      hasEnded = true;
    };
    running.ended.then(end, end);
    return waitFor(
      () => {
        const document = supervisor();
        // A short drain may have come to its end by then.
        if (document?.pid === running.pid && (hasEnded || document.status !== "stopped"))
          return "begun";
        return hasEnded ? "ended" : undefined;
      },
      { what: "a running supervisor" },
    );
  };
  const errorFiles = (): string[] => list(failed).filter((file) => file.endsWith("_error.json"));

  return {
    dir,
    state,
    mailbox,
    inbox,
    processing,
    outbox,
    failed,
    tmp,
    spawn: spawnIt,
    async start(args = []) {
      const before = supervisor()?.pid;
      for (;;) {
        const running = spawnIt(["run", ...args]);
        last = running;
        if ((await hasBegun(running)) === "begun") return running;
        // A supervisor that a test has killed takes a moment to go, in which it counts as one that runs.
        const isRefused = running.stderr().includes("ErrSupervisorRunning");
        if (!isRefused || before === undefined || !isGone(before))
          throw new Error(`mailchute run ended: ${running.stderr()}`);
      }
    },
    async run(args, input = "") {
      const running = spawnIt(args);
      running.child.stdin?.end(input);
      const { exitCode } = await running.ended;
      return { code: exitCode, stdout: running.stdout(), stderr: running.stderr() };
    },
    stop() {
      if (last === undefined) throw new Error("nothing was started");
      last.child.kill("SIGTERM");
      return last.ended;
    },
    killAll,
    pids,
    supervisor,
    workers: () =>
      list(join(state, "workers"))
        .map((file) => readJson<WorkerDocument>(join(state, "workers", file)))
        .filter((document) => document !== undefined),
    drop(id, task) {
      const staged = join(dir, `${id}.json`);
      fs.writeFileSync(staged, JSON.stringify(task));
      fs.renameSync(staged, join(inbox, `${id}.json`));
    },
    result: (id, timeoutMs) =>
      settled<ResultRecord>(id, join(outbox, resultName(id)), `the result of ${id}`, timeoutMs),
    error: (id, timeoutMs) =>
      settled<ErrorRecord>(id, join(failed, errorName(id)), `the error of ${id}`, timeoutMs),
    runs: () =>
      list(join(state, "runs")).flatMap((name) =>
        isRunsFolder(name) ? list(join(state, "runs", name)).map((run) => `${name}/${run}`) : name,
      ),
    settledCount: () =>
      list(outbox).filter((file) => file.endsWith("_result.json")).length + errorFiles().length,
    results: () =>
      list(outbox)
        .map((file) => readJson<ResultRecord>(join(outbox, file)))
        .filter((record) => record !== undefined),
    errors: () =>
      errorFiles().flatMap((recordFile) => {
        const record = readJson<ErrorRecord>(join(failed, recordFile));
        return record === undefined ? [] : [{ ...record, recordFile }];
      }),
    events: () => readLines(join(state, "analytics", "supervisor_lifecycle.jsonl")),
    leases: () => readLines(join(state, "supervisor_leases.jsonl")),
    alerts: () => readLines(join(state, "analytics", "alerts.jsonl")),
  };
}

function followed(child: ChildProcess): Running {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin?.on("error", () => {
    // It ended without reading; how it ended says more.
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  ended.catch(() => {
    // Whoever waits for it hears of it.
  });
  return { child, pid: child.pid ?? 0, stdout: () => stdout, stderr: () => stderr, ended };
}

/**
 * Living processes (no zombies) whose arguments or environment name this directory. That holds for supervisors
 * (`--state`), workers (`MAILCHUTE_WORKER_BOOT`) and programs (`MAILCHUTE_STATE`), whoever their parent is by now.
 */
function processesNaming(dir: string): number[] {
  const needle = Buffer.from(dir);
  return list("/proc").flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    try {
      const isOurs = ["cmdline", "environ"].some((file) =>
        fs.readFileSync(`/proc/${name}/${file}`).includes(needle),
      );
      const stat = isOurs ? fs.readFileSync(`/proc/${name}/stat`, "latin1") : "";
      return isOurs && stat[stat.lastIndexOf(")") + 2] !== "Z" ? [pid] : [];
    } catch {
      // Gone between the listing and the look, or not ours to look at.
      return [];
    }
  });
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself.
  }
}

function list(dir: string): string[] {
  try {
    return fs.readdirSync(dir);
  } catch {
    return [];
  }
}

/** The parsed file, or undefined when it is not there or not whole yet. */
export function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(fs.readFileSync(path, "utf8")) as T;
  } catch {
    return undefined;
  }
}

function readLines(path: string): Record<string, unknown>[] {
  let text: string;
  try {
    text = fs.readFileSync(path, "utf8");
  } catch {
    return [];
  }
  // The last piece is empty, or a record that is being written.
  return text.split("\n").slice(0, -1).flatMap(recordOf);
}

/** A writer that was killed leaves the beginning of a record; the next writer ends that line. Anything else is a fault. */
function recordOf(line: string): Record<string, unknown>[] {
  try {
    return [JSON.parse(line) as Record<string, unknown>];
  } catch (error) {
    if (line === "" || line.startsWith('{"')) return [];
    throw error;
  }
}
