/** Batches from outside: a file of many tasks goes in, a file of their results comes out, and every command knows of it. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, type Pool, QUICK_CONFIG, readJson } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

interface LineResult {
  line: number;
  id: string;
  status: string;
  attempts: number;
  output?: unknown;
  error?: string;
  code?: string;
  kind?: string;
  exit_code?: number;
}

interface Summary {
  status: string;
  verdict?: string;
  kind?: string;
  batch: { lines: number; completed: number; failures: number; bad: number };
}

/** A handler that does what its payload says, and writes down each run. */
const HANDLER = `
import fs from "node:fs";
export default async function handle(task, { attempt, signal }) {
  const { does = "ok", n, dir } = task.payload;
  fs.appendFileSync(dir + "/runs", n + "\\n");
  if (does === "fail" && !fs.existsSync(dir + "/mended")) throw new Error("as it was asked to");
  if (does === "flaky" && attempt < 2) throw new Error("only this once");
  if (does === "wait" && !fs.existsSync(dir + "/go"))
    await new Promise((resolve, reject) => {
      const timer = setInterval(() => fs.existsSync(dir + "/go") && resolve(clearInterval(timer)), 10);
      signal.addEventListener("abort", () => { clearInterval(timer); reject(signal.reason); });
    });
  return { n };
}
`;

function batchPool(more = "", settings = QUICK_CONFIG): Pool {
  const pool = newPool({
    config: `${settings}${more}agents: [{name: unit, kind: module, module: ./unit.mjs, default: true}]\n`,
  });
  fs.writeFileSync(join(pool.state, "unit.mjs"), HANDLER);
  return pool;
}

function line(pool: Pool, n: number, does = "ok", more: object = {}): string {
  return JSON.stringify({ payload: { n, does, dir: pool.dir }, ...more });
}

function write(pool: Pool, lines: readonly string[]): string {
  const path = join(pool.dir, "lines.ndjson");
  fs.writeFileSync(path, lines.map((one) => `${one}\n`).join(""));
  return path;
}

function readResults(pool: Pool, id: string, tray: "outbox" | "failed" = "outbox"): LineResult[] {
  return fs
    .readFileSync(join(pool[tray], `${id}_results.ndjson`), "utf8")
    .trimEnd()
    .split("\n")
    .map((text) => JSON.parse(text) as LineResult);
}

function byLine(results: readonly LineResult[]): Map<number, LineResult> {
  const map = new Map(results.map((one) => [one.line, one]));
  expect(map.size, "no line has two results").toBe(results.length);
  return map;
}

function summaryOf(pool: Pool, id: string): Summary | undefined {
  return (
    readJson<Summary>(join(pool.outbox, `${id}_result.json`)) ??
    readJson<Summary>(join(pool.failed, `${id}_error.json`))
  );
}

const runs = (pool: Pool): string[] =>
  fs.existsSync(join(pool.dir, "runs"))
    ? fs.readFileSync(join(pool.dir, "runs"), "utf8").trim().split("\n")
    : [];

test("edit of a settled batch says how to mend its bad lines, and retry takes the mended lines", async () => {
  const pool = newPool({ config: QUICK_CONFIG });
  const path = write(pool, ['{"exec":["true"]}', '{"exec":["no-such-program"]}', "rubbish"]);
  await pool.run(["enqueue", "--batch", "--file", path, "--id", "b"]);
  await pool.run(["run", "--drain"]);
  expect((await pool.run(["edit", "b", "--priority", "1"])).stderr).toContain(
    "do: mend the lines that failed in b~*_batch.ndjson beside its record, then: mailchute retry b",
  );
  const kept = fs.readdirSync(pool.outbox).find((name) => /^b~.*_batch\.ndjson$/.test(name)) ?? "";
  const mended = ["no line that has completed is read", '{"exec":["true"]}', '{"exec":["true"]}'];
  fs.writeFileSync(join(pool.outbox, kept), `${mended.join("\n")}\n`);
  await pool.run(["retry", "b"]);
  expect((await pool.run(["run", "--drain"])).stdout).toBe("1 completed, 0 failed\n");
  expect([...byLine(readResults(pool, "b")).values()].map(({ status }) => status)).toEqual([
    "completed",
    "completed",
    "completed",
  ]);
});

test("a batch gives one result a line, with retries, failures and bad lines told apart", async () => {
  const pool = batchPool();
  const lines = [
    line(pool, 1),
    line(pool, 2, "flaky"),
    line(pool, 3, "fail", { max_attempts: 2 }),
    "this is no JSON",
    "",
    line(pool, 6, "ok", { id: "named" }),
    '{"payload":1,"id":"../x"}',
    '{"prompt":"x","metadata":{"dependencies":["a"]}}',
    JSON.stringify({
      exec: ["/bin/sh", "-c", "echo $MAILCHUTE_TASK_ID; test -f $MAILCHUTE_TASK_FILE"],
    }),
    JSON.stringify({ exec: ["/bin/sh", "-c", "exit 65"] }),
  ];
  const { code, stdout, stderr } = await pool.run([
    "enqueue",
    "--batch",
    "--file",
    write(pool, lines),
    "--id",
    "b",
  ]);
  expect(stderr).toContain("9 lines");
  expect({ code, stdout }).toEqual({ code: 0, stdout: "b\n" });
  const drain = await pool.run(["run", "--drain"]);
  expect(drain).toMatchObject({
    code: 1,
    stdout: "1 completed, 0 failed, 5 lines failed in 1 completed batch\n",
  });
  expect(drain.stderr).toContain("b completed, but 5 of 9 lines failed");

  const results = byLine(readResults(pool, "b"));
  expect([...results.keys()].sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 6, 7, 8, 9, 10]);
  expect(results.get(1)).toMatchObject({
    id: "b#1",
    status: "completed",
    attempts: 1,
    output: { n: 1 },
  });
  expect(results.get(2)).toMatchObject({ status: "completed", attempts: 2 });
  expect(results.get(3)).toMatchObject({
    status: "failed",
    attempts: 2,
    code: "ErrHandler",
    kind: "handler",
  });
  expect(results.get(4)).toMatchObject({
    status: "failed",
    attempts: 0,
    code: "ErrInvalidTask",
  });
  expect(results.get(6)).toMatchObject({ id: "named", status: "completed" });
  expect(results.get(7)).toMatchObject({ attempts: 0, kind: "invalid" });
  expect(results.get(8)?.error).toContain("no dependencies");
  expect(results.get(9)).toMatchObject({ status: "completed", output: "b#9\n", exit_code: 0 });
  expect(results.get(10)).toMatchObject({
    status: "failed",
    attempts: 1,
    exit_code: 65,
    code: "ErrExit",
  });
  expect(summaryOf(pool, "b")).toMatchObject({
    status: "completed",
    verdict: "fail",
    batch: { lines: 9, completed: 4, failures: 5, bad: 3 },
  });
  const kept =
    fs.readdirSync(pool.outbox).find((file) => /^b~[a-z0-9]+_batch\.ndjson$/.test(file)) ?? "";
  expect(fs.readFileSync(join(pool.outbox, kept), "utf8")).toBe(`${lines.join("\n")}\n`);
  for (const tray of [pool.inbox, pool.processing, pool.failed, pool.tmp])
    expect(fs.readdirSync(tray)).toEqual([]);
  const events = pool.events().filter((event) => event["task_id"] === "b");
  expect(events.map((event) => event["event"])).toEqual([
    "selected",
    "assigned",
    "started",
    "lines_failed",
    "completed",
  ]);
  expect(events.at(-2)?.["error"]).toBe("5 of 9 lines failed");
  expect(events.at(-1)?.["batch"]).toMatchObject({ lines: 9, failures: 5 });

  expect((await pool.run(["wait", "b"])).stdout).toBe(
    "b  completed, but 5 of its 9 lines failed\n",
  );
  expect((await pool.run(["wait", "b"])).code).toBe(1);
  expect((await pool.run(["ls"])).stdout).toMatch(
    /^b +done-not-all .*batch, 9 lines done, 5 of them failed/m,
  );
  const failed = await pool.run(["ls", "--state-is", "failed", "--json", "-n", "1"]);
  expect(JSON.parse(failed.stdout).tasks).toMatchObject([
    { id: "b", state: "done", failed_lines: 5, attempt: 1 },
  ]);
  const shown = (await pool.run(["show", "b"])).stdout;
  expect(shown).toContain("batch.json (");
  // The folder for files that are being written is no file of the run.
  const run = readJson<{ run: string }>(join(pool.outbox, "b_result.json"))?.run;
  expect(fs.readdirSync(join(pool.state, "runs", String(run)))).toContain(".tmp");
  expect(shown).not.toContain(".tmp");
  expect((await pool.run(["show", "b"])).stdout).toMatch(/^state +done, but 5 of 9 lines failed/m);
  expect((await pool.run(["status"])).stdout).toMatch(/^b .* lines +5 of 9 lines failed/m);
  const chat = await pool.run(["chat"], "/ls failed\n/quit\n");
  expect(chat.stdout).toContain("5 of them failed");
  expect(pool.alerts().map((one) => one["alert"])).toEqual(["lines_failed"]);
  const metrics = readJson<{ tasks: object; success_rate: number }>(
    join(pool.state, "analytics", "metrics.json"),
  );
  expect(metrics).toMatchObject({ tasks: { completed: 1, with_failed_lines: 1 }, success_rate: 0 });
  expect((await pool.run(["logs", "b#9"])).stdout).toBe("b#9\n");
  expect((await pool.run(["logs", "b"])).code).toBeLessThan(4);
});

test("a retry runs the failed lines only and joins their results with the others", async () => {
  const pool = batchPool();
  const lines = [1, 2, 3, 4, 5].map((n) =>
    line(pool, n, n % 2 === 0 ? "fail" : "ok", { max_attempts: 1 }),
  );
  expect(
    (await pool.run(["enqueue", "--batch", "--file", write(pool, lines), "--id", "b"])).code,
  ).toBe(0);
  await pool.run(["run", "--drain", "--no-live"]);
  expect(summaryOf(pool, "b")?.batch).toEqual({ lines: 5, completed: 3, failures: 2, bad: 0 });
  fs.writeFileSync(join(pool.dir, "mended"), "");
  fs.rmSync(join(pool.dir, "runs"));
  const results = join(pool.outbox, "b_results.ndjson");
  fs.renameSync(results, join(pool.dir, "taken"));
  const without = await pool.run(["retry", "b"]);
  expect(without.code).toBe(4);
  expect(without.stderr).toContain("are gone, and only they say which 2 of its lines");
  fs.renameSync(join(pool.dir, "taken"), results);
  expect(await pool.run(["retry", "b"])).toMatchObject({ code: 0, stdout: "b\n" });
  expect(fs.readdirSync(pool.outbox)).toEqual([]);
  await pool.run(["run", "--drain", "--no-live"]);
  expect(runs(pool).sort()).toEqual(["2", "4"]);
  expect(summaryOf(pool, "b")).toMatchObject({
    verdict: "pass",
    batch: { lines: 5, completed: 5, failures: 0, bad: 0 },
  });
  expect(byLine(readResults(pool, "b")).size).toBe(5);
  expect(fs.readdirSync(pool.tmp)).toEqual([]);
  const again = await pool.run(["retry", "b"]);
  expect(again.code).toBe(4);
  expect(again.stderr).toContain("every line");
});

test("an id is taken by a batch as it is by a task, whichever comes first", async () => {
  const pool = batchPool();
  const file = write(pool, [line(pool, 1)]);
  const batch = (id: string): Promise<{ code: number | null; stderr: string }> =>
    pool.run(["enqueue", "--batch", "--file", file, "--id", id]);
  expect((await batch("b")).code).toBe(0);
  const again = await batch("b");
  expect(again.code, "the very same bytes again").toBe(0);
  expect(again.stderr).toContain("unchanged: it waits");
  expect((await pool.run(["enqueue", "--id", "b", "--", "true"])).code).toBe(4);
  expect((await pool.run(["enqueue", "--id", "t", "--", "true"])).code).toBe(0);
  expect((await batch("t")).code).toBe(4);
  await pool.run(["run", "--drain", "--no-live"]);
  // Dropped past the commands: the supervisor finds out.
  pool.drop("b", { exec: ["true"] });
  await pool.run(["run", "--drain", "--no-live"]);
  const refused = pool.errors();
  expect(refused).toHaveLength(1);
  expect(refused[0]).toMatchObject({ task_id: "b", code: "ErrTaskExists" });
  const same = await batch("b");
  expect(same, "the very same bytes, settled").toMatchObject({ code: 0 });
  expect(same.stderr).toMatch(/unchanged: it has completed .*, and nothing runs\n/);
  write(pool, [line(pool, 2)]);
  const other = await batch("b");
  expect(other.code).toBe(4);
  expect(other.stderr).toContain("ErrTaskExists");
});

test("a batch that cannot be read is refused with its bytes kept, and can be given back", async () => {
  const pool = batchPool("batch_bytes_max: 2048\n");
  fs.writeFileSync(join(pool.inbox, "empty.ndjson"), "\n \n");
  fs.writeFileSync(join(pool.inbox, "large.ndjson"), `${line(pool, 1)}\n`.repeat(100));
  await pool.start();
  const large = await pool.error("large");
  expect(large).toMatchObject({ kind: "invalid", attempts: 0 });
  expect(fs.statSync(join(pool.mailbox, String(large.file))).size).toBeGreaterThan(2048);
  expect(large.file).toMatch(/\.ndjson$/);
  expect((await pool.error("empty")).error).toContain("no line");
  await pool.stop();
  expect((await pool.run(["retry", "empty"])).code).toBe(0);
  expect(fs.readFileSync(join(pool.inbox, "empty.ndjson"), "utf8")).toBe("\n \n");
  const tooLarge = await pool.run(
    ["enqueue", "--batch", "--file", "-"],
    `${line(pool, 1)}\n`.repeat(100),
  );
  expect(tooLarge.code).toBe(2);
  expect(tooLarge.stderr).toContain("batch_bytes_max");
  expect(fs.readdirSync(pool.tmp)).toEqual([]);
});

test("a batch whose results outgrow their limit ends with what it has, and a retry goes on from there", async () => {
  const max = 4096;
  const pool = batchPool(`batch_results_bytes_max: ${max}\nbatch_concurrency: 4\n`);
  const count = 200;
  const lines = Array.from({ length: count }, (_, i) => line(pool, i + 1));
  await pool.run(["enqueue", "--batch", "--file", write(pool, lines), "--id", "b"]);
  expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(1);
  const error = readJson<Summary & { code: string; error: string }>(
    join(pool.failed, "b_error.json"),
  );
  expect(error).toMatchObject({ code: "ErrOutputLimit", kind: "output" });
  expect(error?.error).toContain("batch_results_bytes_max");
  const { size } = fs.statSync(join(pool.failed, "b_results.ndjson"));
  expect(size).toBeGreaterThan(max);
  expect(size, "the lines in flight come on top").toBeLessThan(max + 1024);
  const done = readResults(pool, "b", "failed").length;
  expect(error?.batch).toEqual({ lines: done, completed: done, failures: 0, bad: 0 });

  const config = join(pool.state, "config.yaml");
  fs.writeFileSync(config, fs.readFileSync(config, "utf8").replace(String(max), "1000000"));
  expect((await pool.run(["retry", "b"])).code).toBe(0);
  expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(0);
  expect(byLine(readResults(pool, "b")).size).toBe(count);
  expect(runs(pool)).toHaveLength(count);
});

test("a file of very many lines that are no task is given up, and not answered line by line", async () => {
  const pool = batchPool();
  const path = join(pool.dir, "lines.ndjson");
  fs.writeFileSync(path, "x\n".repeat(110_000));
  await pool.run(["enqueue", "--batch", "--file", path, "--id", "b"]);
  expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(1);
  const error = readJson<Summary & { error: string }>(join(pool.failed, "b_error.json"));
  expect(error).toMatchObject({ kind: "invalid", batch: { completed: 0, bad: 100_001 } });
  expect(error?.error).toContain(
    "more than 100000 of its lines are no task; line 100001: not JSON",
  );
});

test("a running batch shows how far it is, can be put back without losing a line, and be ended for good", async () => {
  const pool = batchPool();
  const lines = [1, 2, 3, 4].map((n) => line(pool, n, n === 3 ? "wait" : "ok"));
  await pool.run(["enqueue", "--batch", "--file", write(pool, lines), "--id", "b"]);
  await pool.start();
  const status = async (): Promise<{ batch?: { lines: number } }[]> =>
    (
      JSON.parse((await pool.run(["status", "--json"])).stdout) as {
        running: { batch?: { lines: number } }[];
      }
    ).running;
  await waitFor(async () => (await status())[0]?.batch?.lines === 3, { what: "three lines" });
  expect((await pool.run(["status"])).stdout).toMatch(/b {2}\[#{20}\] 100 % {2}3 lines done/);
  expect((await pool.run(["ls", "--state-is", "running"])).stdout).toContain("3 lines done");
  expect((await pool.run(["cancel", "b", "--requeue"])).code).toBe(0);
  await waitFor(() => runs(pool).length >= 5, { what: "the second run of line 3" });
  expect(
    runs(pool)
      .filter((n) => n !== "3")
      .sort(),
  ).toEqual(["1", "2", "4"]);
  expect((await pool.run(["cancel", "b"])).code).toBe(0);
  const error = await pool.error("b");
  expect(error).toMatchObject({ kind: "cancelled", batch: { lines: 3, completed: 3 } });
  expect([...byLine(readResults(pool, "b", "failed")).keys()].sort((a, b) => a - b)).toEqual([
    1, 2, 4,
  ]);
  // What did not end has no result, and a retry goes on with it.
  fs.writeFileSync(join(pool.dir, "go"), "");
  fs.rmSync(join(pool.dir, "runs"));
  expect((await pool.run(["retry", "b"])).code).toBe(0);
  await pool.result("b");
  expect(runs(pool)).toEqual(["3"]);
  expect(byLine(readResults(pool, "b")).size).toBe(4);
  await pool.stop();
  for (const tray of [pool.inbox, pool.processing, pool.failed, pool.tmp])
    expect(fs.readdirSync(tray)).toEqual([]);
});

test("workers that are killed lose no line of a batch and repeat only those in flight", async () => {
  const pool = batchPool("batch_concurrency: 8\n");
  const count = 1500;
  const lines = Array.from({ length: count }, (_, i) => line(pool, i + 1));
  await pool.run(["enqueue", "--batch", "--file", write(pool, lines), "--id", "b"]);
  await pool.start();
  for (const done of [200, 700]) {
    await waitFor(() => runs(pool).length >= done, { what: `${done} runs` });
    for (const worker of pool.workers()) process.kill(worker.pid, "SIGKILL");
    await waitFor(() => fs.readdirSync(pool.processing).every((file) => !file.includes("1~w")), {
      what: "the lease to be taken back",
    });
  }
  await pool.result("b");
  const results = byLine(readResults(pool, "b"));
  expect(results.size).toBe(count);
  const ran = runs(pool);
  expect(new Set(ran).size).toBe(count);
  // What a turn of some milliseconds ended, and what was in flight, twice.
  expect(ran.length).toBeLessThan(count + 1500);
  await pool.stop();
  expect(fs.readdirSync(pool.tmp)).toEqual([]);
});

test("two batches on two workers both go on to their ends when the pool is made smaller than what runs", async () => {
  // A slot each: the second batch cannot go to the worker of the first.
  const pool = batchPool("processes: 2\n", QUICK_CONFIG.replace("workers: 4", "workers: 2"));
  await pool.start();
  await waitFor(
    () => pool.events().filter(({ event }) => event === "worker_started").length === 2,
    { what: "both workers" },
  );
  const ids = ["one", "two"];
  const runsOf = (): string[] =>
    fs.existsSync(join(pool.dir, "runs"))
      ? fs.readFileSync(join(pool.dir, "runs"), "utf8").split("\n")
      : [];
  for (const [index, id] of ids.entries()) {
    const lines = [0, 1, 2, 3, 4, 5].map((n) => {
      const script = `echo ${10 * index + n} >> runs; until test -e go; do sleep 0.1; done`;
      return JSON.stringify({ exec: ["sh", "-c", script], cwd: pool.dir });
    });
    fs.writeFileSync(join(pool.inbox, `${id}.ndjson`), lines.map((one) => `${one}\n`).join(""));
    await waitFor(() => runsOf().includes(`${10 * index}`), { what: `${id} to run` });
  }
  const started = pool.events().filter(({ event }) => event === "started");
  expect(new Set(started.map(({ worker }) => worker)).size, "each has its worker").toBe(2);
  expect((await pool.run(["set-workers", "1", "--wait"])).code).toBe(0);
  const shares = (): number[] =>
    Object.values(
      readJson<{ slots: Record<string, number> }>(join(pool.state, "control.json"))?.slots ?? {},
    );
  await waitFor(() => shares().every((slots) => slots === 0), { what: "no slot to start in" });
  fs.writeFileSync(join(pool.dir, "go"), "");
  await waitFor(() => ids.every((id) => summaryOf(pool, id) !== undefined), {
    what: "both summaries",
  });
  for (const id of ids) expect(summaryOf(pool, id)?.batch).toMatchObject({ completed: 6 });
});
