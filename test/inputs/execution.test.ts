/** What a task may make us do: run its argv as it stands, where it is allowed to, with no more than it needs to know. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { steps } from "../support/steered.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
const SECRET = "hunter2-do-not-tell";

function withRoots(pool: Pool, roots: readonly string[]): void {
  const config = `${QUICK_CONFIG}roots: ${JSON.stringify(roots)}\n`;
  fs.writeFileSync(join(pool.state, "config.yaml"), config);
}

describe("the program of a task", () => {
  it("gets its arguments as they stand: no shell looks at them", async () => {
    const pool = newPool();
    await pool.start();
    const words = [
      "$(touch pwned)",
      "`id`",
      "; rm -rf *",
      "&& x",
      "* ?",
      "$HOME",
      "a\nb",
      "é 🚀",
      "",
    ];
    pool.drop("argv", { exec: ["printf", "[%s]", ...words] });
    expect((await pool.result("argv")).output).toBe(words.map((word) => `[${word}]`).join(""));
    pool.drop("name", { exec: ["echo pwned; echo"] });
    expect(await pool.error("name")).toMatchObject({ kind: "spawn", attempts: 1 });
  });

  it("sees of our environment what programs need, its own variables, and nothing else", async () => {
    const pool = newPool({ env: { API_TOKEN: SECRET, LC_ALL: "C.UTF-8", NODE_OPTIONS: "" } });
    await pool.start();
    pool.drop("env", {
      exec: ["env", "-0"],
      env: { GREETING: "hello", PATH: "/usr/bin:/bin", MAILCHUTE_TASK_ID: "forged" },
    });
    const result = await pool.result("env");
    const pairs = String(result.output).split("\0").slice(0, -1);
    const env = new Map(pairs.map((pair) => pair.split(/=(.*)/s, 2) as [string, string]));
    expect(env.get("GREETING")).toBe("hello");
    expect(env.get("PATH")).toBe("/usr/bin:/bin");
    expect(env.get("LC_ALL")).toBe("C.UTF-8");
    expect(env.get("MAILCHUTE_TASK_ID")).toBe("env");
    expect(env.get("MAILCHUTE_ATTEMPT")).toBe("1");
    expect(env.get("MAILCHUTE_LEASE")).toBe(result.lease);
    const allowed =
      /^(?:PATH|HOME|USER|LOGNAME|SHELL|TZ|TMPDIR|TERM|LANG|LANGUAGE|LC_[A-Z]+|XDG_[A-Z_]+|GREETING|MAILCHUTE_(?:TASK_ID|TASK_FILE|ATTEMPT|LEASE|RESULT_FILE|PROGRESS_FILE|STATE))$/;
    expect([...env.keys()].filter((name) => !allowed.test(name))).toEqual([]);
    expect(JSON.stringify(result)).not.toContain(SECRET);
  });

  it("may take away and overwrite the task file it is told of: that is a copy", async () => {
    const pool = newPool();
    await pool.start();
    const script = (what: string): string[] => [
      "sh",
      "-c",
      `${what} "$MAILCHUTE_TASK_FILE"; echo end`,
    ];
    pool.drop("removed", { exec: script("rm") });
    pool.drop("emptied", { exec: script(": >"), title: "kept" });
    expect((await pool.result("removed")).output).toBe("end\n");
    expect(await pool.result("emptied")).toMatchObject({
      output: "end\n",
      task: { title: "kept" },
    });
  });

  it("has its stdin closed", async () => {
    const pool = newPool();
    await pool.start();
    pool.drop("stdin", { exec: ["sh", "-c", "cat; echo end"], timeout_ms: 5000 });
    expect((await pool.result("stdin")).output).toBe("end\n");
  });

  it("leaves no secret of its task in a journal", async () => {
    const pool = newPool();
    await pool.start();
    const env = { PASSWORD: SECRET };
    const payload = { token: SECRET };
    pool.drop("secret", { exec: ["true"], prompt: SECRET, env, payload });
    pool.drop("wrong", { exec: ["sh", "-c", "exit 64", SECRET], env, payload });
    pool.drop("missing", { exec: ["/nowhere/program", SECRET], env, payload });
    pool.drop("typo", { exec: ["true"], env: { PASSWORD: { value: SECRET } } });
    await pool.result("secret");
    for (const id of ["wrong", "missing", "typo"]) await pool.error(id);
    await pool.stop();
    const lines = [...pool.events(), ...pool.leases(), ...pool.alerts()];
    expect(lines.length).toBeGreaterThan(10);
    expect(lines.filter((line) => JSON.stringify(line).includes(SECRET))).toEqual([]);
  });
});

describe("what a program puts in the place of our files", () => {
  it("keeps neither its worker nor anybody who looks waiting", async () => {
    const pool = newPool({ config: QUICK_CONFIG.replace("workers: 4", "workers: 1") });
    await pool.start(["--processes", "1"]);
    const inRunDir = (script: string): string[] => [
      "sh",
      "-c",
      `cd "$(dirname "$MAILCHUTE_RESULT_FILE")" && ${script}`,
    ];
    const pipe = (...names: string[]): string =>
      `rm -f ${names.join(" ")} && mkfifo ${names.join(" ")}`;
    const verify = ["true"];
    const tasks: [id: string, task: object][] = [
      ["log", { exec: inRunDir(pipe("stdout.log", "stderr.log")) }],
      ["link", { exec: inRunDir("rm stdout.log && ln -s /dev/zero stdout.log") }],
      ["result", { exec: inRunDir(pipe("result.json")) }],
      ["words", { exec: inRunDir(`${pipe("stdout.log", "stderr.log")}; exit 1`), max_attempts: 1 }],
      ["verify", { exec: inRunDir(pipe("verify.log")), verify, max_attempts: 1 }],
      ["task", { exec: inRunDir(pipe("task.json", "claim")), verify, max_attempts: 1 }],
    ];
    for (const [id, task] of tasks) pool.drop(id, { ...task });
    for (const id of ["log", "link"])
      expect(await pool.result(id)).toMatchObject({ output: "", verdict: "unknown" });
    expect(await pool.result("result")).toMatchObject({ output: "", verdict: "unknown" });
    expect((await pool.error("words")).error).toContain("exit code 1");
    expect((await pool.error("verify")).error).toContain("verify.log");
    expect((await pool.error("task")).error).toContain("task.json");
    for (const [id] of tasks) expect((await pool.run(["logs", id])).stdout).toBe("");
    pool.drop("after", { exec: ["echo", "done"] });
    expect((await pool.result("after")).output).toBe("done\n");
  });
});

describe("where a program runs", () => {
  it("is resolved without links and must lie under an allowed root", async () => {
    const pool = newPool();
    const allowed = join(pool.dir, "allowed");
    const outside = join(pool.dir, "allowed-not");
    for (const dir of [allowed, outside, join(allowed, "inner")]) fs.mkdirSync(dir);
    fs.symlinkSync(outside, join(allowed, "link-out"));
    fs.symlinkSync(join(allowed, "inner"), join(pool.dir, "link-in"));
    withRoots(pool, [allowed]);
    await pool.start();

    const pwd = { exec: ["pwd", "-P"] };
    pool.drop("root", { ...pwd, cwd: allowed });
    pool.drop("inner", { ...pwd, metadata: { worktree: join(allowed, "inner") } });
    pool.drop("link-in", { ...pwd, cwd: join(pool.dir, "link-in") });
    expect((await pool.result("root")).output).toBe(`${allowed}\n`);
    expect((await pool.result("inner")).output).toBe(`${join(allowed, "inner")}\n`);
    expect((await pool.result("link-in")).output).toBe(`${join(allowed, "inner")}\n`);

    const places: Record<string, Record<string, unknown>> = {
      outside: { cwd: outside },
      "link-out": { cwd: join(allowed, "link-out") },
      "worktree-out": { metadata: { worktree: join(allowed, "link-out") } },
      dots: { cwd: `${allowed}/inner/../../allowed-not` },
      default: {},
    };
    for (const [id, place] of Object.entries(places)) pool.drop(id, { ...pwd, ...place });
    for (const id of Object.keys(places)) {
      const record = await pool.error(id);
      expect(record, id).toMatchObject({ kind: "spawn", attempts: 1 });
      expect(record.error, id).toContain("is not under an allowed root");
    }
    pool.drop("gone", { ...pwd, cwd: join(allowed, "missing") });
    expect(await pool.error("gone")).toMatchObject({ kind: "spawn" });
  });
});

it("a program, and what verifies it, run where the state tree is, wherever the pool was started", async () => {
  const pool = newPool();
  fs.mkdirSync(join(pool.dir, "sub"));
  const verify = ["sh", "-c", "pwd -P > ../verified"];
  pool.drop("default", { exec: ["pwd", "-P"] });
  pool.drop("relative", { exec: ["pwd", "-P"], cwd: "sub", verify });
  pool.drop("worktree", { exec: ["pwd", "-P"], metadata: { worktree: "./sub/../sub" } });
  const run = spawn(process.execPath, [LAUNCHER, "run", "--drain", "--state", pool.state], {
    cwd: "/",
    stdio: "ignore",
  });
  expect(await once(run, "close")).toEqual([0, null]);
  expect((await pool.result("default")).output).toBe(`${pool.dir}\n`);
  for (const id of ["relative", "worktree"])
    expect((await pool.result(id)).output).toBe(`${join(pool.dir, "sub")}\n`);
  expect(fs.readFileSync(join(pool.dir, "verified"), "utf8")).toBe(`${join(pool.dir, "sub")}\n`);
});

describe("limits", () => {
  it("on time and on output end a program with its children", async () => {
    const config = `${QUICK_CONFIG}output_bytes_max: 100000\n`;
    const pool = newPool({ config });
    await pool.start();
    const one = { max_attempts: 1 };
    pool.drop("endless", { exec: ["sh", "-c", "sleep 300 & sleep 300"], timeout_ms: 200, ...one });
    pool.drop("noisy", { exec: ["sh", "-c", "yes | cat"], ...one });
    expect(await pool.error("endless")).toMatchObject({ kind: "timeout" });
    expect(await pool.error("noisy")).toMatchObject({ kind: "output", attempts: 1 });
    const own = [pool.supervisor()?.pid, ...pool.workers().map((worker) => worker.pid)];
    expect(pool.pids().filter((pid) => !own.includes(pid))).toEqual([]);
  });

  it("on output holds for all that a run writes, however fast", async () => {
    const max = 20_000_000;
    const module = programPath("steered-handler.mjs");
    const agents = `agents: [{name: steered, kind: module, module: ${module}, default: true}]`;
    const pool = newPool({ config: `${QUICK_CONFIG}output_bytes_max: ${max}\n${agents}\n` });
    await pool.start();
    const endless = "while :; do head -c 1000000 /dev/zero; done";
    const beside = 'dir=$(dirname "$MAILCHUTE_TASK_FILE"); mkdir $dir/more';
    const programs: Record<string, string> = {
      log: `trap "" TERM; ${endless}`,
      both: `trap "" TERM; while :; do head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; done`,
      beside: `${beside}; ${endless} > $dir/more/file`,
      quick: "head -c 30000000 /dev/zero",
      within: `${beside}; head -c 6000000 /dev/zero | tee $dir/more/file; echo done >&2`,
    };
    for (const [id, script] of Object.entries(programs))
      pool.drop(id, { exec: ["sh", "-c", script], max_attempts: 1 });
    pool.drop("handler", steps(pool, { does: "log" }));
    const folderBytes: Record<string, number> = {};
    for (const id of ["log", "both", "beside", "quick", "handler"]) {
      const error = await pool.error(id);
      expect(error, id).toMatchObject({ kind: "output", code: "ErrOutputLimit", attempts: 1 });
      folderBytes[id] = bytesIn(join(pool.state, "runs", String(error.run)));
    }
    const within = await pool.result("within");
    expect(bytesIn(join(pool.state, "runs", String(within.run)))).toBeGreaterThan(12_000_000);
    // The copy of the task comes on top.
    for (const [id, bytes] of Object.entries(folderBytes))
      expect(bytes, id).toBeLessThan(max + 10_000);
  });
});

function bytesIn(dir: string): number {
  const names = fs.readdirSync(dir, { recursive: true, withFileTypes: true });
  const files = names.filter((one) => one.isFile());
  return files.reduce((sum, one) => sum + fs.statSync(join(one.parentPath, one.name)).size, 0);
}
