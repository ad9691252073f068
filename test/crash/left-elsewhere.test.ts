/** Workers that a supervisor in another container has left, or whose host has another name now: nobody here knows whether they live. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startTicksOf } from "../../src/host/identity.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { steeredConfig } from "../support/steered.ts";
import { waitFor } from "../support/wait-for.ts";

/** Puts there what a worker elsewhere has left, under the pid of a process of ours that has nothing to do with it. */
function leaveWorker(pool: Pool, pid: number, settings: string | undefined): string {
  const id = `w-${pid.toString(36)}-1`;
  const document = { id, pid, place: "0123456789ab", start_ticks: 1, tree: null, host: "gone" };
  const path = join(pool.state, "workers", `${id}.json`);
  const rest = { slots: 3, supervisor_pid: 1, settings, started_at: "2026-01-01T00:00:00Z" };
  fs.writeFileSync(path, JSON.stringify({ ...document, ...rest }));
  return path;
}

it("workers left in another container take no place, are not signalled, and are forgotten when they stay silent", async () => {
  const pool = newPool({ config: steeredConfig({ lease_ttl_ms: 2000, heartbeat_ms: 200 }) });
  await pool.start(["--workers", "1"]);
  const own = await waitFor(() => pool.workers()[0], { what: "a worker" });
  await pool.killAll();
  const bystanders = [0, 1].map(() => {
    const child = spawn("sleep", ["600"], { stdio: "ignore" });
    onTestFinished(() => void child.kill("SIGKILL"));
    return child.pid ?? 0;
  });
  const [same = 0, other = 0] = bystanders;
  const left = [leaveWorker(pool, same, own.settings), leaveWorker(pool, other, "other")];

  const supervisor = await pool.start(["--workers", "1"]);
  pool.drop("task", { exec: ["true"] });
  expect((await pool.result("task")).attempts).toBe(1);
  expect(supervisor.stderr().match(/was left on another host/g)).toHaveLength(2);
  await waitFor(() => left.every((path) => !fs.existsSync(path)), { what: "them to be forgotten" });
  await pool.stop();
  expect(bystanders.map((pid) => startTicksOf(pid) !== undefined)).toEqual([true, true]);
});

it("a worker elsewhere that shows signs of life stays known", async () => {
  const pool = newPool({ config: steeredConfig({ lease_ttl_ms: 2000, heartbeat_ms: 200 }) });
  fs.mkdirSync(join(pool.state, "workers"));
  const [alive, silent] = [leaveWorker(pool, 1_000_001, "a"), leaveWorker(pool, 1_000_002, "a")];
  const beat = setInterval(() => fs.utimesSync(alive, new Date(), new Date()), 50);
  onTestFinished(() => clearInterval(beat));
  await pool.start(["--workers", "1"]);
  await waitFor(() => !fs.existsSync(silent), { what: "the silent one to be forgotten" });
  clearInterval(beat);
  expect(fs.existsSync(alive)).toBe(true);
  await pool.stop();
});
