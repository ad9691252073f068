/** Where memory is short: a worker process that dies of it uses up no run, the pool says what it is short of, and has an end. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { canLimit, freshUid, withLimits } from "../support/limits.ts";
import { onProc } from "../support/needs-proc.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const CONFIG = `
durability: process
settle_ms: 300
sweep_ms: 200
grace_ms: 500
retry: {max_attempts: 1, backoff_ms: 50, backoff_max_ms: 200}
`;
const GIB_IN_KIB = 2 ** 20;

/** A program that ends its worker once, by the signal by which V8 ends a process that gets no memory. */
function endsWorkerOnce(pool: Pool): string[] {
  const done = join(pool.dir, "done");
  return ["sh", "-c", `test -e ${done} && exit; touch ${done}; kill -ABRT $PPID; sleep 60`];
}

/** Preloaded: threads seem to come late. Writes a file when one is there. */
const LATE_THREADS = `
const { Worker } = require("node:worker_threads");
const { once } = Worker.prototype;
Worker.prototype.once = function (name, listener) {
  if (name !== "online") return once.call(this, name, listener);
  return once.call(this, name, () => setTimeout(() => {
    require("node:fs").writeFileSync(process.env.MAILCHUTE_TEST_ONLINE, "");
    listener();
  }, 500));
};`;

const reclaimed = (pool: Pool): unknown[] =>
  pool.events().flatMap((e) => (e["event"] === "reclaimed" ? [e["details"] ?? e] : []));

describe.skipIf(!canLimit())("where memory is short", () => {
  onProc("a worker that dies of it uses up no run, and the pool says what is short", async () => {
    const prefix = withLimits(`-v ${4 * GIB_IN_KIB}`);
    const pool = newPool({ config: CONFIG, uid: freshUid(), prefix });
    pool.drop("task", { exec: endsWorkerOnce(pool), max_attempts: 1 });
    const running = await pool.start(["--workers", "2", "--processes", "1"]);
    expect((await pool.result("task")).attempts).toBe(1);
    expect(JSON.stringify(reclaimed(pool))).toContain('"reason":"memory"');
    const what = "memory is short (ulimit -v allows each process 4.0 GiB of address space)";
    expect(JSON.stringify(pool.alerts())).toContain(what);
    await waitFor(() => JSON.stringify(pool.supervisor()?.troubles).includes(what), {
      what: "the same in supervisor.json",
    });
    const { stdout } = await pool.run(["status"]);
    expect(stdout.replace(/\s+/g, " ")).toContain("raise the limit of memory (ulimit -v,");
    await pool.stop();
    expect(running.stderr()).toContain("took back task: its worker died because memory ran out");
    expect(checkState(pool.state, ["task"], { hadCrashes: true })).toEqual([]);
  });

  onProc("nothing is claimed before the heartbeat has the memory that it needs", async () => {
    const env: Record<string, string> = {};
    const prefix = withLimits(`-v ${4 * GIB_IN_KIB}`);
    const pool = newPool({ config: CONFIG, uid: freshUid(), prefix, env });
    const [hook, online] = [join(pool.dir, "late-threads.cjs"), join(pool.dir, "online")];
    fs.writeFileSync(hook, LATE_THREADS);
    env["NODE_OPTIONS"] = `--require=${hook}`;
    env["MAILCHUTE_TEST_ONLINE"] = online;
    pool.drop("task", { exec: ["test", "-e", online], max_attempts: 1 });
    const { code, stderr } = await pool.run(["run", "--drain"]);
    expect(code, stderr).toBe(0);
  });

  onProc("doctor names the limit of address space, and what to do where it is low", async () => {
    const check = async (kib: number): Promise<object | undefined> => {
      const pool = newPool({ uid: freshUid(), prefix: withLimits(`-v ${kib}`) });
      const { stdout } = await pool.run(["doctor", "--json"]);
      const { checks } = JSON.parse(stdout) as { checks: { name: string }[] };
      return checks.find(({ name }) => name === "memory");
    };
    expect(await check(4 * GIB_IN_KIB)).toMatchObject({
      status: "ok",
      message: expect.stringContaining("ulimit -v allows each process 4.0 GiB"),
    });
    expect(await check(1.25 * GIB_IN_KIB)).toMatchObject({
      status: "warn",
      message: expect.stringContaining("ulimit -v allows each process 1.3 GiB"),
      do: expect.stringContaining("raise ulimit -v"),
    });
  });
});

it("a worker that dies of a full heap, without any limit, has used up the run", async () => {
  const pool = newPool({ config: CONFIG });
  pool.drop("task", { exec: endsWorkerOnce(pool), max_attempts: 1 });
  await pool.start(["--workers", "2", "--processes", "1"]);
  expect((await pool.error("task")).error).toBe("its worker died during attempt 1 of 1");
  expect(fs.existsSync(join(pool.dir, "done"))).toBe(true);
  await pool.stop();
});
