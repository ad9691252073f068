/** A disk that is full for a while: clear errors, nothing lost, nothing twice, and work goes on when there is room. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { canMount, smallDisk } from "../support/small-disk.ts";
import { poolOnSmallDisk, steeredConfig, steps, trace } from "../support/steered.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

/** Work goes on to the last byte: what happens then is looked at. */
const TO_THE_END = { free_bytes_min: 0 };

/** Processor time that these processes have used so far (ms). */
function cpuMs(pids: readonly number[]): number {
  const perSecond = Number(execFileSync("getconf", ["CLK_TCK"]).toString());
  let ticks = 0;
  for (const pid of pids) {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return (ticks * 1000) / perSecond;
}

describe.skipIf(!canMount())("with a full disk", () => {
  it("refuses a submit with a clear error, and takes it when there is room", async () => {
    const { pool, disk } = poolOnSmallDisk(TO_THE_END);
    disk.fill(0);
    const enqueue = ["enqueue", "--id", "task", "--", "true", "x".repeat(8000)];
    const refused = await pool.run(enqueue);
    expect(refused.code).toBe(74);
    expect(refused.stderr).toContain("ErrIo");
    expect(refused.stderr).toContain("ENOSPC");
    expect(refused.stderr).toContain("make room on the disk");
    expect(fs.readdirSync(pool.inbox)).toEqual([]);
    expect(fs.readdirSync(pool.tmp)).toEqual([]);

    disk.free();
    expect((await pool.run(enqueue)).code).toBe(0);
    expect((await pool.run(["run", "--drain"])).code).toBe(0);
    expect(pool.results().map((r) => r.task_id)).toEqual(["task"]);
    expect(checkState(pool.state, ["task"])).toEqual([]);
  });

  it("keeps finished work until it can settle, runs nothing twice, and does not spin", async () => {
    const { pool, disk } = poolOnSmallDisk(TO_THE_END);
    const supervisor = await pool.start(["--workers", "4", "--processes", "2"]);
    await waitFor(() => pool.workers().length === 2, { what: "two workers" });
    const pids = [supervisor.pid, ...pool.workers().map((w) => w.pid)];
    const until = join(pool.dir, "go");
    const ids = ["settle-1", "settle-2", "settle-3", "settle-4"];
    for (const id of ids) pool.drop(id, steps(pool, { does: "await", until }));
    await waitFor(() => trace(pool).length === 4, { what: "four runs" });
    // Accepted by a move alone, and even that may want room in a directory: these wait.
    const late = ["late-1", "late-2", "late-3"];
    for (const id of late) pool.drop(id, steps(pool, {}));

    disk.fill(0);
    fs.writeFileSync(until, "");
    await waitFor(() => trace(pool).filter((line) => line.what === "end").length >= 4, {
      what: "the ends of the runs",
    });
    await waitFor(() => supervisor.stderr().includes("ENOSPC"), { what: "a word about the disk" });
    const before = cpuMs(pids);
    const watchedMs = 2000;
    const from = performance.now();
    await waitFor(() => performance.now() - from >= watchedMs, { what: "two seconds of it" });
    expect(cpuMs(pids) - before, "ms of processor time in two seconds").toBeLessThan(500);
    expect(pool.pids()).toEqual(expect.arrayContaining(pids));
    expect(pool.results()).toEqual([]);
    expect(checkPlaces(pool, [...ids, ...late])).toEqual([]);

    disk.free();
    for (const id of [...ids, ...late]) expect((await pool.result(id)).attempts).toBe(1);
    // A write that the disk took in part leaves a torn line; its record comes again, whole.
    const analytics = join(pool.state, "analytics");
    await waitFor(() => countWhole(analytics, '"event":"completed"') === 7, {
      what: "the journal to catch up",
    });
    expect(trace(pool).filter((line) => line.what === "start")).toHaveLength(7);
    await pool.stop();
    const lenient = { hadCrashes: true, wroteLate: true };
    expect(checkState(pool.state, [...ids, ...late], lenient)).toEqual([]);
  });

  it("settles although the journals have no room, and writes them when there is", async () => {
    const disk = smallDisk();
    const pool = newPool({ config: steeredConfig(TO_THE_END) });
    fs.mkdirSync(join(disk.dir, "analytics"));
    fs.symlinkSync(join(disk.dir, "analytics"), join(pool.state, "analytics"));
    fs.symlinkSync(join(disk.dir, "leases"), join(pool.state, "supervisor_leases.jsonl"));
    await pool.start(["--workers", "4", "--processes", "2"]);
    pool.drop("before", steps(pool, {}));
    await pool.result("before");
    const ids = Array.from({ length: 60 }, (_, n) => `t-${n}`);
    const all = ["before", ...ids];
    // A write that the disk took in part leaves a torn line; its record comes again, whole.
    const completed = (): number => countWhole(join(disk.dir, "analytics"), '"event":"completed"');
    await waitFor(() => completed() === 1, { what: "its event" });

    disk.fill(0);
    for (const id of ids) pool.drop(id, steps(pool, {}));
    for (const id of ids) await pool.result(id);
    expect(completed(), "events that found room").toBeLessThan(all.length);
    disk.free();
    await waitFor(() => completed() === all.length, { what: "the journal to catch up" });
    await pool.stop();
    expect(pool.results().every((r) => r.attempts === 1)).toBe(true);
    const late = { hadCrashes: true, wroteLate: true };
    expect(checkState(pool.state, all, late)).toEqual([]);
  });

  it("takes back the task of a dead worker, accepts and runs while the disk is full", async () => {
    const { pool, disk } = poolOnSmallDisk(TO_THE_END);
    const supervisor = await pool.start(["--workers", "2", "--processes", "1"]);
    await waitFor(() => pool.workers().length === 1, { what: "a worker" });
    const until = join(pool.dir, "go");
    pool.drop("taken-back", steps(pool, { does: "await", until }));
    await waitFor(() => trace(pool).length === 1, { what: "its run" });
    pool.drop("waits", { ...steps(pool, { does: "await", until }), priority: -1 });
    await waitFor(() => trace(pool).length === 2, { what: "the other run" });
    const [worker] = pool.workers();
    disk.fill(0);
    process.kill(worker?.pid ?? 0, "SIGKILL");

    await waitFor(() => trace(pool).length === 4, { what: "both to run again" });
    fs.writeFileSync(until, "");
    await waitFor(() => trace(pool).length === 6, { what: "both to end" });
    expect(pool.results()).toEqual([]);
    expect(checkPlaces(pool, ["taken-back", "waits"])).toEqual([]);
    disk.free();
    expect((await pool.result("taken-back")).attempts).toBe(2);
    expect((await pool.result("waits")).attempts).toBe(2);
    await waitFor(() => pool.workers().length === 1, { what: "the new worker to say who it is" });
    supervisor.child.kill("SIGTERM");
    await supervisor.ended;
    const lenient = { hadCrashes: true, wroteLate: true };
    expect(checkState(pool.state, ["taken-back", "waits"], lenient)).toEqual([]);
  });

  it("does not start a supervisor that cannot say who it is, and starts it later", async () => {
    const { pool, disk } = poolOnSmallDisk(TO_THE_END);
    pool.drop("waits", steps(pool, {}));
    disk.fill(0);
    const refused = await pool.run(["run", "--drain"]);
    expect(refused.code).toBe(74);
    expect(refused.stderr).toMatch(/ErrIo: cannot write supervisor.json: ENOSPC/);
    expect(checkPlaces(pool, ["waits"])).toEqual([]);
    disk.free();
    expect((await pool.run(["run", "--drain"])).code).toBe(0);
    expect(checkState(pool.state, ["waits"])).toEqual([]);
  });
});

/** What the checker says of the places of these tasks; the journals may lag behind on a full disk. */
function checkPlaces(pool: Pool, ids: readonly string[]): string[] {
  const faults = checkState(pool.state, ids, { isDrained: false, hadCrashes: true });
  return faults.filter((fault) => /in \d+ places|nobody submitted/.test(fault));
}

/** Whole lines of the lifecycle journal that hold `text`. */
function countWhole(analytics: string, text: string): number {
  const lines = fs.readFileSync(join(analytics, "supervisor_lifecycle.jsonl"), "utf8").split("\n");
  return lines.filter((line) => line.includes(text) && line.endsWith("}")).length;
}
