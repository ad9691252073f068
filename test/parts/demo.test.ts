/** The demo as `npm start` runs it: real processes, its own counts, and nothing left behind however it ends. */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { homeIn, personAt } from "../support/persons-folders.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { takeSome } from "../support/take-some.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));

interface Demo {
  child: ChildProcess;
  stdout(): string;
  stderr(): string;
  ended: Promise<number | null>;
}

/** Its temporary directory lies in the pool's, whose `pids` then finds all that belongs to it. */
function startDemo(pool: Pool, args: readonly string[] = [], path = ""): Demo {
  const child = spawn(process.execPath, [LAUNCHER, "demo", ...args], {
    cwd: pool.dir,
    env: {
      ...personAt(homeIn(pool)),
      TMPDIR: pool.dir,
      PATH: `${path}${process.env["PATH"] ?? ""}`,
    },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, stdout: () => stdout, stderr: () => stderr, ended };
}

function trees(pool: Pool): string[] {
  return fs.readdirSync(pool.dir).filter((name) => name.startsWith("mailchute-demo-"));
}

test("it plays to its end in less than 20 s, with the counts it expects", async () => {
  const pool = newPool();
  const startedMs = performance.now();
  const demo = startDemo(pool);
  expect(await demo.ended).toBe(0);
  expect(performance.now() - startedMs).toBeLessThan(timeLimitMs(20_000));
  expect(demo.stderr()).toBe("");
  expect(demo.stdout()).toContain("All counts are as expected: 12 files dropped, none lost");
  expect(demo.stdout()).toMatch(/\$ kill -9 \d+\n/);
  expect(pool.pids()).toEqual([]);
  expect(fs.readdirSync(homeIn(pool))).toEqual([]);
  expect(trees(pool)).toEqual([]);
});

test("with --json one document tells the counts, and that another worker took over", async () => {
  const pool = newPool();
  const demo = startDemo(pool, ["--json"]);
  expect(await demo.ended).toBe(0);
  const report = JSON.parse(demo.stdout());
  expect(report).toMatchObject({ ok: true, state_dir: null, faults: [] });
  expect(report.counts.length).toBeGreaterThanOrEqual(12);
  for (const { expected, found } of report.counts) expect(found).toBe(expected);
  expect(report.killed.taken_over_by).not.toBe(report.killed.worker);
  expect(report.killed.programs_left).toBe(0);
});

test("--keep leaves the state tree, and its lines fit 80 columns", async () => {
  const pool = newPool();
  const demo = startDemo(pool, ["--keep"]);
  expect(await demo.ended).toBe(0);
  const [tree = ""] = trees(pool);
  expect(
    fs.existsSync(join(pool.dir, tree, "state", "mailbox", "outbox", "hello_result.json")),
  ).toBe(true);
  const text = demo.stdout().replaceAll(join(pool.dir, tree), "/tmp/mailchute-demo-XXXXXX");
  for (const line of text.split("\n")) expect(line.length, line).toBeLessThanOrEqual(80);
  expect(pool.pids()).toEqual([]);
  expect(fs.readdirSync(homeIn(pool))).toEqual([]);
});

test("a count that is off ends in exit code 1 and is named", async () => {
  const pool = newPool();
  // The program that is to fail succeeds on this machine.
  const bin = join(pool.dir, "bin");
  fs.mkdirSync(bin);
  fs.writeFileSync(join(bin, "false"), "#!/bin/sh\nexit 0\n", { mode: 0o755 });
  const demo = startDemo(pool, [], `${bin}:`);
  expect(await demo.ended).toBe(1);
  expect(demo.stderr()).toContain("wrong: failed for good: expected 2, found 1");
  expect(demo.stdout()).toMatch(/OFF +1 {2}failed for good, expected 2/);
  expect(pool.pids()).toEqual([]);
  expect(fs.readdirSync(homeIn(pool))).toEqual([]);
});

test.each([
  { signal: "SIGINT", at: "1. A supervisor" },
  { signal: "SIGTERM", at: "2. Tasks are JSON files" },
  { signal: "SIGINT", at: "ls mailbox/processing" },
  { signal: "SIGHUP", at: "4. Commands are files too" },
] as const)("$signal at “$at” leaves nothing behind", async ({ signal, at }) => {
  const pool = newPool();
  const demo = startDemo(pool);
  await waitFor(() => demo.stdout().includes(at), { what: at, timeoutMs: 20_000 });
  demo.child.kill(signal);
  expect(await demo.ended).toBe(130);
  expect(pool.pids()).toEqual([]);
  expect(fs.readdirSync(homeIn(pool))).toEqual([]);
  expect(trees(pool)).toEqual([]);
});

test("a second Ctrl-C ends it at once, and still nothing is left", async () => {
  const pool = newPool();
  const demo = startDemo(pool);
  await waitFor(() => demo.stdout().includes("ls mailbox/processing"), {
    what: "a running task",
    timeoutMs: 20_000,
  });
  demo.child.kill("SIGINT");
  demo.child.kill("SIGTERM");
  expect(await demo.ended).toBe(130);
  await waitFor(() => pool.pids().length === 0, { what: "the end of all processes" });
  expect(trees(pool)).toEqual([]);
});

test("a reader that goes away does not keep it from tidying up", async () => {
  const pool = newPool();
  const demo = startDemo(pool);
  await waitFor(() => demo.stdout().includes("1. A supervisor"), { what: "its first words" });
  demo.child.stdout?.destroy();
  await demo.ended;
  expect(pool.pids()).toEqual([]);
  expect(fs.readdirSync(homeIn(pool))).toEqual([]);
  expect(trees(pool)).toEqual([]);
});
