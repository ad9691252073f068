/** Where few processes and threads may be made: all tasks run, the pool says what it is short of, and no attempt is used up. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { canLimit, freshUid, lowerLimit, withLimits } from "../support/limits.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const CONFIG = `
durability: power
settle_ms: 300
sweep_ms: 200
grace_ms: 500
retry: {max_attempts: 1, backoff_ms: 50, backoff_max_ms: 200}
`;

/** A pool of a user of its own, who may have so many processes and threads. */
function limitedPool(max: number): Pool {
  return newPool({ config: CONFIG, uid: freshUid(), prefix: withLimits(`-u ${max}`) });
}

/** What the supervisor says that the machine refuses. */
function troubles(pool: Pool): string {
  return (pool.supervisor()?.troubles ?? []).map(({ what }) => what).join("\n");
}

/** What `status` says is in the way. */
async function obstacles(pool: Pool): Promise<string> {
  const { stdout } = await pool.run(["status", "--json"]);
  const { obstacles: found } = JSON.parse(stdout) as { obstacles: { what: string }[] };
  return found.map(({ what }) => what).join("\n");
}

const alertsOf = (pool: Pool): string => JSON.stringify(pool.alerts());

describe.skipIf(!canLimit())("where few processes and threads may be made", () => {
  it.each([60, 36])("all tasks complete in their first run with ulimit -u %i", async (max) => {
    const pool = limitedPool(max);
    const ids = Array.from({ length: 20 }, (_, n) => `t-${n}`);
    for (const id of ids) pool.drop(id, { exec: ["true"], max_attempts: 1 });
    const { code, stderr } = await pool.run(["run", "--drain"]);
    expect(code, stderr).toBe(0);
    expect(pool.results().map((r) => r.attempts)).toEqual(ids.map(() => 1));
    expect(checkState(pool.state, ids)).toEqual([]);
  });

  it("a pool with too few threads says so in an alert, in status and in doctor", async () => {
    const pool = limitedPool(36);
    await pool.start(["--workers", "2"]);
    const what = /ulimit -u allows 36 .* for the disk, not \d+/;
    await waitFor(() => what.test(alertsOf(pool)), { what: "an alert" });
    await waitFor(() => what.test(troubles(pool)), { what: "the same in supervisor.json" });
    expect(await obstacles(pool)).toMatch(what);
    const { stdout } = await pool.run(["doctor", "--json"]);
    const { checks } = JSON.parse(stdout) as { checks: { name: string }[] };
    const found = checks.filter(({ name }) => name === "processes" || name === "progress");
    expect(JSON.stringify(found)).toContain("ulimit -u allows 36");
    expect(JSON.stringify(found)).toContain("raise the limit of processes");
    expect((await pool.stop()).exitCode).toBe(0);
  });

  it("doctor says what a pool would be short of before it is started", async () => {
    const check = async (max: number): Promise<object | undefined> => {
      const { stdout } = await limitedPool(max).run(["doctor", "--json"]);
      const { checks } = JSON.parse(stdout) as { checks: { name: string }[] };
      return checks.find(({ name }) => name === "processes");
    };
    expect(await check(12)).toMatchObject({
      status: "fail",
      message: expect.stringContaining("no worker process can be started; ulimit -u allows 12"),
    });
    expect(await check(24)).toMatchObject({
      status: "warn",
      message: expect.stringContaining("makes do with fewer; ulimit -u allows 24"),
    });
    expect(await check(200)).toMatchObject({ status: "ok" });
  });

  it("a supervisor that can make no thread says why, and exits with 75", async () => {
    const { code, stderr } = await limitedPool(7).run(["run", "--drain"]);
    expect(stderr).toMatch(/ErrIo: EAGAIN: no thread can be made: ulimit -u allows 7 /);
    expect(stderr).toContain("do: raise the limit of processes and threads");
    expect(code).toBe(75);
  });

  it("a worker started by hand that can make no thread says why, and claims nothing", async () => {
    const { code, stderr } = await limitedPool(7).run(["worker"]);
    expect(stderr).toMatch(/ErrIo: EAGAIN: no thread can be made/);
    expect(code).toBe(75);
  });

  it("tasks whose programs cannot be started wait, use up nothing, and run when they can be", async () => {
    const uid = freshUid();
    const pool = newPool({ config: CONFIG, uid });
    await pool.start(["--workers", "2", "--processes", "1"]);
    await waitFor(() => pool.workers().length === 1, { what: "a worker" });
    const pid = pool.workers()[0]?.pid ?? 0;
    const lift = lowerLimit(pid, uid, "nproc", 1);
    pool.drop("waits", { exec: ["true"], max_attempts: 1 });
    const what = "no program can be started (EAGAIN)";
    await waitFor(() => alertsOf(pool).includes(what), { what: "an alert" });
    await waitFor(() => troubles(pool).includes(what), { what: "the same in supervisor.json" });
    expect(await obstacles(pool)).toContain(`1 task waits, and no attempt is used up: ${what}`);
    expect(pool.errors()).toEqual([]);
    lift();
    expect((await pool.result("waits")).attempts).toBe(1);
    await waitFor(() => troubles(pool) === "", { what: "the end of it" });
    await pool.stop();
    expect(checkState(pool.state, ["waits"])).toEqual([]);
  });

  it("a verify program that cannot be started is waited for: the work is not done again", async () => {
    const uid = freshUid();
    const pool = newPool({ config: CONFIG, uid });
    await pool.start(["--workers", "2", "--processes", "1"]);
    const [runs, go] = [join(pool.dir, "runs"), join(pool.dir, "go")];
    const script = `echo run >> ${runs}; until test -e ${go}; do sleep 0.1; done`;
    pool.drop("task", { exec: ["sh", "-c", script], verify: ["true"], max_attempts: 1 });
    await waitFor(() => fs.existsSync(runs), { what: "its run" });
    const lift = lowerLimit(pool.workers()[0]?.pid ?? 0, uid, "nproc", 1);
    fs.writeFileSync(go, "");
    const log = (): string => join(pool.state, "runs", pool.runs()[0] ?? "", "verify.log");
    await waitFor(() => fs.existsSync(log()), { what: "the attempt to verify it" });
    lift();
    expect((await pool.result("task")).attempts).toBe(1);
    expect(fs.readFileSync(runs, "utf8")).toBe("run\n");
  });

  it("a pool that can start no worker says so, and goes on when it can", async () => {
    const uid = freshUid();
    const pool = newPool({ config: CONFIG, uid });
    const { pid } = await pool.start(["--workers", "2", "--processes", "1"]);
    await waitFor(() => pool.workers().length === 1, { what: "a worker" });
    const lift = lowerLimit(pid, uid, "nproc", 1);
    process.kill(pool.workers()[0]?.pid ?? 0, "SIGKILL");
    pool.drop("waits", { exec: ["true"], max_attempts: 1 });
    const what = "no worker can be started";
    await waitFor(() => troubles(pool).includes(what), { what: "a word in supervisor.json" });
    expect(await obstacles(pool)).toContain(what);
    // The worker has its file before it says that it is ready.
    expect(alertsOf(pool)).toMatch(/a worker process (?:cannot start|ended before it was ready)/);
    lift();
    expect((await pool.result("waits", 60_000)).attempts).toBe(1);
    await waitFor(() => troubles(pool) === "", { what: "the end of it" });
    await pool.stop();
    expect(checkState(pool.state, ["waits"], { hadCrashes: true })).toEqual([]);
  });
});
