/** What goes wrong around a worker: errors of the disk, results that are none, and its own end again and again. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { encodeRecord } from "../../src/codec/records.ts";
import { parseName } from "../../src/core/names.ts";
import { type Claim, claimAt } from "../../src/mailbox/claim/claim.ts";
import { openTrays } from "../../src/mailbox/files/trays.ts";
import { newSettlement, settleAll } from "../../src/mailbox/settle/settle.ts";
import { checkState } from "../support/check-state.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { starts, steeredConfig, steps } from "../support/steered.ts";
import { takeSome } from "../support/take-some.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const HOOK = fileURLToPath(new URL("hook.cjs", import.meta.url));

it("a worker whose disk refuses a claim keeps its other work, and claims when the disk is well", async () => {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ config: steeredConfig({ workers: 2 }), env });
  const healed = join(pool.dir, "healed");
  env["MAILCHUTE_CRASH"] = JSON.stringify({
    role: "worker",
    root: pool.state,
    act: "error",
    code: "EIO",
    at: 1,
    from: "^rename mailbox/processing/second@.*~ready",
    until: healed,
  });
  const run = await pool.start(["--workers", "2"]);
  const until = join(pool.dir, "go");
  pool.drop("first", steps(pool, { does: "await", until }));
  await waitFor(() => pool.events().some((e) => e["event"] === "started"), { what: "the first" });
  const [worker] = pool.workers();
  pool.drop("second", steps(pool, {}));
  await waitFor(() => run.stderr().includes("cannot claim second@"), { what: "a word about it" });
  // What ends meanwhile cannot be settled either, and is not lost.
  fs.writeFileSync(until, "");
  fs.writeFileSync(healed, "");
  await pool.result("first");
  await pool.result("second");
  expect(pool.workers().map(({ pid }) => pid)).toEqual([worker?.pid]);
  await pool.stop();
  expect(checkState(pool.state, ["first", "second"])).toEqual([]);
});

it("a task that the disk lets nobody claim holds up no other", async () => {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ env });
  env["MAILCHUTE_CRASH"] = JSON.stringify({
    role: "worker",
    root: pool.state,
    act: "error",
    code: "EIO",
    at: 1,
    only: "^rename mailbox/processing/bad@.*~ready",
    until: join(pool.dir, "healed"),
  });
  const ids = Array.from({ length: 8 }, (_, index) => `good-${index}`);
  pool.drop("bad", { exec: ["true"], priority: 9 });
  for (const id of ids) pool.drop(id, { exec: ["true"] });
  await pool.start(["--workers", "1", "--processes", "1"]);
  for (const id of ids) await pool.result(id);
  expect(fs.readdirSync(pool.processing)).toEqual([expect.stringMatching(/^bad@.*~ready\.json$/)]);
});

it("workers run when the directory in which the pool was started is gone", async () => {
  const pool = newPool();
  const startedIn = join(pool.dir, "started-in");
  fs.mkdirSync(startedIn);
  const main = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));
  const run = spawn(process.execPath, [main, "run", "--state", pool.state], { cwd: startedIn });
  onTestFinished(() => void run.kill("SIGKILL"));
  await waitFor(() => pool.workers().length === 1, { what: "a worker" });
  fs.rmdirSync(startedIn);
  process.kill(pool.workers()[0]?.pid ?? Number.NaN, "SIGKILL");
  pool.drop("task", { exec: ["sh", "-c", "sleep 0.5; pwd"] });
  expect(await pool.result("task")).toMatchObject({ output: `${pool.dir}\n`, attempts: 1 });
});

it("a batch that cannot be read is asked for ever less often, and uses up no run", async () => {
  const retry = "{max_attempts: 3, backoff_ms: 50, backoff_max_ms: 60000}";
  const pool = newPool({ config: steeredConfig({ retry }) });
  // A link is not followed: to open it is an error of the system each time.
  const batch = join(pool.dir, "batch.ndjson");
  fs.writeFileSync(batch, '{"title":"t"}\n');
  fs.symlinkSync(batch, join(pool.processing, "batch@s.1~ready.ndjson"));
  await pool.start(["--workers", "1"]);
  const releases = (): Record<string, unknown>[] =>
    pool.events().filter((e) => e["event"] === "released" && e["task_id"] === "batch");
  await waitFor(() => releases().length >= 5, { what: "five releases", timeoutMs: 20_000 });
  const delays = releases().map((e) => Number(e["delay_ms"]));
  // Doubled each time, with a quarter of jitter either way.
  expect(delays[4]).toBeGreaterThan(5 * (delays[0] ?? 0));
  expect(new Set(releases().map((e) => e["attempt"]))).toEqual(new Set([1]));
});

it("a worker that is killed again and again before it has settled anything is replaced after a second", async () => {
  const pool = newPool({ config: steeredConfig({ retry: "{max_attempts: 9, backoff_ms: 20}" }) });
  const run = await pool.start(["--workers", "1"]);
  pool.drop("task", steps(pool, { does: "await", until: join(pool.dir, "never") }));
  for (let count = 1; count <= 3; count++) {
    await waitFor(() => starts(pool, "task").length === count, { what: `run ${count}` });
    process.kill(starts(pool, "task").at(-1)?.pid ?? 0, "SIGKILL");
  }
  await waitFor(() => starts(pool, "task").length === 4, { what: "the last run" });
  const delays = [...run.stderr().matchAll(/the next one starts in (\d+) ms/g)];
  expect(delays.map((match) => match[1])).toEqual(["1000", "1000"]);
});

it("a result that cannot be written down fails the attempt, and does not stay claimed", async () => {
  const pool = newPool();
  const module = join(pool.dir, "fickle.mjs");
  fs.writeFileSync(
    module,
    `export default () => {
  let asked = 0;
  return { toJSON() { if (asked++ > 0) throw new Error("not again"); return 1; } };
};\n`,
  );
  fs.appendFileSync(
    join(pool.state, "config.yaml"),
    `agents:\n  - {name: fickle, kind: module, module: ${module}, default: true}\n`,
  );
  await pool.start(["--workers", "1"]);
  pool.drop("task", { title: "t", max_attempts: 2 });
  expect(await pool.error("task")).toMatchObject({
    code: "ErrAgent",
    kind: "handler",
    attempts: 2,
    error: "its result cannot be recorded: not again",
  });
});

it("a line of a batch whose result cannot be written down fails, and is not lost", async () => {
  const pool = newPool();
  const module = join(pool.dir, "fickle.mjs");
  fs.writeFileSync(
    module,
    `export default (task) => {
  let asked = 0;
  return task.title === "bad" ? { toJSON() { if (asked++ > 0) throw new Error("not again"); return 1; } } : 1;
};\n`,
  );
  fs.appendFileSync(
    join(pool.state, "config.yaml"),
    `agents:\n  - {name: fickle, kind: module, module: ${module}, default: true}\n`,
  );
  const lines = ["good", "bad", "good"].map((title) => `${JSON.stringify({ title })}\n`);
  fs.writeFileSync(join(pool.dir, "b.ndjson"), lines.join(""));
  fs.renameSync(join(pool.dir, "b.ndjson"), join(pool.inbox, "b.ndjson"));
  await pool.start(["--workers", "1"]);
  const record = await pool.result("b");
  expect(record).toMatchObject({ verdict: "fail", batch: { lines: 3, failures: 1 } });
  expect(fs.readFileSync(join(pool.outbox, "b_results.ndjson"), "utf8")).toContain(
    "its result cannot be recorded: not again",
  );
});

it("a program that makes its log a link to itself harms nobody beside it", async () => {
  const pool = newPool();
  await pool.start(["--workers", "2", "--processes", "1"]);
  // Its size is looked at once a second.
  const spoil =
    'cd "$(dirname "$MAILCHUTE_RESULT_FILE")"; rm stdout.log; ln -s stdout.log stdout.log; exec sleep 2.5';
  pool.drop("culprit", { exec: ["sh", "-c", spoil], max_attempts: 1 });
  pool.drop("innocent", { exec: ["sleep", "2.5"], max_attempts: 1 });
  expect(await pool.result("innocent")).toMatchObject({ attempts: 1 });
  expect(await pool.result("culprit")).toMatchObject({ attempts: 1 });
});

it("a settlement whose journal lines cannot be written says so, and goes on from there", async () => {
  const trays = openTrays(join(tempDir(), "mailbox"), { durability: "process" });
  const name = parseName("a@s.1~w-x-1.json");
  if (name === undefined) throw new Error("no name");
  const claim: Claim = claimAt(trays, name);
  const text = '{"id":"a","prompt":"x"}';
  fs.writeFileSync(claim.path, text);
  const record = encodeRecord(
    {
      task_id: "a",
      status: "completed",
      verdict: "unknown",
      verdict_reason: "",
      output: null,
      duration_ms: 1,
      completed_at: 0,
      attempts: 1,
      agent_id: "x",
      lease: "s.1.x-1",
      exit_code: 0,
      run: null,
    },
    text,
  );
  const settlement = newSettlement(claim, "completed", record, "x-1");
  const fault = new Error("the journal is broken");
  await settleAll(trays, [settlement], () => {
    throw fault;
  });
  expect(settlement).toMatchObject({ error: fault, phase: "published", mayBeRecorded: true });
  expect(fs.readdirSync(trays.processing)).toEqual([settlement.marker]);
  let told = 0;
  await settleAll(trays, [settlement], (published) => {
    told += published.length;
  });
  expect(told).toBe(1);
  expect(settlement).toMatchObject({ outcome: "settled", phase: "done" });
  expect(fs.readdirSync(trays.processing)).toEqual([]);
});

it("a batch whose results the disk has not kept is given back, and they are written anew", async () => {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ config: steeredConfig({ durability: "power" }), env });
  env["MAILCHUTE_CRASH"] = JSON.stringify({
    role: "worker",
    root: pool.state,
    act: "error",
    code: "EIO",
    at: 1,
    from: "^fdatasync mailbox/.tmp/batch@",
    report: join(pool.dir, "report"),
  });
  const until = join(pool.dir, "go");
  const lines = [steps(pool, {}), steps(pool, { does: "await", until })];
  const text = lines.map((line) => `${JSON.stringify({ title: "t", ...line })}\n`).join("");
  fs.writeFileSync(join(pool.dir, "batch.ndjson"), text);
  fs.renameSync(join(pool.dir, "batch.ndjson"), join(pool.inbox, "batch.ndjson"));
  await pool.start(["--workers", "1"]);
  // While a line runs, what the others came to is synced now and then.
  await waitFor(() => fs.existsSync(join(pool.dir, "report")), { what: "the fault" });
  fs.writeFileSync(until, "");
  expect(await pool.result("batch")).toMatchObject({ attempts: 1, batch: { completed: 2 } });
  const events = pool.events().filter((e) => e["task_id"] === "batch");
  expect(events.filter((e) => e["event"] === "started")).toHaveLength(2);
  expect(pool.alerts().map((a) => a["message"])).toContainEqual(
    expect.stringMatching(/^batch waits, .*cannot save the results of its lines: EIO/),
  );
  expect(checkState(pool.state, ["batch"])).toEqual([]);
});

it.each(["task", "node"])(
  "a %s that can have no directory of its run waits, and uses up no attempt",
  async (kind) => {
    const pool = newPool();
    const runs = join(pool.state, "runs");
    fs.writeFileSync(runs, "");
    const item = { exec: ["true"], max_attempts: 1 };
    if (kind === "task") pool.drop("a", item);
    else fs.writeFileSync(join(pool.state, "roadmap.yaml"), 'nodes: [{id: a, exec: ["true"]}]\n');
    const run = await pool.start(["--workers", "1"]);
    const releases = (): unknown[] => pool.events().filter((e) => e["event"] === "released");
    await waitFor(() => releases().length >= 3, { what: "three releases" });
    const words = "a waits, and is tried again with a growing delay: cannot make";
    await waitFor(() => run.stderr().includes(words), { what: "a word about it" });
    fs.rmSync(runs);
    expect(await pool.result("a")).toMatchObject({ attempts: 1 });
    await pool.stop();
    expect(checkState(pool.state, ["a"])).toEqual([]);
  },
);

it("a program that cannot be started for want of descriptors waits for them, and uses up no attempt", async () => {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ env });
  const healed = join(pool.dir, "healed");
  env["MAILCHUTE_CRASH"] = JSON.stringify({
    role: "worker",
    root: pool.state,
    act: "error",
    code: "EMFILE",
    at: 1,
    from: "^open runs/[-0-9]+/a@.*stdout.log",
    until: healed,
  });
  const run = await pool.start(["--workers", "1"]);
  pool.drop("a", { exec: ["true"], max_attempts: 1 });
  await waitFor(() => run.stderr().includes("(EMFILE); trying again"), { what: "a word about it" });
  fs.writeFileSync(healed, "");
  expect(await pool.result("a")).toMatchObject({ attempts: 1 });
});

it("a function that says something to the parent process of its worker harms neither", async () => {
  const pool = newPool();
  const module = join(pool.dir, "chatty.mjs");
  fs.writeFileSync(
    module,
    `const messages = ["ready", null, 7, {}, { type: "progress" }, { type: "hello", id: 5 }];
export default () => messages.map((message) => process.send(message));\n`,
  );
  fs.appendFileSync(
    join(pool.state, "config.yaml"),
    `agents:\n  - {name: chatty, kind: module, module: ${module}, default: true}\n`,
  );
  await pool.start(["--workers", "1"]);
  pool.drop("first", { title: "t" });
  await pool.result("first");
  pool.drop("second", { title: "t" });
  await pool.result("second");
  expect((await pool.stop()).exitCode).toBe(0);
});

/** An agent for all tasks, of kind module. @param text what its handler does */
function addHandler(pool: Pool, text: string): void {
  const module = join(pool.dir, "handler.mjs");
  fs.writeFileSync(module, `import fs from "node:fs";\nexport default () => { ${text} };\n`);
  fs.appendFileSync(
    join(pool.state, "config.yaml"),
    `agents:\n  - {name: handler, kind: module, module: ${module}, default: true}\n`,
  );
}

it("a function that ends its worker has used up its run, though the journals could not be written", async () => {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ env });
  const runs = join(pool.dir, "runs");
  const note = `fs.appendFileSync(${JSON.stringify(runs)}, "run ");`;
  addHandler(pool, `${note} process.kill(process.pid, "SIGKILL");`);
  env["MAILCHUTE_CRASH"] = JSON.stringify({
    role: "worker",
    root: pool.state,
    act: "error",
    code: "EIO",
    at: 1,
    only: "^write analytics/",
    until: join(pool.dir, "healed"),
  });
  pool.drop("task", { title: "t", max_attempts: 1 });
  await pool.start(["--workers", "1"]);
  expect(await pool.error("task")).toMatchObject({ code: "ErrWorkerDied", attempts: 1 });
  expect(fs.readFileSync(runs, "utf8")).toBe("run ");
});

it.each(["program", "function"])(
  "a run of a %s that was not begun when its worker died is not used up, however often, and starts at last",
  async (what) => {
    const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
    const pool = newPool({ env });
    const runs = join(pool.dir, "runs");
    addHandler(pool, `fs.appendFileSync(${JSON.stringify(runs)}, "run\\n");`);
    const claimed = "^rename mailbox/processing/task@.*~ready";
    const plan = { role: "worker", root: pool.state, act: "kill", when: "after", at: 1 };
    env["MAILCHUTE_CRASH"] = JSON.stringify({ ...plan, from: claimed });
    const exec = { exec: ["sh", "-c", `echo run >> ${runs}`] };
    pool.drop("task", { ...(what === "program" ? exec : { title: "t" }), max_attempts: 1 });
    await pool.start(["--workers", "2", "--processes", "1"]);
    const reclaimed = (): unknown[] =>
      pool.events().flatMap((e) => (e["event"] === "reclaimed" ? [e["details"] ?? e] : []));
    await waitFor(() => reclaimed().length >= 2, { what: "two deaths after the claim" });
    expect(JSON.stringify(reclaimed())).not.toContain('"has_begun":true');
    await pool.killAll();
    delete env["MAILCHUTE_CRASH"];
    await pool.start();
    expect((await pool.result("task")).attempts).toBe(1);
    expect(fs.readFileSync(runs, "utf8")).toBe("run\n");
    await pool.stop();
    expect(checkState(pool.state, ["task"], { hadCrashes: true })).toEqual([]);
  },
);
