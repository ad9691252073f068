/** What a program used, seen from outside: its time and memory, with those of the processes below it, ended or not. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { UsageWatch } from "../../src/agents/program-watch.ts";
import type { RunUsage } from "../../src/core/run-usage.ts";
import { readUsage } from "../../src/host/process-usage.ts";
import { onProc } from "../support/needs-proc.ts";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const MIB = 1024 * 1024;
/** Takes 100 MiB for a moment, keeps 40, and 0.2 s of processor time. */
const BURN = `
  let big = Buffer.alloc(100 * ${MIB}, 1); const kept = Buffer.alloc(40 * ${MIB}, 1); big = undefined;
  while (process.cpuUsage().user + process.cpuUsage().system < 200_000);`;
const STAY = "setInterval(() => kept.length, 1000);";
/** One child burns and ends, another one burns and stays. */
const PARENT = `
  const { spawn, spawnSync } = require("node:child_process");
  spawnSync(process.execPath, ["-e", ${JSON.stringify(BURN)}]);
  const child = spawn(process.execPath, ["-e", ${JSON.stringify(`${BURN} console.log("ready"); ${STAY}`)}]);
  child.stdout.on("data", () => console.log("ready"));`;

const least = (n: number): unknown => expect.toSatisfy((value) => value >= n);

async function ready(script: string): Promise<number> {
  const child = spawn(process.execPath, ["-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const pid = child.pid ?? 0;
  onTestFinished(() => void process.kill(-pid, "SIGKILL"));
  await once(child.stdout, "data");
  return pid;
}

onProc("a program's own time, and the most memory that it had", async () => {
  const pid = await ready(`${BURN} console.log("ready"); ${STAY}`);
  const sum: RunUsage = {};
  const watch = new UsageWatch(pid, sum);
  watch.look();
  watch.close();
  expect(sum.cpu_ms).toBeGreaterThanOrEqual(180);
  expect(sum.peak_memory_bytes).toBeGreaterThan(140 * MIB);
});

onProc("the processes below it count, also those that have ended and were waited for", async () => {
  const usage = readUsage(await ready(PARENT));
  expect(usage?.cpuMs).toBeGreaterThanOrEqual(380);
  expect(usage?.memoryBytes).toBeGreaterThan(140 * MIB);
});

onProc("several programs of a run: times add up, of memory the greatest counts", async () => {
  const sum: RunUsage = { cpu_ms: 1_000_000, peak_memory_bytes: 7 };
  const watch = new UsageWatch(await ready(`${BURN} console.log("ready"); ${STAY}`), sum);
  watch.look();
  watch.close();
  expect(sum.cpu_ms).toBeGreaterThanOrEqual(1_000_180);
  expect(sum.peak_memory_bytes).toBeGreaterThan(140 * MIB);
});

test("of a program that has ended before the first look nothing is said", async () => {
  const child = spawn("true");
  await once(child, "exit");
  const sum: RunUsage = {};
  const watch = new UsageWatch(child.pid ?? 0, sum);
  watch.look();
  watch.close();
  expect(sum).toEqual({});
});

onProc("record, journal, show and stats say what each run used", async () => {
  const pool = newPool();
  await pool.start();
  const file = join(pool.dir, "ready");
  const write = `require("node:fs").writeFileSync(${JSON.stringify(file)}, "");`;
  const exec = [process.execPath, "-e", `${BURN} ${write} ${STAY}`];
  pool.drop("used", { exec });
  await waitFor(() => fs.existsSync(file), { what: "its memory" });
  await pool.stop();
  fs.rmSync(file);
  await pool.start();
  await waitFor(() => fs.existsSync(file), { what: "its second run" });
  await pool.run(["cancel", "used"]);
  const record = await pool.error("used");
  expect(record.cpu_ms).toBeGreaterThanOrEqual(180);
  expect(record.peak_memory_bytes).toBeGreaterThan(140 * MIB);
  const of = (name: string) =>
    pool.events().find(({ event, task_id: id }) => event === name && id === "used");
  expect(of("released")).toMatchObject({ cpu_ms: least(180), duration_ms: least(180) });
  const { cpu_ms, peak_memory_bytes } = record;
  expect(of("completed")).toMatchObject({ cpu_ms, peak_memory_bytes });
  const { stdout } = await pool.run(["show", "used"]);
  expect(stdout).toMatch(/^used +\d.* of CPU, up to \d+ MiB of memory$/m);
  const stats = await pool.run(["stats", "--json"]);
  const [row] = JSON.parse(stats.stdout).rows;
  expect(row.cpu_ms).toBeGreaterThanOrEqual((cpu_ms ?? 0) + 180);
  expect(row.peak_memory_bytes).toBeGreaterThanOrEqual(peak_memory_bytes ?? 0);
});
