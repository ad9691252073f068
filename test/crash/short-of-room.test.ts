/** A disk that is nearly full: nothing new starts, what runs settles, everybody says why, and it goes on by itself. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import type { Pool } from "../support/pool.ts";
import { canMount } from "../support/small-disk.ts";
import { poolOnSmallDisk, starts, steps, trace } from "../support/steered.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

/** Of 4 KiB: less than an eighth of the disk, and room enough for what is to settle. */
const PAGES_LEFT = 24;

const isStopped = (pool: Pool): boolean => pool.supervisor()?.intake_stopped?.reason === "disk";

describe.skipIf(!canMount())("with too little room on the disk", () => {
  it("nothing new starts, what runs settles, commands work, and it goes on when there is room", async () => {
    const { pool, disk } = poolOnSmallDisk();
    const supervisor = await pool.start();
    const until = join(pool.dir, "go");
    pool.drop("runs", steps(pool, { does: "await", until }));
    await waitFor(() => starts(pool, "runs").length === 1, { what: "its run" });
    disk.fill(PAGES_LEFT);
    await waitFor(() => isStopped(pool), { what: "the intake to stop" });
    pool.drop("late", steps(pool, {}));
    const waiting = pool.spawn(["wait", "late"]);
    await waitFor(() => waiting.stderr().includes("intake stopped: disk"), {
      what: "the reason that wait gives",
    });
    fs.writeFileSync(until, "");
    expect((await pool.result("runs")).attempts).toBe(1);
    expect((await pool.run(["set-workers", "3", "--wait"])).code).toBe(0);
    const status = await pool.run(["status"]);
    expect(status.stdout).toMatch(/intake\s+stopped:\s+disk:[\s\S]* \d+\s+KiB\s+free/);
    expect(status.stdout).toContain("free_bytes_min");
    const { supervisor: view } = JSON.parse((await pool.run(["status", "--json"])).stdout) as {
      supervisor: { document: { intake_stopped: { reason: string; free_bytes: number } } };
    };
    expect(view.document.intake_stopped).toMatchObject({ reason: "disk" });
    expect(fs.readdirSync(pool.inbox)).toEqual(["late.json"]);
    expect(starts(pool, "late")).toEqual([]);

    disk.free();
    expect((await pool.result("late")).attempts).toBe(1);
    expect((await waiting.ended).exitCode).toBe(0);
    await waitFor(() => !isStopped(pool), { what: "the intake to go on" });
    await pool.stop();
    expect(supervisor.stderr()).toContain("intake stopped: disk");
    const told = (records: Record<string, unknown>[], key: string): unknown[] =>
      records.map((one) => one[key]).filter((name) => String(name).startsWith("intake_"));
    expect(told(pool.events(), "event")).toEqual(["intake_stopped", "intake_resumed"]);
    expect(told(pool.alerts(), "alert")).toEqual(["intake_stopped", "intake_resumed"]);
    expect(checkState(pool.state, ["runs", "late"])).toEqual([]);
  });

  it("for files it is the same, and it says so", async () => {
    const { pool, disk } = poolOnSmallDisk({}, 400);
    await pool.start();
    disk.fillFiles(45);
    await waitFor(() => isStopped(pool), { what: "the intake to stop" });
    pool.drop("late", steps(pool, {}));
    const status = await pool.run(["status"]);
    expect(status.stdout).toMatch(
      /intake\s+stopped:\s+disk:[\s\S]* \d+\s+files\s+free,\s+and\s+nothing\s+new\s+starts\s+below\s+55\s+files/,
    );
    expect(
      pool
        .alerts()
        .map((one) => String(one["message"]))
        .join(),
    ).toContain("(inodes)");
    disk.free();
    expect((await pool.result("late")).attempts).toBe(1);
    await pool.stop();
  });

  it.each(["a program", "a function"])(
    "%s that writes on has its output taken away, waits for room, and has used up no attempt",
    async (what) => {
      const { pool, disk } = poolOnSmallDisk({ workers: 2 });
      const [once, go] = [join(pool.dir, "once"), join(pool.dir, "go")];
      fs.writeFileSync(
        join(pool.dir, "noisy.mjs"),
        `import fs from "node:fs";
export default async (_task, { log }) => {
  if (fs.existsSync(${JSON.stringify(once)})) return;
  fs.writeFileSync(${JSON.stringify(once)}, "");
  for (;;) { log("x".repeat(4000)); await new Promise((next) => setTimeout(next, 1)); }
};\n`,
      );
      fs.appendFileSync(
        join(pool.state, "config.yaml"),
        `  - {name: noisy, kind: module, module: ${join(pool.dir, "noisy.mjs")}}\n`,
      );
      await pool.start();
      const quiet = `echo begins; until [ -e ${go} ]; do sleep 0.1; done; echo ends`;
      pool.drop("quiet", { exec: ["sh", "-c", quiet], max_attempts: 1 });
      const noisy = `[ -e ${once} ] && exit; : > ${once}; while :; do head -c 8000 /dev/zero; sleep 0.01; done`;
      pool.drop("noisy", {
        ...(what === "a program" ? { exec: ["sh", "-c", noisy] } : { agent: "noisy", title: "t" }),
        max_attempts: 1,
      });
      expect((await pool.result("noisy")).attempts).toBe(1);
      const told = pool.events().filter((event) => event["event"] === "released");
      expect(told).toMatchObject([{ task_id: "noisy", next_attempt: 1 }]);
      expect(told[0]?.["error"]).toContain("the disk is nearly full");
      expect(fs.statfsSync(disk.dir).bavail * 4096).toBeGreaterThan(300_000);
      fs.writeFileSync(go, "");
      expect(await pool.result("quiet")).toMatchObject({ attempts: 1, output: "begins\nends\n" });
      await pool.stop();
      expect(checkState(pool.state, ["quiet", "noisy"])).toEqual([]);
    },
  );

  it("a drain goes on until there was room for all of it", async () => {
    const { pool, disk } = poolOnSmallDisk();
    disk.fill(PAGES_LEFT);
    pool.drop("waits", steps(pool, {}));
    const drain = pool.spawn(["run", "--drain"]);
    await waitFor(() => isStopped(pool), { what: "the intake to stop" });
    const from = performance.now();
    await waitFor(() => performance.now() - from >= 1000, { what: "a second of it" });
    expect(drain.child.exitCode).toBeNull();
    expect(trace(pool)).toEqual([]);
    disk.free();
    expect((await drain.ended).exitCode).toBe(0);
    expect(pool.results().map((record) => record.task_id)).toEqual(["waits"]);
  });

  it("a worker without a supervisor, and a batch that runs, start nothing more either", async () => {
    const { pool, disk } = poolOnSmallDisk({ batch_concurrency: 1, processes: 1 });
    const supervisor = await pool.start();
    const until = join(pool.dir, "go");
    const lines = [steps(pool, { does: "await", until }), steps(pool, {}), steps(pool, {})];
    const batch = lines.map((one) => `${JSON.stringify(one)}\n`).join("");
    fs.writeFileSync(join(pool.inbox, "b.ndjson"), batch);
    await waitFor(() => starts(pool, "b#1").length === 1, { what: "its first line" });
    disk.fill(PAGES_LEFT);
    await waitFor(() => isStopped(pool), { what: "the intake to stop" });
    supervisor.child.kill("SIGKILL");
    await waitFor(() => supervisor.child.signalCode !== null, { what: "the end of it" });
    const from = performance.now();
    await waitFor(() => performance.now() - from >= 1000, { what: "a second of it" });
    fs.writeFileSync(until, "");
    await waitFor(() => trace(pool).length === 2, { what: "the end of the line that ran" });
    const later = performance.now();
    await waitFor(() => performance.now() - later >= 500, { what: "half a second of it" });
    expect(trace(pool)).toHaveLength(2);
    disk.free();
    await waitFor(() => starts(pool, "b#3").length === 1, { what: "its last line" });
    const record = join(pool.outbox, "b_result.json");
    await waitFor(() => fs.existsSync(record), { what: "its record" });
    expect(trace(pool)).toHaveLength(6);
  });
});
