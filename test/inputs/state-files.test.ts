/** What other programs put in the place of the files that a pool keeps for itself: work goes on, and no process breaks. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { thisPlace } from "../../src/host/identity.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";
import { sampleOf } from "../support/walks.ts";

takeSome();

const task = { exec: ["true"] };
const HASH = "0123456789abcdef";

function put(pool: Pool, path: string, content: string): void {
  fs.mkdirSync(dirname(join(pool.state, path)), { recursive: true });
  fs.writeFileSync(join(pool.state, path), content);
}

const RUBBISH = [
  "{}",
  '{"pid":1}',
  '{"pid":"x","place":5,"start_ticks":{}}',
  '{"pid":1,"place":null,"start_ticks":1,"id":"../x"}',
  '{"pid":1,"place":"0123456789ab","start_ticks":1,"id":null,"slots":"2"}',
];

/** Of each list of contents, so many each time. */
const SAMPLE = 2;

it.each([
  ["workers/w-1-1.json", RUBBISH],
  ["control.json", ['{"max_workers":"many"}', '{"paused":"no"}', '{"slots":null,"applied":5}']],
])("%s that says something else than ours at the start", async (path, contents) => {
  for (const content of sampleOf(contents, SAMPLE)) {
    const pool = newPool();
    put(pool, path, content);
    pool.drop("a", task);
    const { code, stderr } = await pool.run(["run", "--drain"]);
    expect(code, `${content}: ${stderr}`).toBe(0);
    expect(pool.settledCount(), content).toBe(1);
    put(pool, path, content);
    expect((await pool.run(["status"])).code, content).toBe(0);
  }
});

it.each([
  [
    "roadmap.pending.json",
    ['{"groups":5}', '{"groups":[5,{}]}', '{"groups":[{"edits":7},{"edits":[{"kind":"add"}]}]}'],
  ],
  [
    "evidence/a/phases.json",
    [
      '{"submission":5,"phases":[5]}',
      '{"submission":"s","phases":[{"phase":"X"}]}',
      '{"submission":"s","phases":[{"phase":"X","artefact":"../../roadmap.yaml","envelope":{}}]}',
      '{"submission":"../../../x","phases":[]}',
    ],
  ],
])("%s that says something else than ours does not keep the plan", async (path, contents) => {
  for (const content of sampleOf(contents, SAMPLE)) {
    const pool = newPool();
    put(pool, "roadmap.yaml", 'nodes: [{id: a, exec: ["true"]}]\n');
    put(pool, path, content);
    const { code, stderr } = await pool.run(["run", "--drain"]);
    expect(code, `${content}: ${stderr}`).toBe(0);
    expect(pool.settledCount(), content).toBe(1);
    expect(fs.readdirSync(pool.dir), content).toEqual(["state"]);
  }
});

it("a batch that has become a directory once it was accepted fails, is kept, and holds up nothing", async () => {
  const pool = newPool();
  put(pool, "mailbox/processing/x@abcdefgh.1~ready.ndjson/inside", "precious");
  for (const id of ["a", "b", "c"]) pool.drop(id, task);
  const { code, stderr } = await pool.run(["run", "--drain"]);
  expect(code, stderr).toBe(1);
  expect(pool.results().map(({ task_id }) => task_id)).toHaveLength(3);
  expect(pool.errors()).toMatchObject([{ task_id: "x", kind: "invalid" }]);
  const kept = join(pool.failed, "x~abcdefgh_batch.ndjson", "inside");
  expect(fs.readFileSync(kept, "utf8")).toBe("precious");
  expect(fs.readdirSync(pool.processing)).toEqual([]);
});

it.each([
  ["kv/.tmp/a.lock.owner", ["kv", "put", "a", "key", "value"], 74],
  [`.tmp/roadmap.yaml.${thisPlace()}-1-1-1.${HASH}.${HASH}.old`, ["run", "--drain"], 0],
  ["supervisor_leases.jsonl", ["doctor"], 0],
  ["analytics/supervisor_lifecycle.jsonl", ["events"], 74],
])("%s: nobody waits for the other end of a pipe in its place", async (path, args, code) => {
  const pool = newPool();
  put(pool, "roadmap.yaml", 'nodes: [{id: a, exec: ["true"]}]\n');
  const at = join(pool.state, path);
  fs.mkdirSync(dirname(at), { recursive: true, mode: 0o700 });
  execFileSync("mkfifo", [at]);
  const answer = await pool.run(args);
  expect(answer.code, answer.stderr).toBe(code);
  if (code !== 0) expect(answer.stderr).toContain(`where: ${at}`);
  if (args[0] === "doctor")
    expect(answer.stdout.replaceAll(/\s+/g, "")).toContain(`${at}isnotaregularfile`);
  expect(fs.lstatSync(at).isFIFO()).toBe(true);
});

it("what a dead process had settled is carried to its end beside journals that are pipes", async () => {
  const pool = newPool();
  const marker = `x@abcdefgh.1~ok-${thisPlace()}-1-1-1.json`;
  put(pool, `mailbox/processing/${marker}`, JSON.stringify(task));
  const record = { task_id: "x", status: "completed", lease: "abcdefgh.1.x", attempts: 1 };
  put(pool, `mailbox/.tmp/${marker}`, JSON.stringify(record));
  fs.mkdirSync(join(pool.state, "analytics"), { mode: 0o700 });
  for (const path of ["analytics/supervisor_lifecycle.jsonl", "supervisor_leases.jsonl"])
    execFileSync("mkfifo", [join(pool.state, path)]);
  expect((await pool.run(["run", "--drain"])).code).toBe(0);
  expect(pool.results()).toMatchObject([record]);
  expect(fs.readdirSync(pool.processing)).toEqual([]);
});

it("control.json that somebody breaks under a worker does not end it", async () => {
  const pool = newPool();
  await pool.start();
  pool.drop("first", task);
  await pool.result("first");
  const pids = pool.workers().map(({ pid }) => pid);
  put(pool, "control.json", '{"slots":null,"paused":"no"}');
  pool.drop("second", task);
  await pool.result("second");
  expect(pool.workers().map(({ pid }) => pid)).toEqual(pids);
});

it.each([
  ["analytics", "a file"],
  ["workers", "a file"],
  ["workers", "a link to nothing"],
  ["analytics/supervisor_lifecycle.jsonl", "a directory"],
  ["analytics/supervisor_lifecycle.jsonl", "a pipe"],
  ["supervisor_leases.jsonl", "a pipe"],
])("%s: %s in its place is told, and keeps no task", async (path, what) => {
  const pool = newPool();
  const at = join(pool.state, path);
  fs.mkdirSync(dirname(at), { recursive: true });
  if (what === "a pipe") execFileSync("mkfifo", [at]);
  else if (what === "a directory") fs.mkdirSync(at);
  else if (what === "a file") fs.writeFileSync(at, "");
  else fs.symlinkSync("/nonexistent/nothing", at);
  const run = await pool.start();
  // More lines than a pipe holds.
  const count = what === "a pipe" ? 200 : 10;
  for (let i = 0; i < count; i++) pool.drop(`a${i}`, task);
  await waitFor(() => pool.settledCount() === count, { what: "all results", timeoutMs: 30_000 });
  expect((await pool.stop()).exitCode).toBe(0);
  expect(run.stderr()).not.toMatch(/\n {4}at |unexpected:/);
});
