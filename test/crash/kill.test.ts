/** SIGKILL of workers, of the supervisor, of everything: nothing is lost, nothing settles twice, nothing stays behind. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { parseName } from "../../src/core/names.ts";
import { identityOf, parseOwner } from "../../src/host/identity.ts";
import { checkState } from "../support/check-state.ts";
import { onProc } from "../support/needs-proc.ts";
import { newPool, type Pool, type Running } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { starts, steeredConfig, steps, trace, tracePath } from "../support/steered.ts";
import { takeSome } from "../support/take-some.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";
import { IS_WHOLE } from "../support/walks.ts";

takeSome();

const FAMILY = ["sh", programPath("has-family.sh")];

/** A program with a child, a grandchild and a child that left its session. */
function family(pool: Pool, seconds: number): { exec: string[] } {
  return { exec: [...FAMILY, tracePath(pool), String(seconds)] };
}

/** Leases in the environments of living processes of this state tree, by pid. */
function leasesAtWork(pool: Pool): Map<number, string> {
  const leases = new Map<number, string>();
  for (const pid of pool.pids()) {
    try {
      const environ = fs.readFileSync(`/proc/${pid}/environ`, "utf8");
      const lease = /(?:^|\0)MAILCHUTE_LEASE=([^\0]+)/.exec(environ)?.[1];
      if (lease !== undefined) leases.set(pid, lease);
    } catch {
      // It has just ended.
    }
  }
  return leases;
}

/** The pid of the worker process that holds this lease. */
function holderOf(lease: string): number | undefined {
  return parseOwner(lease.split(".")[2] ?? "")?.pid;
}

function workersOf(supervisor: Running, pool: Pool): number[] {
  return pool
    .workers()
    .filter((w) => w.supervisor_pid === supervisor.pid)
    .map((w) => w.pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat[stat.lastIndexOf(")") + 2] !== "Z";
  } catch {
    return false;
  }
}

it("the tasks of a killed worker run again within a second, and nothing of them stays behind", async () => {
  const pool = newPool({ config: steeredConfig() });
  await pool.start(["--workers", "4", "--processes", "2"]);
  await waitFor(() => pool.workers().length === 2, { what: "two workers" });
  const until = join(pool.dir, "go");
  // Two at a time each: one of both kinds is with the worker that dies.
  for (const id of ["module-1", "module-2", "module-3"])
    pool.drop(id, steps(pool, { does: "await", until }));
  pool.drop("program", family(pool, 600));
  await waitFor(() => trace(pool).length === 4, { what: "four runs" });
  const victim = holderOf(starts(pool, "program")[0]?.lease ?? "") ?? 0;
  const hit = trace(pool).filter((line) => holderOf(line.lease) === victim);
  expect(hit.length).toBeGreaterThan(1);
  await waitFor(() => leasesAtWork(pool).size >= 6, { what: "the whole family" });

  const killedAt = Date.now();
  process.kill(victim, "SIGKILL");
  await waitFor(() => hit.every(({ id }) => starts(pool, id).length === 2), {
    what: "the second runs",
  });
  for (const { id } of hit) {
    const second = starts(pool, id)[1];
    expect(second?.attempt).toBe(2);
    expect((second?.t ?? 0) - killedAt, `${id} runs again`).toBeLessThan(timeLimitMs(1000));
  }
  // Checked at once: processes end before their task runs again.
  const old = hit.map((line) => line.lease);
  expect([...leasesAtWork(pool).values()].filter((lease) => old.includes(lease))).toEqual([]);
  for (const line of trace(pool).filter((line) => !hit.some(({ id }) => id === line.id)))
    expect(line.attempt, "tasks of the other worker").toBe(1);

  fs.writeFileSync(until, "");
  for (const id of ["module-1", "module-2", "module-3"]) await pool.result(id);
  await pool.stop();
  expect(
    checkState(pool.state, ["module-1", "module-2", "module-3", "program"], {
      isDrained: false,
      hadCrashes: true,
    }),
  ).toEqual([]);
  expect(pool.pids()).toEqual([]);
});

// Elsewhere a process is dated to the second.
onProc("the next worker does not start in the way of who takes over the tasks", async () => {
  const pool = newPool({ config: steeredConfig() });
  await pool.start(["--workers", "2", "--processes", "2"]);
  await waitFor(() => pool.workers().length === 2, { what: "two workers" });
  const pids = pool.workers().map((w) => w.pid);
  const until = join(pool.dir, "go");
  // Workers that have settled nothing yet are replaced later in any case.
  for (const id of ["one", "other"]) pool.drop(id, steps(pool, { does: "await", until }));
  await waitFor(() => trace(pool).length === 2, { what: "both to run" });
  fs.writeFileSync(until, "");
  for (const id of ["one", "other"]) await pool.result(id);
  pool.drop("module", steps(pool, { does: "await", until: join(pool.dir, "never") }));
  await waitFor(() => starts(pool, "module").length === 1, { what: "the run" });

  // Its start is a mark on the clock that dates processes.
  const mark = spawn("sleep", ["60"], { stdio: "ignore" });
  onTestFinished(() => void mark.kill("SIGKILL"));
  const markTicks = identityOf(mark.pid ?? 0).startTicks;
  process.kill(holderOf(starts(pool, "module")[0]?.lease ?? "") ?? 0, "SIGKILL");
  const next = await waitFor(() => pool.workers().find((w) => !pids.includes(w.pid)), {
    what: "the next worker",
  });
  const ticks = identityOf(next.pid).startTicks - markTicks;
  expect(ticks, "hundredths of a second").toBeGreaterThanOrEqual(4);
});

it("a new supervisor leaves running workers alone, adopts them, and uses them further", async () => {
  const pool = newPool({ config: steeredConfig() });
  const first = await pool.start(["--workers", "2", "--processes", "2"]);
  await waitFor(() => pool.workers().length === 2, { what: "two workers" });
  const workers = new Set(workersOf(first, pool));
  const until = join(pool.dir, "go");
  pool.drop("module", steps(pool, { does: "await", until }));
  pool.drop("program", family(pool, 1.5));
  await waitFor(() => trace(pool).length === 2, { what: "both to run" });
  const before = trace(pool);

  const refused = await pool.run(["run"]);
  expect(refused.code).toBe(4);
  expect(refused.stderr).toContain("ErrSupervisorRunning");

  first.child.kill("SIGKILL");
  // Nobody reads what the orphans print: that must not end them either.
  first.child.stderr?.destroy();
  await waitFor(() => !isAlive(first.pid), { what: "the end of the first" });
  const killedAt = Date.now();
  const second = await pool.start(["--workers", "2", "--processes", "2"]);
  expect(Date.now() - killedAt, "ms to take over").toBeLessThan(timeLimitMs(1000));
  expect(trace(pool).filter((line) => line.what === "start")).toEqual(before);

  fs.writeFileSync(until, "");
  const module = await pool.result("module");
  const program = await pool.result("program");
  expect([module.attempts, program.attempts]).toEqual([1, 1]);
  expect([module.lease, program.lease].sort()).toEqual(before.map((line) => line.lease).sort());
  expect((module.output as { pid: number }).pid).toBe(holderOf(module.lease));

  // Used further: with two slots in all there are no other workers than these two.
  const next = Array.from({ length: 12 }, (_, n) => `next-${n}`);
  for (const id of next) pool.drop(id, steps(pool, { does: "speak" }));
  const pids = new Set<unknown>();
  for (const id of next) pids.add(((await pool.result(id)).output as { pid: number }).pid);
  expect(pids).toEqual(workers);
  expect(workersOf(second, pool)).toEqual([]);
  expect(pool.events().filter((e) => e["event"] === "reclaimed")).toEqual([]);

  await pool.stop();
  await waitFor(() => pool.pids().length === 0, { what: "the end of adopted workers" });
  expect(checkState(pool.state, ["module", "program", ...next])).toEqual([]);
});

it("a drain counts what is settled by workers that it did not start, and says that some of it failed", async () => {
  const pool = newPool();
  const go = join(pool.dir, "go");
  const await_ = `until [ -e ${go} ]; do sleep 0.1; done`;
  const first = await pool.start(["--workers", "2", "--processes", "1"]);
  pool.drop("Ends", { exec: ["sh", "-c", await_] });
  pool.drop("Fails", { exec: ["sh", "-c", `${await_}; exit 1`], max_attempts: 1 });
  const starts = (): number => pool.events().filter((e) => e["event"] === "started").length;
  await waitFor(() => starts() === 2, { what: "both to run" });
  first.child.kill("SIGKILL");
  // Its workers hold its output open.
  await waitFor(() => first.child.signalCode !== null, { what: "the end of the first supervisor" });
  const drain = await pool.start(["--drain", "--no-live", "--workers", "2", "--processes", "1"]);
  const begun = pool.supervisor()?.heartbeat_at;
  // What ends before it looks around for the first time is not its own to count.
  await waitFor(() => pool.supervisor()?.heartbeat_at !== begun, { what: "a second heartbeat" });
  fs.writeFileSync(go, "");
  expect((await drain.ended).exitCode).toBe(1);
  expect(drain.stdout()).toContain("1 completed, 1 failed");
});

it("a new supervisor ends idle workers in surplus, and none that runs something", async () => {
  const pool = newPool({ config: steeredConfig() });
  const first = await pool.start(["--workers", "4", "--processes", "4"]);
  await waitFor(() => pool.workers().length === 4, { what: "four workers" });
  const until = join(pool.dir, "go");
  for (const id of ["a", "b"]) pool.drop(id, steps(pool, { does: "await", until }));
  await waitFor(() => trace(pool).length === 2, { what: "both to run" });
  const busy = new Set(trace(pool).map(({ lease }) => holderOf(lease)));
  first.child.kill("SIGKILL");
  first.child.stderr?.destroy();
  await waitFor(() => !isAlive(first.pid), { what: "the end of the first" });
  await pool.start(["--workers", "2", "--processes", "1"]);
  const alive = (): number[] => pool.workers().flatMap(({ pid }) => (isAlive(pid) ? [pid] : []));
  await waitFor(() => alive().length === busy.size, { what: "the end of the idle ones" });
  expect(new Set(alive())).toEqual(busy);
  fs.writeFileSync(until, "");
  for (const id of ["a", "b"]) expect((await pool.result(id)).attempts).toBe(1);
  await waitFor(() => alive().length === 1, { what: "the end of all but one" });
  await pool.stop();
  expect(checkState(pool.state, ["a", "b"], { hadCrashes: true })).toEqual([]);
});

it("two supervisors that start at once: one runs, the other is refused", async () => {
  const pool = newPool({ config: steeredConfig() });
  const both = [pool.spawn(["run"]), pool.spawn(["run"])];
  const loser = await Promise.race(both.map(async (one) => ({ one, ...(await one.ended) })));
  expect(loser.exitCode).toBe(4);
  const winner = both.find((one) => one !== loser.one);
  pool.drop("task", steps(pool, {}));
  await pool.result("task");
  expect(pool.supervisor()?.pid).toBe(winner?.pid);
  winner?.child.kill("SIGTERM");
  expect((await winner?.ended)?.exitCode).toBe(0);
  expect(checkState(pool.state, ["task"])).toEqual([]);
});

const ROUNDS = IS_WHOLE ? 8 : 4;
const SEEDS = process.env["MAILCHUTE_TEST_SEED"]?.split(",").map(Number) ?? [
  Math.floor(Math.random() * 2 ** 31),
];

it.each(SEEDS)("kills at random moments under load, seed %i", async (seed) => {
  process.stderr.write(`kill.test: MAILCHUTE_TEST_SEED=${seed}\n`);
  const random = seededRandom(seed);
  // Each kill may cost a task a run; none is to run out of them.
  const pool = newPool({
    config: steeredConfig({
      retry: "{max_attempts: 100, backoff_ms: 20, backoff_max_ms: 100}",
      workers: 8,
      processes: 4,
    }),
  });
  const ids: string[] = [];
  const drop = (count: number): void => {
    for (let n = 0; n < count; n++) {
      const id = `t-${String(ids.length).padStart(4, "0")}`;
      ids.push(id);
      const ms = 5 + random.below(60);
      pool.drop(id, random() < 0.2 ? family(pool, 0.15) : steps(pool, { does: "work", ms }));
    }
  };
  let supervisor = await pool.start();
  for (let round = 0; round < ROUNDS; round++) {
    drop(40);
    // A random moment: so many runs after the last one.
    const target = trace(pool).length + 5 + random.below(60);
    await waitFor(() => trace(pool).length >= target || pool.settledCount() === ids.length, {
      what: "work to go on",
      timeoutMs: 20_000,
    });
    const kind = random.pick(["worker", "worker", "supervisor", "all"] as const);
    const held = heldNames(pool);
    if (kind === "worker") {
      const victims = pool.workers().filter((w) => isAlive(w.pid));
      if (victims.length === 0) continue;
      const { pid } = random.pick(victims);
      process.kill(pid, "SIGKILL");
      await isClearedOf(pool, pid, held);
    } else if (kind === "supervisor") {
      await kill(supervisor);
      supervisor = await pool.start();
    } else {
      await killAtOnce(pool);
      supervisor = await pool.start();
      for (const pid of new Set(held.map(holderOf)))
        if (pid !== undefined) await isClearedOf(pool, pid, held);
    }
  }
  await waitFor(() => pool.settledCount() === ids.length, {
    timeoutMs: 40_000,
    what: `${ids.length} records, seed ${seed}`,
  });
  await pool.stop();
  await waitFor(() => pool.pids().length === 0, { what: "the end of all processes" });
  expect(checkState(pool.state, ids, { hadCrashes: true }), `seed ${seed}`).toEqual([]);
  expect(overlaps(pool), `seed ${seed}`).toEqual([]);
  expect(pool.errors()).toEqual([]);
});

/** SIGKILL. Its output may stay open in workers that live on, so its end is looked for among the processes. */
async function kill({ pid }: Running): Promise<void> {
  process.kill(pid, "SIGKILL");
  await waitFor(() => !isAlive(pid), { what: "the end of the supervisor" });
}

/** Leases held now. */
function heldNames(pool: Pool): string[] {
  return fs.readdirSync(pool.processing).flatMap((file) => {
    const name = parseName(file);
    return name?.stage === "w" ? [`${name.submission}.${name.attempt}.${name.token}`] : [];
  });
}

/** Waits until the leases of a dead worker are given to others, and their processes are gone. */
async function isClearedOf(pool: Pool, pid: number, held: readonly string[]): Promise<void> {
  const dead = new Set(held.filter((lease) => holderOf(lease) === pid));
  await waitFor(
    () =>
      !isAlive(pid) &&
      !heldNames(pool).some((lease) => dead.has(lease)) &&
      ![...leasesAtWork(pool).values()].some((lease) => dead.has(lease)),
    { timeoutMs: 2000, what: `the end of all that worker ${pid} had begun` },
  );
}

/** SIGKILL to supervisor and workers, in one go; programs are left to whoever comes next. */
async function killAtOnce(pool: Pool): Promise<void> {
  const programs = leasesAtWork(pool);
  const all = pool.pids().filter((pid) => !programs.has(pid));
  for (const pid of all) if (isAlive(pid)) process.kill(pid, "SIGKILL");
  await waitFor(() => !all.some(isAlive), { what: "the end of all" });
}

/** Runs that went on although the next run of the same task had begun. */
function overlaps(pool: Pool): string[] {
  const latest = new Map<string, number>();
  const faults: string[] = [];
  for (const { what, id, attempt } of trace(pool)) {
    const newest = latest.get(id) ?? 0;
    if (what === "start") latest.set(id, Math.max(newest, attempt));
    if (attempt < newest) faults.push(`${id}: ${what} of run ${attempt} during run ${newest}`);
  }
  return faults;
}
