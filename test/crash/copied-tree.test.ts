/** State trees that were copied, moved or taken away while they were at work: each keeps to its own processes. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import type { SupervisorDocument } from "../../src/core/documents.ts";
import { startTicksOf } from "../../src/host/identity.ts";
import { newPool, type Pool, readJson } from "../support/pool.ts";
import { steeredConfig, steps } from "../support/steered.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
const isAlive = (pid: number): boolean => startTicksOf(pid) !== undefined;

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** `mailchute` with just these arguments, beside the pool's own state tree. */
function start(pool: Pool, args: readonly string[]): { pid: number; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [LAUNCHER, ...args], { cwd: pool.dir });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (text) => {
    stdout += String(text);
  });
  child.stderr.on("data", (text) => {
    stderr += String(text);
  });
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
  return { pid: child.pid ?? 0, ended };
}

/** A task that says its pid, and waits. */
async function startProgram(pool: Pool, go: string): Promise<number> {
  const pidFile = join(pool.dir, "program.pid");
  const script = `echo $$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; until [ -e ${go} ]; do sleep 0.1; done`;
  pool.drop("long", { exec: ["sh", "-c", script] });
  return waitFor(() => (fs.existsSync(pidFile) ? Number(fs.readFileSync(pidFile, "utf8")) : 0), {
    what: "the program",
  });
}

it("a copy of a tree at work leaves the original's processes alone, and knows nothing of its workers", async () => {
  const pool = newPool({ config: steeredConfig() });
  await pool.start(["--workers", "1"]);
  const go = join(pool.dir, "go");
  const program = await startProgram(pool, go);
  const [worker] = pool.workers();
  const copy = join(pool.dir, "copy");
  fs.cpSync(pool.state, copy, { recursive: true });
  // As after ten seconds.
  fs.utimesSync(join(copy, "supervisor.lock"), 1, 1);

  const status = await start(pool, ["status", "--json", "--state", copy]).ended;
  expect(JSON.parse(status.stdout)).toMatchObject({ supervisor: { state: "none" }, workers: [] });
  const other = start(pool, ["run", "--state", copy, "--workers", "1"]);
  const standing = join(copy, "supervisor.json");
  await waitFor(() => readJson<SupervisorDocument>(standing)?.pid === other.pid, {
    what: "the supervisor of the copy",
  });
  const cancel = ["cancel", "long", "--requeue", "--wait", "--state", copy];
  expect((await start(pool, cancel).ended).code).toBe(0);
  // It runs there, too, by now.
  await waitFor(
    () => readJson<{ slots: object }>(join(copy, "control.json"))?.slots !== undefined,
    {
      what: "its workers",
    },
  );
  process.kill(other.pid, "SIGTERM");
  expect((await other.ended).code).toBe(0);
  expect([program, worker?.pid ?? 0].map(isAlive)).toEqual([true, true]);

  fs.writeFileSync(go, "");
  expect(await pool.result("long")).toMatchObject({ attempts: 1, run: expect.any(String) });
  await pool.stop();
});

it("a tree that was moved away still ends the programs of its dead worker", async () => {
  const pool = newPool({ config: steeredConfig() });
  const supervisor = await pool.start(["--workers", "1"]);
  const program = await startProgram(pool, join(pool.dir, "go"));
  const [worker] = pool.workers();
  supervisor.child.kill("SIGKILL");
  process.kill(worker?.pid ?? 0, "SIGKILL");
  await supervisor.ended;
  const moved = join(pool.dir, "moved");
  fs.renameSync(pool.state, moved);
  expect(isAlive(program)).toBe(true);
  expect((await start(pool, ["recover", "--state", moved]).ended).code).toBe(0);
  expect(isAlive(program)).toBe(false);
});

it("a worker says again who it is when that was taken away", async () => {
  const pool = newPool({ config: steeredConfig() });
  await pool.start(["--workers", "1"]);
  await waitFor(() => pool.workers().length === 1, { what: "the worker" });
  const [before] = pool.workers();
  fs.rmSync(join(pool.state, "workers"), { recursive: true });
  await waitFor(() => pool.workers().length === 1, { what: "its document" });
  expect(pool.workers()).toEqual([before]);
  await pool.stop();
});

it("a worker whose tree was replaced by another one ends with what it runs, and takes nothing from there", async () => {
  const config = steeredConfig();
  const pool = newPool({ config });
  const first = await pool.start(["--workers", "1"]);
  const program = await startProgram(pool, join(pool.dir, "go"));
  const [old] = pool.workers();
  first.child.kill("SIGKILL");
  first.child.stderr?.destroy();
  await first.ended;
  // Removed only later: its number must not be given to the next one.
  fs.renameSync(pool.state, join(pool.dir, "removed"));
  fs.mkdirSync(pool.state);
  fs.writeFileSync(join(pool.state, "config.yaml"), config);
  await pool.start(["--workers", "1"]);
  await waitFor(() => ![program, old?.pid ?? 0].some(isAlive), { what: "the end of the old" });
  for (const id of ["a", "b", "c"]) pool.drop(id, steps(pool, { does: "speak" }));
  const pids = new Set<unknown>();
  for (const id of ["a", "b", "c"])
    pids.add(((await pool.result(id)).output as { pid: number }).pid);
  expect(pids).toEqual(new Set(pool.workers().map(({ pid }) => pid)));
  await pool.stop();
  expect(pool.pids()).toEqual([]);
});

it("a supervisor whose tree was moved away says so", async () => {
  const pool = newPool({ config: steeredConfig() });
  const run = await pool.start(["--workers", "1"]);
  await waitFor(() => pool.workers().length === 1, { what: "the worker" });
  fs.renameSync(pool.state, join(pool.dir, "moved"));
  // Not until its output ends: its workers have that, too.
  await waitFor(() => run.child.exitCode !== null, { what: "its end" });
  expect(run.child.exitCode).toBe(4);
  await waitFor(() => run.stdout() !== "", { what: "its last words" });
  expect(run.stdout()).toBe(
    `${pool.state} was moved, removed or replaced; this supervisor ended\n`,
  );
});
