/**
 * Kills every process of a pool, programs included, at its N-th system call, whichever that is: `strace` counts them, and
 * its SIGKILL comes before the call is made. A second supervisor takes over as soon as the first is dead, while workers of the first
 * may still live, and be killed. Finds what a count of file-system calls cannot: a death between fork and exec, in a
 * message, in a thread.
 *
 *   npm run test:syscalls -- [--runs N] [--seed N] [--from N] [--to N] [--seconds N]      needs strace
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { checkState } from "../../support/check-state.ts";
import { EXIT_SKIPPED, hasDebianPackage } from "../../support/debian-package.ts";
import { type SeededRandom, seededRandom } from "../../support/seeded-random.ts";
import { waitFor } from "../../support/wait-for.ts";

const LAUNCHER = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const PROGRAM = fileURLToPath(new URL("program.sh", import.meta.url));
const HANDLER = fileURLToPath(new URL("handler.mjs", import.meta.url));
const FUNCTIONS = 5;
const PROGRAMS = 4;
const LINES = 20;
/** Of a supervisor that nobody kills, under strace (ms). */
const FIRST_MS_MAX = 30_000;
const SECOND_MS_MAX = 60_000;

/** @returns the exit code */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: "string", default: "100" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
      from: { type: "string", default: "30" },
      to: { type: "string", default: "2500" },
      seconds: { type: "string", default: "3600" },
    },
  });
  if (!hasDebianPackage("strace", "strace")) {
    console.error("SKIPPED: strace is not there. Install it: apt-get install strace");
    return EXIT_SKIPPED;
  }
  const seed = Number(values.seed);
  const random = seededRandom(seed);
  const untilMs = performance.now() + Number(values.seconds) * 1000;
  console.log(`seed ${seed}`);
  let runs = 0;
  let killed = 0;
  let failed = 0;
  while (runs < Number(values.runs) && performance.now() < untilMs) {
    runs++;
    const at = Number(values.from) + random.below(Number(values.to) - Number(values.from));
    const { wasKilled, problems, dir } = await runOnce(at, random);
    if (wasKilled) killed++;
    if (problems.length === 0) fs.rmSync(dir, { recursive: true });
    else failed++;
    for (const problem of problems)
      console.log(`PROBLEM at call ${at}: ${problem} (kept in ${dir})`);
  }
  console.log(`${runs} runs, ${killed} supervisors killed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

interface RunResult {
  wasKilled: boolean;
  problems: string[];
  dir: string;
}

async function runOnce(at: number, random: SeededRandom): Promise<RunResult> {
  const dir = fs.mkdtempSync(join(os.tmpdir(), "mailchute-syscalls-"));
  const state = join(dir, "state");
  const trace = join(dir, "trace");
  const ids = prepare(state, trace, random.pick(["process", "power"]));
  const run = [process.execPath, LAUNCHER, "run", "--state", state, "--no-live", "--drain"];
  const problems: string[] = [];
  const traced = await startTraced(dir, at, run);
  const wasKilled = await hasDied(traced);
  const second = spawnSync(run[0] as string, run.slice(1), {
    encoding: "utf8",
    timeout: SECOND_MS_MAX,
  });
  if (second.status !== 0)
    problems.push(
      `the second run ended with ${second.status ?? second.signal}: ${second.stderr.slice(-500)}`,
    );
  problems.push(...checkState(state, ids, { hadCrashes: true, mayRepeat: true }));
  problems.push(...checkBatch(state));
  const said = fs.readFileSync(trace, "utf8").split("\n");
  problems.push(...said.filter((line) => line.startsWith("overlap")));
  problems.push(...findPrograms(trace).map((pid) => `the program ${pid} is left`));
  endWorkers(state);
  traced.strace.kill("SIGKILL");
  return { wasKilled, problems, dir };
}

function prepare(state: string, trace: string, durability: string): string[] {
  const inbox = join(state, "mailbox", "inbox");
  fs.mkdirSync(inbox, { recursive: true, mode: 0o700 });
  fs.writeFileSync(trace, "");
  const settings = {
    durability,
    workers: 4,
    processes: 2,
    // Programs are killed, too, and each of these deaths is a run.
    retry: { max_attempts: 60, backoff_ms: 10, backoff_max_ms: 50 },
    agents: [{ name: "function", kind: "module", module: HANDLER, default: true }],
  };
  fs.writeFileSync(join(state, "config.yaml"), JSON.stringify(settings));
  const ids: string[] = [];
  const drop = (id: string, text: string, ending = "json"): void => {
    ids.push(id);
    fs.writeFileSync(join(inbox, `${id}.${ending}`), text);
  };
  for (let i = 0; i < FUNCTIONS; i++) drop(`f${i}`, '{"prompt":"?"}');
  for (let i = 0; i < PROGRAMS; i++)
    drop(`p${i}`, JSON.stringify({ exec: [PROGRAM, trace, i === 0 ? "second" : "ok"] }));
  drop("batch", '{"prompt":"?"}\n'.repeat(LINES), "ndjson");
  return ids;
}

interface Traced {
  strace: ChildProcess;
  pid: number;
}

async function startTraced(dir: string, at: number, run: readonly string[]): Promise<Traced> {
  const pidFile = join(dir, "pid");
  const inject = ["-e", "trace=all", "-e", `inject=all:signal=KILL:when=${at}`];
  // The shell becomes the supervisor: then its number is known from the first call on.
  const shell = ["sh", "-c", `echo $$ > ${pidFile}; exec "$@"`, "sh", ...run];
  const strace = spawn("strace", ["-f", "-qq", "-o", "/dev/null", ...inject, ...shell], {
    stdio: "ignore",
  });
  const isThere = (): boolean =>
    isOver(strace) || (fs.existsSync(pidFile) && fs.readFileSync(pidFile, "utf8").endsWith("\n"));
  await waitFor(isThere, { what: "the first supervisor" });
  return { strace, pid: fs.existsSync(pidFile) ? Number(fs.readFileSync(pidFile, "utf8")) : 0 };
}

/** Waits for the end of the first supervisor. @returns false when it ended by itself, with all work done */
async function hasDied({ pid, strace }: Traced): Promise<boolean> {
  await waitFor(() => isOver(strace) || !fs.existsSync(`/proc/${pid}/exe`), {
    timeoutMs: FIRST_MS_MAX,
    what: "the end of the first supervisor",
  });
  return strace.exitCode !== 0;
}

function isOver(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function checkBatch(state: string): string[] {
  const path = join(state, "mailbox", "outbox", "batch_results.ndjson");
  if (!fs.existsSync(path)) return ["the batch has no results"];
  const lines = fs.readFileSync(path, "utf8").trimEnd().split("\n");
  const numbers = new Set(lines.map((line) => (JSON.parse(line) as { line: number }).line));
  return lines.length === LINES && numbers.size === LINES
    ? []
    : [`the batch has ${lines.length} results of ${numbers.size} lines, not ${LINES}`];
}

/** What runs with this trace, besides us. */
function findPrograms(trace: string): string[] {
  return fs.readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`${PROGRAM}\0${trace}`);
    } catch {
      return false;
    }
  });
}

/** Those that the first supervisor has left wait for another one for half a minute. */
function endWorkers(state: string): void {
  const dir = join(state, "workers");
  const names = fs.existsSync(dir) ? fs.readdirSync(dir) : [];
  for (const name of names.filter((one) => one.endsWith(".json"))) {
    const { pid } = JSON.parse(fs.readFileSync(join(dir, name), "utf8")) as { pid: number };
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Killed already.
    }
  }
}
