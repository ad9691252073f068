/** Whose word counts for a run, what a limit covers beside the program itself, and where there can be none. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { onProc } from "../../support/needs-proc.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";

const SPIN = ["sh", "-c", "i=0; while [ $i -lt 50000000 ]; do i=$((i+1)); done"];

onProc("the agent's limit, that of the tree, and a task that lifts both", async () => {
  const agents = `agents: [{name: own, kind: exec, program: sh, args: ["-c", "ulimit -f; ulimit -t"], run_limits: {cpu_ms: 7000}}]`;
  const pool = newPool({
    config: `${QUICK_CONFIG}run_limits: {cpu_ms: 90000, disk_bytes: 1048576}\n${agents}\n`,
  });
  pool.drop("of-agent", { agent: "own", prompt: "x" });
  pool.drop("of-tree", { exec: ["sh", "-c", "ulimit -f; ulimit -t"] });
  pool.drop("lifted", { exec: ["sh", "-c", "ulimit -f; ulimit -t"], run_limits: { cpu_ms: 0 } });
  expect((await pool.run(["run", "--drain"])).code).toBe(0);
  const outputs = Object.fromEntries(pool.results().map((r) => [r.task_id, r.output]));
  const blocks = (65 * 1024 * 1024) / 512;
  expect(outputs).toEqual({
    "of-agent": `${blocks}\n8\n`,
    "of-tree": `${blocks}\n91\n`,
    lifted: `${blocks}\nunlimited\n`,
  });
});

onProc(
  "verify counts together with the program, and a line of a batch has its own limits",
  async () => {
    const pool = newPool();
    pool.drop("checked", { exec: ["true"], verify: [SPIN], run_limits: { cpu_ms: 300 } });
    const lines = [
      { exec: SPIN, run_limits: { cpu_ms: 300 } },
      { exec: ["echo", "fine"], run_limits: { cpu_ms: 300 } },
    ];
    const text = lines.map((line) => JSON.stringify(line)).join("\n");
    fs.writeFileSync(join(pool.inbox, "lines.ndjson"), `${text}\n`);
    await pool.run(["run", "--drain"]);
    expect(await pool.error("checked")).toMatchObject({ kind: "cpu", code: "ErrCpuLimit" });
    const results = fs
      .readFileSync(join(pool.outbox, "lines_results.ndjson"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(results).toHaveLength(2);
    expect(results.find(({ line }) => line === 1)).toMatchObject({ kind: "cpu" });
    expect(results.find(({ line }) => line === 2)).toMatchObject({ output: "fine\n" });
  },
);

test("a function has no limits: its task is refused, and limits of the tree leave it alone", async () => {
  const agents = `agents: [{name: f, kind: module, module: ./f.mjs}]`;
  const pool = newPool({ config: `${QUICK_CONFIG}run_limits: {processes: 1}\n${agents}\n` });
  fs.writeFileSync(join(pool.state, "f.mjs"), "export default () => 'fine';\n");
  pool.drop("plain", { agent: "f", prompt: "x" });
  pool.drop("asks", { agent: "f", prompt: "x", run_limits: { memory_bytes: 2 ** 30 } });
  await pool.run(["run", "--drain"]);
  expect(await pool.result("plain")).toMatchObject({ output: "fine" });
  const error = await pool.error("asks");
  expect(error).toMatchObject({ kind: "invalid", code: "ErrInvalidTask", attempts: 1 });
  expect(error.error).toContain("the agent f is a function");
});

test.each([
  ["run_limits: {memory_bytes: 2}", "run_limits.memory_bytes: 2 is too little"],
  ["run_limits: {memory: 2GB}", 'did you mean "memory_bytes"'],
  ["run_limits: {memory_bytes: 2GB}", "run_limits.memory_bytes"],
  ["run_limits: 5", "run_limits"],
  ["run_limits: {output_bytes: 5000}", 'unknown setting "output_bytes" in run_limits'],
  [
    "agents: [{name: a, kind: exec, program: sh, run_limits: {disk_bytes: 9}}]",
    "a: run_limits.disk_bytes: 9 is too little",
  ],
  [
    "agents: [{name: a, kind: module, module: ./a.mjs, run_limits: {cpu_ms: 9}}]",
    "a is of kind module, and run_limits are for programs",
  ],
])("config %s is refused, and the message names it", async (config, why) => {
  const pool = newPool({ config: `${config}\n` });
  const { code, stderr } = await pool.run(["config"]);
  expect(code).not.toBe(0);
  expect(stderr.replace(/\s+/g, " ")).toContain(why);
});
