/** What goes wrong around a supervisor: errors of the disk at single calls. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { readPlan } from "../support/read-plan.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const HOOK = fileURLToPath(new URL("hook.cjs", import.meta.url));

it("a task that the disk did not let in once does not count as started", async () => {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ env });
  env["MAILCHUTE_CRASH"] = JSON.stringify({
    role: "main",
    root: pool.state,
    act: "error",
    code: "EIO",
    at: 1,
    from: "^rename mailbox/inbox/task.json",
    report: join(pool.dir, "report"),
  });
  pool.drop("task", { exec: ["true"] });
  const { stderr, code } = await pool.run(["run", "--max-iterations", "1"]);
  expect(stderr).toContain("cannot accept task.json: EIO");
  expect(pool.settledCount()).toBe(1);
  expect(code).toBe(0);
});

/** Runs one task to its end with one error of the disk. @param from where calls begin to count; @param at which one fails */
async function expectNoHarm(from: string, at: number): Promise<void> {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ env });
  const report = join(pool.dir, "report");
  const plan = { role: "main", root: pool.state, act: "error", code: "EIO", hasReads: true };
  env["MAILCHUTE_CRASH"] = JSON.stringify({ ...plan, from, at, report });
  pool.drop("task", { exec: ["true"] });
  const { stderr, code } = await pool.run(["run", "--drain"]);
  expect(fs.readFileSync(report, "utf8")).toContain('"fault":"EIO"');
  expect(code, stderr).toBe(0);
  expect(checkState(pool.state, ["task"])).toEqual([]);
}

it.each([
  // Twice renamed at its start, where a supervisor that cannot say who it is does not begin.
  ["its own document", "^rename .tmp/supervisor.json", 3],
  ["a listing of what runs", "^readdir mailbox/processing", 1],
  ["a listing of commands", "^opendir control/inbox", 1],
  ["a listing of tasks", "^opendir mailbox/inbox", 1],
  ["a listing of workers", "^readdir workers", 1],
  ["a read of the journal", "^read analytics/supervisor_lifecycle.jsonl", 1],
  ["a line of the journal", "^write analytics/supervisor_lifecycle.jsonl", 1],
  ["the counts", "^rename analytics/.tmp/metrics.json", 1],
])("a supervisor lives on when the disk refuses it %s", async (_what, from, at) => {
  await expectNoHarm(from, at);
});

it.each(Array.from({ length: 12 }, (_, n) => n + 1))(
  "a supervisor whose last worker has ended comes to its end when the disk refuses call %d from there",
  async (at) => {
    await expectNoHarm("^rm workers/", at);
  },
);

it.each([
  ["listed", "^opendir mailbox/failed$"],
  ["removed", "^rm kv/\\.tmp/of-nobody$"],
])(
  "a drain ends although something that housekeeping looks at cannot be %s",
  async (_what, only) => {
    const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
    const pool = newPool({ env });
    const report = join(pool.dir, "report");
    const plan = { role: "main", root: pool.state, act: "error", code: "EACCES", hasReads: true };
    const until = join(pool.dir, "never");
    env["MAILCHUTE_CRASH"] = JSON.stringify({ ...plan, only, at: 1, until, report });
    const old = join(pool.state, "kv", ".tmp", "of-nobody");
    fs.mkdirSync(join(old, ".."), { recursive: true });
    fs.writeFileSync(old, "");
    fs.utimesSync(old, 0, 0);
    const { go, exec } = waiting(pool);
    pool.drop("task", { exec });
    const running = pool.spawn(["run", "--drain"]);
    // A drain that has nothing left to run does not wait for housekeeping.
    await waitFor(
      () => fs.existsSync(report) && fs.readFileSync(report, "utf8").includes('"fault":"EACCES"'),
      { what: "the fault" },
    );
    fs.writeFileSync(go, "");
    const { exitCode } = await running.ended;
    expect(exitCode, running.stderr()).toBe(0);
    expect(running.stderr()).not.toContain("unexpected");
  },
);

it("what cannot be accepted is tried again ever less often, and the others run meanwhile", async () => {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ env });
  const report = join(pool.dir, "report");
  const until = join(pool.dir, "healed");
  const plan = { role: "main", root: pool.state, act: "error", code: "EPERM", at: 1 };
  const only = "^rename mailbox/inbox/hard.json$";
  env["MAILCHUTE_CRASH"] = JSON.stringify({ ...plan, only, until, report });
  pool.drop("hard", { exec: ["true"], priority: 9 });
  pool.drop("easy", { exec: ["true"] });
  const running = pool.spawn(["run", "--drain"]);
  await pool.result("easy");
  const tries = (): number => readLines(report).length;
  await waitFor(() => tries() >= 4, { what: "a fourth try" });
  expect(tries()).toBeLessThan(8);
  fs.writeFileSync(until, "");
  expect((await running.ended).exitCode, running.stderr()).toBe(0);
  expect(pool.results()).toHaveLength(2);
});

it("a supervisor with a command that cannot be taken up ends when it is told to", async () => {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ env });
  const report = join(pool.dir, "report");
  const until = join(pool.dir, "never");
  const plan = { role: "main", root: pool.state, act: "error", code: "EIO", hasReads: true };
  const only = "^open control/processing/stuck@";
  env["MAILCHUTE_CRASH"] = JSON.stringify({ ...plan, only, at: 1, until, report });
  await pool.start();
  fs.writeFileSync(join(pool.state, "control", "inbox", "stuck.json"), '{"command":"pause"}');
  await waitFor(() => fs.existsSync(report), { what: "a look in vain" });
  expect((await pool.stop()).exitCode).toBe(0);
  delete env["MAILCHUTE_CRASH"];
  await pool.start();
  const answer = join(pool.state, "control", "outbox", "stuck_result.json");
  await waitFor(() => fs.existsSync(answer), { what: "its answer by the next supervisor" });
});

/** A supervisor whose looks at `processing/` fail from when it has accepted a task until `heal`. */
function withoutListings(): { pool: Pool; untilBlind: () => Promise<unknown>; heal: () => void } {
  const env: Record<string, string> = { NODE_OPTIONS: `--require=${HOOK}` };
  const pool = newPool({ env });
  const report = join(pool.dir, "report");
  const healed = join(pool.dir, "healed");
  const plan = { role: "main", root: pool.state, act: "error", code: "EMFILE", at: 1 };
  env["MAILCHUTE_CRASH"] = JSON.stringify({
    ...plan,
    hasReads: true,
    from: "^rename mailbox/inbox/",
    only: "^readdir mailbox/processing$",
    until: healed,
    report,
  });
  const faultCount = (): number => (fs.existsSync(report) ? readLines(report).length : 0);
  return {
    pool,
    untilBlind: () => {
      const enough = faultCount() + BLIND_LOOKS;
      return waitFor(() => faultCount() >= enough, { what: `${BLIND_LOOKS} looks in vain` });
    },
    heal: () => fs.writeFileSync(healed, ""),
  };
}

/** A program that says that it runs, and goes on until there is a file `go`. */
function waiting(pool: Pool): { runs: string; go: string; exec: string[] } {
  const runs = join(pool.dir, "runs");
  const go = join(pool.dir, "go");
  const program = `echo run >> '${runs}'; until [ -e '${go}' ]; do sleep 0.1; done`;
  return { runs, go, exec: ["sh", "-c", program] };
}

/** Absence in two looks is believed. */
const BLIND_LOOKS = 6;

const readLines = (path: string): string[] =>
  fs.readFileSync(path, "utf8").split("\n").filter(Boolean);

it("what runs is not forgotten while processing/ cannot be listed: a second task of its id waits", async () => {
  const { pool, untilBlind, heal } = withoutListings();
  const { runs, go, exec } = waiting(pool);
  pool.drop("task", { exec });
  const running = pool.spawn(["run", "--drain"]);
  await untilBlind();
  pool.drop("task", { exec, title: "another" });
  await untilBlind();
  heal();
  fs.writeFileSync(go, "");
  expect((await running.ended).exitCode).toBe(1);
  expect(readLines(runs)).toEqual(["run"]);
  expect(pool.results()).toHaveLength(1);
  // To refuse it, it must be compared with what is in processing/: that is tried again when there is time for it, or by the next run.
  const refused = fs.readdirSync(pool.failed).filter((name) => /^task~[a-z0-9]+\.json$/.test(name));
  const waits = fs.existsSync(join(pool.inbox, "task.json"));
  expect([waits, refused.length]).toEqual(waits ? [true, 0] : [false, 1]);
});

it("a node is not launched again while processing/ cannot be listed", async () => {
  const { pool, untilBlind, heal } = withoutListings();
  const { runs, go, exec } = waiting(pool);
  const roadmap = join(pool.state, "roadmap.yaml");
  fs.writeFileSync(roadmap, `nodes:\n  - { id: a, exec: ${JSON.stringify(exec)} }\n`);
  const running = pool.spawn(["run", "--drain"]);
  await untilBlind();
  heal();
  fs.writeFileSync(go, "");
  expect((await running.ended).exitCode, running.stderr()).toBe(0);
  expect(readLines(runs)).toEqual(["run"]);
  expect(readPlan(roadmap)).toContain("status: done");
});
