/** Tasks that kill, block, hang, fail or outstay: each ends as the rules say, and none takes the pool with it. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { starts, steeredConfig, steps, trace } from "../support/steered.ts";
import { takeSome } from "../support/take-some.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

/** Stops the pool and expects that nothing is wrong with what it leaves. */
async function endsClean(pool: Pool, ids: readonly string[], hadCrashes = false): Promise<void> {
  const { exitCode } = await pool.stop();
  expect(exitCode).toBe(0);
  expect(checkState(pool.state, ids, { hadCrashes })).toEqual([]);
  expect(pool.pids()).toEqual([]);
}

it("a task that kills its worker every time fails after its runs, and one more at most; others go on", async () => {
  const pool = newPool({ config: steeredConfig() });
  await pool.start(["--workers", "2", "--processes", "2"]);
  pool.drop("poison", { max_attempts: 3, ...steps(pool, { does: "die" }) });
  const others = Array.from({ length: 20 }, (_, n) => `other-${n}`);
  for (const id of others) pool.drop(id, steps(pool, { does: "work", ms: 20 }));

  const error = await pool.error("poison");
  expect(error).toMatchObject({ kind: "lease_expired", code: "ErrWorkerDied" });
  // One run more when its worker held another task in the last one.
  const runs = Number(error["attempts"]);
  expect([3, 4]).toContain(runs);
  expect(starts(pool, "poison").map((line) => line.attempt)).toEqual([1, 2, 3, 4].slice(0, runs));
  for (const id of others) await pool.result(id);
  pool.drop("late", steps(pool, {}));
  await pool.result("late");
  await endsClean(pool, ["poison", "late", ...others], true);
});

it("a task that kills its worker every time takes nobody beside it along for good", async () => {
  const pool = newPool();
  await pool.start(["--workers", "4", "--processes", "1"]);
  const others = Array.from({ length: 6 }, (_, n) => `other-${n}`);
  pool.drop("poison", { exec: ["sh", "-c", "sleep 0.1; kill -9 $PPID; sleep 5"], priority: 1 });
  for (const id of others) pool.drop(id, { exec: ["sleep", "0.5"] });

  expect(await pool.error("poison")).toMatchObject({ code: "ErrWorkerDied", attempts: 3 });
  for (const id of others) await pool.result(id);
  await waitFor(() => pool.workers().length === 1, { what: "the end of those with one task" });
  await endsClean(pool, ["poison", ...others], true);
});

it("a task that kills its worker leaves those beside it one more run, in a process of their own, also with max_attempts 1", async () => {
  const pool = newPool();
  await pool.start(["--workers", "4", "--processes", "1"]);
  const others = Array.from({ length: 6 }, (_, n) => `other-${n}`);
  const exec = ["sh", "-c", "sleep 0.1; kill -9 $PPID; sleep 5"];
  pool.drop("poison", { exec, priority: 1, max_attempts: 1 });
  for (const id of others) pool.drop(id, { exec: ["sleep", "0.5"], max_attempts: 1 });
  // Whether it held others when it died: then that is not the one to blame, but the run alone tells.
  expect((await pool.error("poison")).attempts).toBeLessThanOrEqual(2);
  for (const id of others) await pool.result(id);
  await endsClean(pool, ["poison", ...others], true);
});

it("a task that kills its worker and was alone in it has had its run", async () => {
  const pool = newPool();
  await pool.start(["--workers", "4", "--processes", "1"]);
  pool.drop("poison", { exec: ["sh", "-c", "kill -9 $PPID; sleep 5"], max_attempts: 1 });
  expect(await pool.error("poison")).toMatchObject({ code: "ErrWorkerDied", attempts: 1 });
  await endsClean(pool, ["poison"], true);
});

it("a handler that blocks the event loop past its time limit ends with its process, and fails", async () => {
  const pool = newPool({ config: steeredConfig({ grace_ms: 100 }) });
  await pool.start(["--workers", "2", "--processes", "2"]);
  const task = steps(pool, { does: "block", ms: 60_000 });
  pool.drop("blocks", { max_attempts: 2, timeout_ms: 200, ...task });
  pool.drop("beside", steps(pool, {}));
  await pool.result("beside");
  const error = await pool.error("blocks", 20_000);
  expect(error.attempts).toBe(2);
  expect(starts(pool, "blocks")).toHaveLength(2);
  await endsClean(pool, ["blocks", "beside"], true);
});

it("a handler that ignores its abort signal ends with its process, and counts as timed out", async () => {
  const pool = newPool({ config: steeredConfig({ grace_ms: 100 }) });
  await pool.start(["--workers", "2", "--processes", "1"]);
  const until = join(pool.dir, "never");
  pool.drop("hangs", { max_attempts: 2, timeout_ms: 100, ...steps(pool, { does: "hang", until }) });
  // Beside it in the same process: it is given back, and does not lose an attempt.
  pool.drop("beside", { max_attempts: 1, ...steps(pool, { does: "work", ms: 600 }) });
  const error = await pool.error("hangs");
  expect(error).toMatchObject({ kind: "timeout", attempts: 2 });
  expect(starts(pool, "hangs").map((line) => line.attempt)).toEqual([1, 2]);
  const pids = new Set(starts(pool, "hangs").map((line) => line.pid));
  expect(pids.size).toBe(2);
  expect((await pool.result("beside")).attempts).toBe(1);
  await endsClean(pool, ["hangs", "beside"], true);
});

it("a program that ignores SIGTERM is killed when its time is over", async () => {
  const pool = newPool({ config: steeredConfig({ grace_ms: 200 }) });
  await pool.start();
  const exec = ["sh", programPath("ignores-sigterm.sh")];
  pool.drop("stubborn", { exec, timeout_ms: 300, max_attempts: 1 });
  const error = await pool.error("stubborn");
  expect(error).toMatchObject({ kind: "timeout", code: "ErrTimeout", attempts: 1 });
  await waitFor(() => programsOf(pool).length === 0, {
    timeoutMs: 1000,
    what: "the end of the program",
  });
  await endsClean(pool, ["stubborn"]);
});

it("exit codes say whether another run makes sense", async () => {
  const pool = newPool({ config: steeredConfig() });
  await pool.start();
  const ends = { ok: 0, fails: 1, usage: 64, data: 65, config: 78 };
  for (const [id, code] of Object.entries(ends))
    pool.drop(id, { exec: ["sh", "-c", `echo x >> runs-${id}; exit ${code}`], max_attempts: 2 });
  // 75 asks for a later run and uses up no attempt: more runs than max_attempts allows.
  const later = "echo x >> runs-later; [ $(wc -l < runs-later) -gt 4 ] || exit 75";
  pool.drop("later", { exec: ["sh", "-c", later], max_attempts: 2 });

  const runs = (id: string): number =>
    fs.readFileSync(join(pool.dir, `runs-${id}`), "utf8").split("\n").length - 1;
  expect(await pool.result("ok")).toMatchObject({ exit_code: 0, attempts: 1 });
  expect(await pool.error("fails")).toMatchObject({ kind: "exit", exit_code: 1, attempts: 2 });
  for (const [id, code] of [
    ["usage", 64],
    ["data", 65],
    ["config", 78],
  ] as const)
    expect(await pool.error(id)).toMatchObject({ kind: "exit", exit_code: code, attempts: 1 });
  expect(await pool.result("later")).toMatchObject({ attempts: 1 });
  expect(Object.fromEntries([...Object.keys(ends), "later"].map((id) => [id, runs(id)]))).toEqual({
    ok: 1,
    fails: 2,
    usage: 1,
    data: 1,
    config: 1,
    later: 5,
  });
  await endsClean(pool, [...Object.keys(ends), "later"]);
});

it("max_attempts: N means N runs, with a growing pause between them", async () => {
  const retry = "{max_attempts: 3, backoff_ms: 100, backoff_max_ms: 10000}";
  const pool = newPool({ config: steeredConfig({ retry }) });
  await pool.start();
  for (const n of [1, 2, 4])
    pool.drop(`fails-${n}`, { max_attempts: n, ...steps(pool, { does: "fail" }) });
  pool.drop("default", steps(pool, { does: "fail" }));
  pool.drop("third-time", steps(pool, { does: "fail", good: 3 }));
  pool.drop("refuses", steps(pool, { does: "refuse" }));
  for (const n of [1, 2, 4]) {
    expect(await pool.error(`fails-${n}`)).toMatchObject({ kind: "handler", attempts: n });
    expect(starts(pool, `fails-${n}`).map((line) => line.attempt)).toEqual(
      [1, 2, 3, 4].slice(0, n),
    );
  }
  expect((await pool.error("default")).attempts).toBe(3);
  expect((await pool.result("third-time")).attempts).toBe(3);
  expect((await pool.error("refuses")).attempts).toBe(1);
  // 100, 200, 400 ms with a jitter of a quarter.
  const at = starts(pool, "fails-4").map((line) => line.t);
  for (const [n, atLeast] of [75, 150, 300].entries())
    expect((at[n + 1] ?? 0) - (at[n] ?? 0)).toBeGreaterThanOrEqual(atLeast);
  const all = ["fails-1", "fails-2", "fails-4", "default", "third-time", "refuses"];
  await endsClean(pool, all);
});

it("a graceful stop gives running tasks back without using up the attempt", async () => {
  const pool = newPool({ config: steeredConfig() });
  const until = join(pool.dir, "go");
  await pool.start(["--workers", "3", "--processes", "2"]);
  const await_ = steps(pool, { does: "await", until });
  pool.drop("module", { max_attempts: 1, ...await_ });
  const family = ["sh", programPath("has-family.sh"), join(pool.dir, "trace.jsonl"), "600"];
  pool.drop("program", { max_attempts: 1, exec: family });
  await waitFor(() => trace(pool).length === 2, { what: "both to run" });

  await pool.stop();
  expect(pool.pids()).toEqual([]);
  expect(checkState(pool.state, ["module", "program"], { isDrained: false })).toEqual([]);
  const waiting = fs.readdirSync(pool.processing).sort();
  expect(waiting).toEqual([
    expect.stringMatching(/^module@\w+\.1~ready\.json$/),
    expect.stringMatching(/^program@\w+\.1~ready\.json$/),
  ]);
  expect(pool.events().filter((e) => e["event"] === "released")).toHaveLength(2);

  fs.writeFileSync(until, "");
  await pool.start();
  expect((await pool.result("module")).attempts).toBe(1);
  await waitFor(() => starts(pool, "program").length === 2, { what: "the second run" });
  expect(starts(pool, "program").map((line) => line.attempt)).toEqual([1, 1]);
  await pool.stop();
  expect(pool.pids()).toEqual([]);
});

it("a task that sends SIGTERM to its worker each time fails after max_attempts runs, and keeps nobody from his end", async () => {
  const pool = newPool();
  await pool.start(["--workers", "3", "--processes", "1"]);
  pool.drop("poison", { exec: ["sh", "-c", "kill $PPID; exit 1"], max_attempts: 3 });
  const others = Array.from({ length: 6 }, (_, n) => `other-${n}`);
  for (const id of others) pool.drop(id, { exec: ["sleep", "0.3"], max_attempts: 1 });
  expect(await pool.error("poison")).toMatchObject({ code: "ErrExit", attempts: 3 });
  for (const id of others) expect((await pool.result(id)).attempts).toBe(1);
  await endsClean(pool, ["poison", ...others]);
});

it("a task that sends SIGTERM to its worker until that is gone fails after max_attempts runs", async () => {
  const pool = newPool();
  await pool.start(["--workers", "2", "--processes", "1"]);
  const script = "while kill $PPID; do sleep 0.1; done; sleep 60";
  pool.drop("poison", { exec: ["sh", "-c", script], max_attempts: 2 });
  expect(await pool.error("poison")).toMatchObject({ code: "ErrWorkerDied", attempts: 2 });
  pool.drop("late", { exec: ["true"] });
  await pool.result("late");
  await endsClean(pool, ["poison", "late"], true);
});

it("a worker that is sent SIGTERM takes no more, is replaced at once, and ends with what it runs", async () => {
  const pool = newPool();
  const go = join(pool.dir, "go");
  const run = await pool.start(["--workers", "1", "--processes", "1"]);
  pool.drop("long", { exec: ["sh", "-c", `until [ -e ${go} ]; do sleep 0.1; done`] });
  await waitFor(() => pool.events().some((e) => e["event"] === "started"), { what: "its start" });
  const [leaving] = pool.workers();
  process.kill(leaving?.pid ?? Number.NaN, "SIGTERM");
  await waitFor(() => pool.workers().length === 2, { what: "the next worker" });
  expect(run.stderr()).toContain("was sent SIGTERM: it ends with what it runs, and is replaced");
  pool.drop("next", { exec: ["true"] });
  fs.writeFileSync(go, "");
  expect((await pool.result("long")).attempts).toBe(1);
  await pool.result("next");
  await waitFor(() => pool.workers().length === 1, { what: "the end of the first worker" });
  expect(pool.workers()[0]?.pid).not.toBe(leaving?.pid);
  await endsClean(pool, ["long", "next"]);
});

it("SIGTERM to all processes at once, as when the machine goes down, uses up no attempt", async () => {
  const pool = newPool();
  const run = await pool.start(["--workers", "2", "--processes", "1"]);
  const ids = ["dies", "exits"];
  pool.drop("dies", { exec: ["sleep", "60"], max_attempts: 1 });
  pool.drop("exits", {
    exec: ["sh", "-c", "trap 'exit 3' TERM; sleep 60 & wait"],
    max_attempts: 1,
  });
  await waitFor(() => pool.events().filter((e) => e["event"] === "started").length === 2, {
    what: "both to run",
  });
  const supervisor = pool.supervisor()?.pid;
  for (const pid of pool.pids()) if (pid !== supervisor) process.kill(pid, "SIGTERM");
  process.kill(supervisor ?? Number.NaN, "SIGTERM");
  await run.ended;
  expect(fs.readdirSync(pool.processing).sort()).toEqual(
    ids.map((id) => expect.stringMatching(`^${id}@\\w+\\.1~ready\\.json$`)),
  );
  expect(checkState(pool.state, ids, { isDrained: false })).toEqual([]);
});

it("a module task that blocks the event loop keeps its lease far beyond its time to live", async () => {
  const pool = newPool({ config: steeredConfig({ lease_ttl_ms: 600, heartbeat_ms: 100 }) });
  await pool.start(["--workers", "2", "--processes", "2"]);
  pool.drop("thinks", steps(pool, { does: "block", ms: 2500 }));
  const result = await pool.result("thinks");
  expect(result).toMatchObject({ attempts: 1 });
  expect(starts(pool, "thinks")).toHaveLength(1);
  expect(pool.events().filter((e) => e["event"] === "reclaimed")).toEqual([]);
  await endsClean(pool, ["thinks"]);
});

it("run --drain ends as soon as the last task has settled", async () => {
  const pool = newPool({ config: steeredConfig() });
  for (const id of ["a", "b", "c"]) pool.drop(id, { exec: ["true"] });
  const { ended } = pool.spawn(["run", "--drain"]);
  expect(await ended).toEqual({ exitCode: 0, signal: null });
  const endedAt = Date.now();
  const settled = pool.events().filter((e) => e["event"] === "completed");
  expect(settled).toHaveLength(3);
  // It used to take a second more, for a timer that nobody waited for.
  expect(endedAt - Math.max(...settled.map((e) => Number(e["t"])))).toBeLessThan(timeLimitMs(500));
  expect(checkState(pool.state, ["a", "b", "c"])).toEqual([]);
});

/** Programs of tasks that still live. */
function programsOf(pool: Pool): number[] {
  return pool.pids().filter((pid) => {
    try {
      return fs.readFileSync(`/proc/${pid}/environ`).includes("MAILCHUTE_LEASE=");
    } catch {
      return false;
    }
  });
}
