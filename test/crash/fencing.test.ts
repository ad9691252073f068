/** A worker that falls silent past its lease and wakes up again finds its task in other hands, and changes nothing. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseOwner } from "../../src/host/identity.ts";
import { checkState } from "../support/check-state.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { starts, steeredConfig, steps, tracePath } from "../support/steered.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const CONFIG = { lease_ttl_ms: 1500, heartbeat_ms: 300 };

interface Fencing {
  pool: Pool;
  /** The worker that is stopped while it runs the task. */
  silent: number;
  lease: string;
}

/** A supervisor with one worker that runs `task`; that worker is stopped, and another one is started by hand. */
async function stopInTheMiddle(task: (pool: Pool) => object): Promise<Fencing> {
  const pool = newPool({ config: steeredConfig(CONFIG) });
  await pool.start(["--workers", "1", "--processes", "1"]);
  pool.drop("task", task(pool));
  await waitFor(() => starts(pool, "task").length === 1, { what: "the first run" });
  const lease = starts(pool, "task")[0]?.lease ?? "";
  const silent = parseOwner(lease.split(".")[2] ?? "")?.pid ?? 0;
  // More than one heartbeat old: the other one must wait for the lease to end, not merely look.
  process.kill(silent, "SIGSTOP");
  pool.spawn(["worker"]);
  await waitFor(() => pool.workers().length === 2, { what: "the worker by hand" });
  return { pool, silent, lease };
}

interface Snapshot {
  text: string;
  ino: number;
  mtimeMs: number;
}

function snapshot(path: string): Snapshot {
  const { ino, mtimeMs } = fs.statSync(path);
  return { text: fs.readFileSync(path, "utf8"), ino, mtimeMs };
}

/** Lets the silent worker go on and expects that it says so and leaves all as it is. */
async function wakeUp({ pool, silent, lease }: Fencing): Promise<void> {
  const path = join(pool.outbox, "task_result.json");
  const before = snapshot(path);
  const fenced = (): Record<string, unknown>[] =>
    pool.events().filter((e) => e["event"] === "fenced");
  expect(fenced()).toEqual([]);
  process.kill(silent, "SIGCONT");
  await waitFor(() => fenced().length > 0, {
    what: "a fenced event",
    timeoutMs: 3000,
  });
  expect(fenced()).toEqual([
    expect.objectContaining({ task_id: "task", agent_id: expect.stringMatching(/./) }),
  ]);
  const [{ lease: head, owner } = {}] = fenced();
  expect([head, owner].join(".")).toBe(lease);
  // It is of use again, so whatever it had left to do with the old task is done.
  const worker = pool.workers().find((w) => w.pid === silent);
  pool.drop("next", steps(pool, {}));
  await pool.result("next");
  expect(snapshot(path)).toEqual(before);
  const result = JSON.parse(before.text) as { lease: string; attempts: number };
  expect(result.lease).not.toBe(lease);
  expect(result.attempts).toBe(2);
  expect(worker).toBeDefined();
  await waitFor(() => fs.readdirSync(pool.processing).length === 0, {
    what: "the last marker to go",
  });
  expect(fs.readdirSync(pool.failed)).toEqual([]);
  await pool.stop();
  for (const pid of pool.pids()) process.kill(pid, "SIGTERM");
  await waitFor(() => pool.pids().length === 0, { what: "the end of the worker by hand" });
  expect(checkState(pool.state, ["task", "next"])).toEqual([]);
}

it("a handler that is still at work is stopped", async () => {
  let until = "";
  const fencing = await stopInTheMiddle((pool) => {
    until = join(pool.dir, "go");
    return steps(pool, { does: "await", until });
  });
  const { pool, silent } = fencing;
  await waitFor(() => starts(pool, "task").length === 2, { what: "the second run" });
  const second = starts(pool, "task")[1];
  expect(second).toMatchObject({ attempt: 2 });
  expect(second?.pid).not.toBe(silent);
  // Only the second run sees the file: the first one is to be fenced while it waits.
  fs.writeFileSync(until, "");
  await pool.result("task");
  fs.rmSync(until);
  await wakeUp(fencing);
});

it("a handler that is through at once when its worker wakes up cannot settle", async () => {
  const fencing = await stopInTheMiddle((pool) => steps(pool, { does: "work", ms: 1000 }));
  await fencing.pool.result("task");
  // The first run's time is long over: it ends in its first moment.
  await wakeUp(fencing);
});

it("a program is killed before the task runs again, and its end changes nothing", async () => {
  const fencing = await stopInTheMiddle((pool) => ({
    exec: ["sh", programPath("has-family.sh"), tracePath(pool), "2.5"],
  }));
  const { pool, lease } = fencing;
  await waitFor(() => starts(pool, "task").length === 2, { what: "the second run" });
  expect(processesOf(lease)).toEqual([]);
  await pool.result("task");
  await wakeUp(fencing);
});

/** Living processes that carry this lease in their environment. */
function processesOf(lease: string): string[] {
  const found = execFileSync("sh", [
    "-c",
    `grep -lzsx "MAILCHUTE_LEASE=${lease}" /proc/[0-9]*/environ || true`,
  ]);
  return found.toString().split("\n").filter(Boolean);
}
