/** What a run had started is gone two seconds after somebody could notice its end, however that hid and whatever died. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startTicksOf } from "../../src/host/identity.ts";
import { checkState } from "../support/check-state.ts";
import { newPool, type Pool, type Running } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { steeredConfig } from "../support/steered.ts";
import { takeSome } from "../support/take-some.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const ROLES = ["root", "child", "grandchild", "apart", "daemon"];
const LEFT_MS = 2000;

interface Family {
  pool: Pool;
  supervisor: Running;
  /** Pids by role. */
  pids: Record<string, number>;
  /** Roles that still run. */
  running: () => string[];
}

/** A pool in which one task has a program with all kinds of descendants. */
async function startFamily(
  what: "wait" | "die" | "end",
  task: object = {},
  settings: Record<string, string | number> = {},
): Promise<Family> {
  const pool = newPool({ config: steeredConfig({ ...settings }) });
  const dir = join(pool.dir, "family");
  fs.mkdirSync(dir);
  const supervisor = await pool.start(["--workers", "1"]);
  pool.drop("task", { exec: ["sh", programPath("has-orphans.sh"), dir, what], ...task });
  await waitFor(() => fs.existsSync(join(dir, "root")), { what: "the whole family" });
  const ticks = new Map<string, number | undefined>();
  const pids: Record<string, number> = {};
  for (const role of ROLES) {
    const pid = await waitFor(() => Number(fs.readFileSync(join(dir, role), "utf8")), {
      what: `the pid of ${role}`,
    });
    pids[role] = pid;
    ticks.set(role, startTicksOf(pid));
  }
  const running = (): string[] =>
    ROLES.filter((role) => {
      const since = ticks.get(role);
      return since !== undefined && startTicksOf(pids[role] ?? 0) === since;
    });
  return { pool, supervisor, pids, running };
}

async function isAllGone({ running }: Family): Promise<void> {
  const what = "the end of the family";
  await waitFor(() => running().length === 0, { timeoutMs: LEFT_MS, what }).catch(() => {});
  expect(running(), `left after ${timeLimitMs(LEFT_MS)} ms`).toEqual([]);
}

function workerOf({ pool }: Family): number {
  return pool.workers()[0]?.pid ?? 0;
}

it("a killed worker leaves none of its program's processes behind", async () => {
  const family = await startFamily("wait");
  expect(family.running()).toEqual(ROLES);
  process.kill(workerOf(family), "SIGKILL");
  await isAllGone(family);
  expect((await family.pool.result("task")).attempts).toBe(2);
  await family.pool.stop();
  expect(checkState(family.pool.state, ["task"], { hadCrashes: true })).toEqual([]);
});

it("a worker killed after its program lost its parent leaves none of the rest behind", async () => {
  const family = await startFamily("wait");
  const worker = workerOf(family);
  // The worker cannot notice that its program is gone.
  process.kill(worker, "SIGSTOP");
  process.kill(family.pids["root"] ?? 0, "SIGKILL");
  process.kill(worker, "SIGKILL");
  await isAllGone(family);
  expect((await family.pool.result("task")).attempts).toBe(2);
});

it("supervisor and worker killed at once: the next supervisor leaves none behind", async () => {
  const family = await startFamily("wait");
  const worker = workerOf(family);
  process.kill(family.supervisor.pid, "SIGKILL");
  process.kill(worker, "SIGKILL");
  await waitFor(() => startTicksOf(worker) === undefined, { what: "the end of the worker" });
  expect(family.running()).toEqual(ROLES);
  await family.pool.start(["--workers", "1"]);
  await isAllGone(family);
  expect((await family.pool.result("task")).attempts).toBe(2);
});

it("a worker that stood still until its lease was taken finds nothing of its program left", async () => {
  const family = await startFamily("wait", {}, { lease_ttl_ms: 1000, heartbeat_ms: 200 });
  process.kill(workerOf(family), "SIGSTOP");
  await waitFor(() => family.pool.events().some((e) => e["event"] === "reclaimed"), {
    what: "its lease to be taken",
  });
  // Its processes end before its lease does.
  expect(family.running()).toEqual([]);
  process.kill(workerOf(family), "SIGCONT");
  expect((await family.pool.result("task")).attempts).toBe(2);
});

it.each([
  ["for good", ["cancel", "task"]],
  ["to be put back", ["cancel", "task", "--requeue"]],
])("a run that is cancelled %s leaves none behind", async (_, args) => {
  const family = await startFamily("wait");
  expect((await family.pool.run(args)).code).toBe(0);
  await isAllGone(family);
});

it("a run past its time leaves none behind", async () => {
  const family = await startFamily("wait", { timeout_ms: 3000, max_attempts: 1 });
  expect((await family.pool.error("task")).kind).toBe("timeout");
  await isAllGone(family);
});

it("a program that a signal ended leaves none behind, although none of its group lives on", async () => {
  const family = await startFamily("die");
  await isAllGone(family);
  expect((await family.pool.result("task")).attempts).toBe(2);
});

it("a program that ended by itself takes its group along; what left that on purpose is let be", async () => {
  const family = await startFamily("end");
  await family.pool.result("task");
  await waitFor(() => family.running().length === 2, { what: "the end of its group" });
  expect(family.running()).toEqual(["apart", "daemon"]);
  await family.pool.stop();
  expect(family.running()).toEqual(["apart", "daemon"]);
  for (const role of family.running()) process.kill(family.pids[role] ?? 0, "SIGKILL");
});
