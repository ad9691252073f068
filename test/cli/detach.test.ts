/** `run --detach`: the pool outlives the command that has started it, and its log stays small. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { newPool, type Pool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

async function detach(pool: Pool, ...words: string[]): Promise<number> {
  const { code, stdout, stderr } = await pool.run(["run", "--detach", "--json", ...words]);
  expect(code, stderr).toBe(0);
  const { pid, log } = JSON.parse(stdout) as { pid: number; log: string };
  expect(log).toBe(join(pool.state, "run.log"));
  onTestFinished(() => {
    if (pool.pids().includes(pid)) process.kill(pid, "SIGKILL");
  });
  return pid;
}

test("the pool runs when the command has ended, leads a session of its own, and ends by stop", async () => {
  const pool = newPool();
  const pid = await detach(pool);
  expect(pool.supervisor()).toMatchObject({ pid, status: "running" });
  expect(pool.pids()).toContain(pid);
  // Field 6 of stat: its session, see proc(5).
  const session = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[3];
  expect(session).toBe(String(pid));
  pool.drop("a", { exec: ["sh", "-c", 'echo "[$MAILCHUTE_RUN_LOG]"'] });
  expect((await pool.result("a")).output).toBe("[]\n");
  expect((await pool.run(["stop"])).code).toBe(0);
  // Its last words come after it has said that it stops.
  const log = (): string => fs.readFileSync(join(pool.state, "run.log"), "utf8");
  await waitFor(() => log().includes("1 completed, 0 failed"), { what: "the counts in its log" });
});

test("a pool that cannot start says why, with its exit code", async () => {
  const pool = newPool();
  await detach(pool);
  // Characters of several bytes stand in the log before the message.
  fs.appendFileSync(join(pool.state, "run.log"), `${"ü".repeat(20)}\n`);
  const again = await pool.run(["run", "--detach"]);
  expect(again.code).toBe(4);
  expect(again.stderr).toMatch(/^mailchute: ErrSupervisorRunning: /);
  expect(again.stderr.match(/ErrSupervisorRunning/g)).toHaveLength(1);
  expect((await pool.run(["run", "--detach", "--dry-run"])).code).toBe(2);
  await pool.run(["stop"]);
});

test("a large log is moved aside", async () => {
  const pool = newPool();
  const log = join(pool.state, "run.log");
  fs.writeFileSync(log, "x".repeat(6 * 1024 * 1024));
  await detach(pool, "--paused");
  await pool.run(["stop"]);
  expect(fs.statSync(log).size).toBeLessThan(10_000);
  expect(fs.statSync(`${log}.1`).size).toBe(6 * 1024 * 1024);
});
