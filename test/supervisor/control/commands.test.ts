import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { resultName } from "../../../src/core/names.ts";
import { startTicksOf } from "../../../src/host/identity.ts";
import {
  acknowledgeCommand,
  claimNextCommand,
  enqueueCommand,
  openTrays,
  readAcknowledgement,
} from "../../../src/index.ts";
import { newPool, type Pool, QUICK_CONFIG, type Running } from "../../support/pool.ts";
import { readPlan } from "../../support/read-plan.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";
import { control, drop, running, send, until, waiting } from "./command-pool.ts";

const namesIn = (dir: string): string[] =>
  fs.readdirSync(dir, { recursive: true, encoding: "utf8" }).sort();
describe("the command queue", () => {
  it("takes a command from enqueue through claim to its acknowledgement, first in, first out", async () => {
    const trays = openTrays(join(tempDir(), "control"), { durability: "process" });
    const { id: first } = await enqueueCommand(trays, { command: "pause" });
    const { id: second } = await enqueueCommand(trays, {
      command: "set-workers",
      args: { workers: 3 },
    });
    expect(fs.readdirSync(trays.inbox).sort()).toEqual([`${first}.json`, `${second}.json`].sort());
    const pause = claimNextCommand(trays, "owner-1");
    expect(pause?.command).toMatchObject({ id: first, command: "pause" });
    expect(fs.readdirSync(trays.processing)).toHaveLength(1);
    const workers = claimNextCommand(trays, "owner-2");
    expect(workers?.command.args).toEqual({ workers: 3 });
    expect(claimNextCommand(trays, "owner-3")).toBeUndefined();
    if (pause === undefined || workers === undefined) throw new Error("both were claimed");
    await acknowledgeCommand(trays, pause, { status: "completed", result: { paused: true } });
    await acknowledgeCommand(trays, workers, {
      status: "failed",
      error: "no",
      code: "ErrInvalidTransition",
    });
    expect(readAcknowledgement(trays, first)).toMatchObject({
      status: "completed",
      result: { paused: true },
      pid: process.pid,
    });
    expect(readAcknowledgement(trays, second)).toMatchObject({
      status: "failed",
      error: "no",
      args: { workers: 3 },
    });
    expect(fs.readdirSync(trays.processing)).toEqual([]);
  });

  it("understands an acknowledgement that says done", async () => {
    const trays = openTrays(join(tempDir(), "control"), { durability: "process" });
    const { id } = await enqueueCommand(trays, { command: "pause" });
    const record = { task_id: id, status: "done", command: "pause", result: {} };
    fs.writeFileSync(join(trays.outbox, `${id}_result.json`), JSON.stringify(record));
    expect(readAcknowledgement(trays, id)).toMatchObject({ status: "completed", command: "pause" });
  });

  it("leaves in the inbox what turns out to be no command once it is claimed", async () => {
    const trays = openTrays(join(tempDir(), "control"), { durability: "process" });
    const { id: replaced } = await enqueueCommand(trays, { command: "pause" });
    const path = join(trays.inbox, `${replaced}.json`);
    fs.utimesSync(path, 1, 1);
    const { id: good } = await enqueueCommand(trays, { command: "resume" });
    // Somebody replaces the file between the look and the claim.
    const rename: typeof trays.storage.rename = (from, to) => {
      if (from === path) fs.writeFileSync(path, "{");
      trays.storage.rename(from, to);
    };
    const between = { ...trays, storage: { ...trays.storage, rename } };
    expect(claimNextCommand(between, "owner-1")?.command).toMatchObject({ id: good });
    expect(fs.readFileSync(path, "utf8")).toBe("{");
    expect(fs.readdirSync(trays.processing)).toHaveLength(1);
  });

  it("refuses what is no command before it is written", async () => {
    const trays = openTrays(join(tempDir(), "control"), { durability: "process" });
    for (const request of [
      { command: "jump" },
      { command: "set-workers" },
      { command: "cancel" },
      { command: "pause", expires_at: "soonish, maybe" },
    ])
      await expect(enqueueCommand(trays, request)).rejects.toMatchObject({
        code: "ErrInvalidCommand",
      });
    expect(fs.readdirSync(trays.inbox)).toEqual([]);
  });
});

/** Starts a supervisor and lets it drain, while a task named "long" runs without end. */
async function drainOverLongRun(pool: Pool): Promise<Running> {
  const run = await pool.start();
  pool.drop("long", { exec: until(join(pool.dir, "never")) });
  await waitFor(() => running(pool).includes("long"), { what: "the run" });
  await drop(pool, "end", { command: "drain" });
  await waitFor(() => pool.supervisor()?.status === "draining", { what: "the drain" });
  return run;
}

describe("a running supervisor", () => {
  it("makes a deleted control tray again, also in one dry pass", async () => {
    const pool = newPool();
    await pool.run(["init"]);
    fs.rmSync(join(pool.state, "control"), { recursive: true, force: true });
    await pool.run(["run", "--dry-run"]);
    expect(fs.existsSync(join(pool.state, "control"))).toBe(false);
    const { code, stderr } = await pool.run(["run", "--once", "--dry-run"]);
    expect(code, stderr).toBe(0);
    expect(fs.readdirSync(join(pool.state, "control")).sort()).toEqual([
      ".tmp",
      "failed",
      "inbox",
      "outbox",
      "processing",
    ]);
    await pool.start();
    // In one step: the supervisor makes it again at once.
    fs.renameSync(join(pool.state, "control"), join(pool.dir, "deleted"));
    await waitFor(() => fs.existsSync(control(pool, "inbox")), { what: "a new control inbox" });
    expect(await drop(pool, "p", { command: "pause" })).toMatchObject({
      status: "completed",
      result: { paused: true },
    });
  });

  it("paused, launches nothing while what runs completes; resumed, goes on", async () => {
    const pool = newPool();
    const gate = join(pool.dir, "go");
    await pool.start(["--workers", "1"]);
    pool.drop("task-a", { exec: until(gate), priority: 1 });
    pool.drop("task-b", { exec: ["true"] });
    await waitFor(() => running(pool).includes("task-a"), { what: "task-a to run" });
    expect(await send(pool, "control", "pause")).toEqual({ paused: true });
    fs.writeFileSync(gate, "");
    await pool.result("task-a");
    pool.drop("task-c", { exec: ["true"], priority: 5 });
    // Whatever was to start would have: a command sent now is answered after several rounds of looking.
    expect(await drop(pool, "again", { command: "pause" })).toMatchObject({ status: "completed" });
    expect(fs.readdirSync(pool.outbox)).toEqual([resultName("task-a")]);
    expect(running(pool)).toEqual([]);
    const { stdout } = await pool.run(["status", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ control: { paused: true } });
    expect(await send(pool, "resume")).toEqual({ paused: false });
    await Promise.all([pool.result("task-b"), pool.result("task-c")]);
  });

  it("a pause survives the death of the supervisor and is visible: since when, by which command", async () => {
    const pool = newPool();
    await pool.start();
    await drop(pool, "stop-it", { command: "pause" });
    await pool.killAll();
    await pool.start();
    pool.drop("t", { exec: ["true"] });
    const { stdout } = await pool.run(["status"]);
    expect(stdout).toMatch(/paused.*stop-it/i);
    expect(waiting(pool)).toEqual(["t.json"]);
    await send(pool, "resume");
    await pool.result("t");
  });

  it("with fewer workers starts nothing new until enough have ended; with more starts at once", async () => {
    const pool = newPool();
    const gates = [1, 2, 3, 4].map((n) => join(pool.dir, `go-${n}`));
    await pool.start(["--workers", "2", "--processes", "2"]);
    for (const [index, gate] of gates.entries())
      pool.drop(`t${index + 1}`, { exec: until(gate), priority: 9 - index });
    await waitFor(() => running(pool).length === 2, { what: "two running tasks" });
    expect(await send(pool, "control", "set-workers", "--workers", "1")).toEqual({ workers: 1 });
    fs.writeFileSync(gates[0] ?? "", "");
    await pool.result("t1");
    expect(
      await drop(pool, "look", { command: "set_workers", args: { workers: 1 } }),
    ).toMatchObject({ result: { workers: 1 } });
    expect(running(pool)).toEqual(["t2"]);
    fs.writeFileSync(gates[1] ?? "", "");
    await waitFor(() => running(pool).includes("t3"), { what: "t3 to run" });
    expect(running(pool)).toEqual(["t3"]);
    // More: at once, and not only when a running task ends.
    expect(await send(pool, "set-workers", "3")).toEqual({ workers: 3 });
    await waitFor(() => running(pool).length === 2, { what: "t4 beside t3" });
    for (const gate of gates) fs.writeFileSync(gate, "");
    await Promise.all(["t3", "t4"].map((id) => pool.result(id)));
  });

  it("cancel stops exactly that task and puts it back into the inbox without using up an attempt", async () => {
    const pool = newPool();
    const gate = join(pool.dir, "go");
    await pool.start(["--workers", "2"]);
    pool.drop("task-long", { exec: until(join(pool.dir, "never")), max_attempts: 1 });
    pool.drop("other", { exec: until(gate) });
    await waitFor(() => running(pool).length === 2, { what: "both to run" });
    await send(pool, "control", "pause");
    expect(await send(pool, "control", "cancel", "--node", "task-long")).toEqual({
      cancelled: "task-long",
    });
    expect(waiting(pool)).toEqual(["task-long.json"]);
    expect(running(pool)).toEqual(["other"]);
    const again = await pool.run(["control", "cancel", "--node", "task-long", "--wait"]);
    expect(again.stderr).toMatch(/not in flight/);
    expect(again.code).toBe(4);
    fs.writeFileSync(gate, "");
    fs.writeFileSync(join(pool.dir, "never"), "");
    await send(pool, "resume");
    expect(await pool.result("task-long")).toMatchObject({ attempts: 1 });
    await pool.result("other");
  });

  it("the top-level cancel ends a waiting or running task for good", async () => {
    const pool = newPool();
    await pool.start(["--workers", "1"]);
    pool.drop("runs", { exec: until(join(pool.dir, "never")), priority: 1 });
    pool.drop("waits", { exec: ["true"] });
    await waitFor(() => running(pool).includes("runs"), { what: "runs to run" });
    await send(pool, "cancel", "waits");
    await send(pool, "cancel", "runs");
    expect(await pool.error("waits")).toMatchObject({ kind: "cancelled" });
    expect(await pool.error("runs")).toMatchObject({ kind: "cancelled", attempts: 1 });
    expect([...waiting(pool), ...running(pool), ...fs.readdirSync(pool.outbox)]).toEqual([]);
    const unknown = await pool.run(["cancel", "nowhere", "--wait"]);
    expect(unknown.code).toBe(3);
  });

  it("cancel goes through all its ids, whatever becomes of one, and says of each what came of it", async () => {
    const pool = newPool();
    await pool.start(["--workers", "4"]);
    const never = { exec: until(join(pool.dir, "never")) };
    pool.drop("x0", { exec: ["true"] });
    await pool.result("x0");
    for (const id of ["x1", "x2", "x3", "x4"]) pool.drop(id, never);
    await waitFor(() => running(pool).length === 4, { what: "four to run" });
    const text = await pool.run(["cancel", "x0", "x1", "no/id", "x2", "--wait"]);
    expect(text.code).toBe(4);
    expect(text.stdout).toBe("cancelled: x1, final: true\ncancelled: x2, final: true\n");
    expect(text.stderr).toMatch(/mailchute: no\/id: .*\nmailchute: x0: .*settled already\n$/);
    expect(running(pool)).toEqual(["x3", "x4"]);
    const json = await pool.run(["cancel", "x0", "x3", "x4", "nowhere", "--wait", "--json"]);
    expect(json.code).toBe(4);
    expect(JSON.parse(json.stdout)).toMatchObject({
      sent: [{ result: { cancelled: "x3" } }, { result: { cancelled: "x4" } }],
      refused: [
        { args: { node: "x0" }, error: { code: "ErrInvalidTransition" } },
        { args: { node: "nowhere" }, error: { code: "ErrTaskNotFound" } },
      ],
    });
    expect(json.stderr).toBe("");
    expect(running(pool)).toEqual([]);
  });

  it("a task that is cancelled between two runs says so, with its last run", async () => {
    const pool = newPool({
      config: `${QUICK_CONFIG.replace("backoff_ms: 20, backoff_max_ms: 100", "backoff_ms: 3600000, backoff_max_ms: 3600000")}`,
    });
    await pool.start(["--workers", "1"]);
    pool.drop("fails", { exec: ["false"], max_attempts: 2 });
    pool.drop("gives-back", { exec: ["sh", "-c", "exit 75"] });
    for (const [id, next] of [
      ["fails", 2],
      ["gives-back", 1],
    ] as const) {
      await waitFor(
        () =>
          pool.runs().some((run) => run.includes(`/${id}@`)) &&
          fs
            .readdirSync(pool.processing)
            .some((file) => file.startsWith(`${id}@`) && file.endsWith(`.${next}~ready.json`)),
        { what: `${id} to wait again` },
      );
      await send(pool, "cancel", id);
      const { error, attempts, run, last_attempt_at, failed_at } = await pool.error(id);
      expect([error, attempts]).toEqual(["cancelled between two runs", 1]);
      expect(fs.existsSync(join(pool.state, "runs", String(run), "stdout.log"))).toBe(true);
      expect(last_attempt_at).toBeGreaterThan(failed_at - 600);
    }
  });

  it("a final cancel leaves alone what has settled, and takes what was refused before and dropped anew", async () => {
    const pool = newPool();
    await pool.start();
    pool.drop("done", { exec: ["true"] });
    await pool.result("done");
    pool.drop("mended", ["no task"] as never);
    expect(await pool.error("mended")).toMatchObject({ kind: "invalid" });
    await send(pool, "control", "pause");
    pool.drop("done", { exec: ["false"] });
    pool.drop("mended", { exec: ["true"] });
    const again = await pool.run(["cancel", "done", "--wait"]);
    expect(again.stderr).toMatch(/settled already/);
    await send(pool, "cancel", "mended");
    expect(await pool.error("mended")).toMatchObject({
      kind: "cancelled",
      task: { exec: ["true"] },
    });
    expect(fs.readdirSync(pool.outbox)).toEqual([resultName("done")]);
  });

  it("after a cancel no process is left: not one that ignores SIGTERM, nor one that left its group", async () => {
    const pool = newPool();
    await pool.start(["--workers", "2"]);
    const pids = join(pool.dir, "pids");
    const script = `echo $$ >> '${pids}'; trap '' TERM; setsid sh -c 'trap "" TERM; echo $$ >> "${pids}"; while :; do sleep 1; done' & while :; do sleep 1; done`;
    pool.drop("stubborn", { exec: ["sh", "-c", script] });
    const read = (): number[] =>
      fs.existsSync(pids) ? fs.readFileSync(pids, "utf8").trim().split("\n").map(Number) : [];
    await waitFor(() => read().length === 2, { what: "both processes" });
    await send(pool, "cancel", "stubborn");
    for (const pid of read()) expect(startTicksOf(pid)).toBeUndefined();
    expect(await pool.error("stubborn")).toMatchObject({ kind: "cancelled" });
  });

  it("replan reopens the planner and launches nothing else until the plan is made", async () => {
    const pool = newPool();
    const planned = join(pool.dir, "planned");
    const planner = `while [ ! -e ${planned} ]; do sleep 0.1; done`;
    const roadmap = join(pool.state, "roadmap.yaml");
    fs.writeFileSync(
      roadmap,
      `nodes:
  - { id: plan-000, type: plan, status: done, exec: [sh, -c, ${JSON.stringify(planner)}] }
  - { id: step, status: blocked, exec: ["true"] }
`,
    );
    await pool.start();
    expect(await drop(pool, "again", { command: "replan_now" })).toMatchObject({
      result: { replanPaused: true },
    });
    fs.writeFileSync(roadmap, readPlan(roadmap).replace("blocked", "open"));
    pool.drop("work", { exec: ["true"], priority: 9 });
    pool.drop("plan", { exec: ["true"], type: "plan" });
    await pool.result("plan");
    // The planner is launched in its own time.
    await waitFor(() => running(pool).includes("plan-000"), { what: "the planner's run" });
    expect(waiting(pool)).toEqual(["work.json"]);
    expect(readPlan(roadmap)).toContain("plan-000, type: plan, status: in_progress");
    // A manual pause wins: not even the plan's end lets anything start.
    await drop(pool, "hold", { command: "pause" });
    fs.writeFileSync(planned, "");
    await pool.result("plan-000");
    expect(await drop(pool, "look", { command: "pause" })).toMatchObject({ status: "completed" });
    expect(waiting(pool)).toEqual(["work.json"]);
    expect(readPlan(roadmap)).toContain("step, status: open");
    await drop(pool, "go", { command: "resume" });
    await pool.result("work");
    await pool.result("step");
    await waitFor(() => readPlan(roadmap).includes("step, status: done"), {
      what: "the end of the plan",
    });
    const told = pool.events().map((event) => event["event"]);
    expect(told.indexOf("replan_finished")).toBeGreaterThan(told.indexOf("replan_started"));
  });

  it("takes commands while what runs ends", async () => {
    const pool = newPool();
    const run = await drainOverLongRun(pool);
    expect((await pool.run(["cancel", "long", "--wait"])).code).toBe(0);
    expect((await run.ended).exitCode).toBe(0);
    expect(await pool.error("long")).toMatchObject({ kind: "cancelled" });
  });

  it("a stop that its supervisor did not live to take does not end the next one", async () => {
    const pool = newPool();
    const first = await pool.start();
    first.child.kill("SIGSTOP");
    const stop = pool.run(["stop"]);
    await waitFor(() => fs.readdirSync(control(pool, "inbox")).length === 1, { what: "the stop" });
    first.child.kill("SIGKILL");
    first.child.stderr?.destroy();
    expect((await stop).code).toBe(0);
    expect(namesIn(control(pool, "inbox"))).toEqual([]);
    await pool.start();
    pool.drop("task", { exec: ["true"] });
    await pool.result("task");
    expect(pool.supervisor()?.status).toBe("running");
    await pool.stop();
  });

  it("stop ends a drain also when a worker hangs", async () => {
    const pool = newPool();
    const run = await drainOverLongRun(pool);
    process.kill(pool.workers()[0]?.pid ?? 0, "SIGSTOP");
    expect((await pool.run(["stop", "--timeout", "20"])).code).toBe(0);
    expect((await run.ended).exitCode).toBe(0);
    // What it ran waits again.
    const [left = ""] = fs.readdirSync(pool.processing);
    expect(left).toMatch(/^long@.*~ready\.json$/);
  });

  it("replan lets run what the planner itself waits for", async () => {
    const pool = newPool();
    fs.writeFileSync(
      join(pool.state, "roadmap.yaml"),
      `nodes:
  - { id: research, exec: ["true"] }
  - { id: plan-000, type: plan, status: done, exec: ["true"], dependencies: [research] }
  - { id: step, exec: ["true"], dependencies: [plan-000] }
`,
    );
    fs.writeFileSync(join(pool.state, "control.json"), JSON.stringify({ paused: true }));
    await pool.start();
    await drop(pool, "again", { command: "replan_now" });
    await drop(pool, "go", { command: "resume" });
    await waitFor(() => pool.results().length === 3, { what: "all three nodes" });
    const started = pool
      .events()
      .filter((event) => event["event"] === "started")
      .map((event) => event["task_id"]);
    expect(started).toEqual(["research", "plan-000", "step"]);
  });

  it("answers a bad command file with an error record and disturbs nothing else", async () => {
    const pool = newPool();
    await pool.start();
    fs.writeFileSync(join(control(pool, "inbox"), "half.json"), '{"command":"pau');
    expect(await drop(pool, "jump", { command: "jump" })).toMatchObject({
      status: "failed",
      code: "ErrInvalidCommand",
    });
    expect(await drop(pool, "late", { command: "pause", expires_at: 1 })).toMatchObject({
      status: "failed",
      error: /expired/,
    });
    expect(
      await drop(pool, "many", { command: "set-workers", args: { workers: 1e9 } }),
    ).toMatchObject({ status: "failed" });
    expect(await drop(pool, "plan", { command: "replan_now" })).toMatchObject({
      status: "failed",
      error: /plan-000/,
    });
    const half = await waitFor(
      () => readAcknowledgement(openTrays(join(pool.state, "control")), "half"),
      { what: "the answer to half" },
    );
    expect(half).toMatchObject({ code: "ErrInvalidCommand" });
    pool.drop("t", { exec: ["true"] });
    await pool.result("t");
  });

  it("refuses a command file that another name shares, or another user owns, as it does with tasks", async () => {
    const pool = newPool();
    await pool.start();
    const shared = join(pool.dir, "shared");
    fs.writeFileSync(shared, '{"command":"pause"}');
    fs.linkSync(shared, join(control(pool, "inbox"), "linked.json"));
    const answer = (id: string): Promise<Record<string, unknown>> =>
      waitFor(() => readAcknowledgement(openTrays(join(pool.state, "control")), id), {
        what: `the answer to ${id}`,
      });
    expect(await answer("linked")).toMatchObject({
      code: "ErrInvalidCommand",
      error: /second hard link/,
    });
    if (process.getuid?.() === 0) {
      const theirs = join(pool.dir, "theirs");
      fs.writeFileSync(theirs, '{"command":"pause"}');
      fs.chownSync(theirs, 65_534, 65_534);
      fs.renameSync(theirs, join(control(pool, "inbox"), "theirs.json"));
      expect(await answer("theirs")).toMatchObject({ error: /uid 65534/ });
    }
    expect(pool.events().filter((e) => e["event"] === "paused")).toEqual([]);
  });

  it("with mailbox_enabled: false takes commands and leaves the task mailbox alone", async () => {
    const pool = newPool({ config: `${QUICK_CONFIG}mailbox_enabled: false\n` });
    pool.drop("good", { exec: ["true"] });
    pool.drop("bad", ["no task"] as never);
    const claimed = `held@s.1~w-${"0".repeat(12)}-zzzzz-1-1.json`;
    fs.writeFileSync(join(pool.processing, claimed), '{"exec":["true"]}');
    fs.writeFileSync(join(pool.processing, "due@s.1~ready.json"), '{"exec":["true"]}');
    fs.rmSync(pool.tmp, { recursive: true });
    const before = namesIn(pool.mailbox);
    await pool.start();
    expect(await send(pool, "control", "pause")).toEqual({ paused: true });
    expect(await send(pool, "resume")).toEqual({ paused: false });
    expect(await send(pool, "set-workers", "2")).toEqual({ workers: 2 });
    const cancel = await drop(pool, "no", {
      command: "cancel",
      args: { node: "good", final: true },
    });
    expect(cancel).toMatchObject({ status: "failed", error: /switched off/ });
    expect((await pool.run(["stop"])).code).toBe(0);
    const drained = await pool.run(["run", "--drain"]);
    expect(drained.code, drained.stderr).toBe(0);
    expect(namesIn(pool.mailbox)).toEqual(before);
  });

  it("a drain counts refused files, and waits for a retry that stands half-way", async () => {
    const pool = newPool();
    const gate = join(pool.dir, "go");
    pool.drop("long", { exec: until(gate) });
    pool.drop("bad", ["no task"] as never);
    pool.drop("again", { exec: ["test", "-e", gate], max_attempts: 1 });
    const drain = pool.spawn(["run", "--drain", "--json"]);
    await pool.error("again");
    await pool.error("bad");
    await waitFor(() => running(pool).includes("long"), { what: "long to run" });
    // As a retry does that dies after its first step.
    const marker = join(pool.processing, "again@s.0~again-x.json");
    fs.renameSync(join(pool.failed, "again_error.json"), marker);
    fs.writeFileSync(gate, "");
    expect((await drain.ended).exitCode).toBe(1);
    expect(JSON.parse(drain.stdout())).toMatchObject({ completed: 2, refused: 1 });
    expect(fs.readdirSync(pool.outbox).sort()).toEqual([resultName("again"), resultName("long")]);
  });

  it.runIf(process.getuid?.() === 0)(
    "an accepted task that cannot be read is told once, shown by status, and run when it can be read",
    async () => {
      const pool = newPool({ uid: 65_534 });
      const path = join(pool.processing, "t@s.1~ready.json");
      fs.writeFileSync(path, '{"exec":["true"]}');
      fs.chownSync(path, 65_534, 65_534);
      // The file itself, whatever its name is while it is being tried.
      const fd = fs.openSync(path, "r");
      fs.fchmodSync(fd, 0);
      await pool.start();
      const tries = (): number =>
        pool.events().filter((e) => e["event"] === "released" && e["task_id"] === "t").length;
      await waitFor(() => tries() >= 4, { what: "some tries" });
      const told = pool.alerts().filter((a) => String(a["message"]).includes("cannot read it"));
      expect(told).toHaveLength(1);
      const delays = pool
        .events()
        .flatMap((e) => (e["event"] === "released" ? [e["delay_ms"]] : []));
      expect(Number(delays[3])).toBeGreaterThan(Number(delays[0]));
      // Whoever looks while it is being tried sees a running task.
      const isShown = async (...args: string[]): Promise<boolean> =>
        /cannot be read: t/.test((await pool.run(args)).stdout);
      await waitFor(() => isShown("status", "--json"), { what: "the status to show it" });
      await waitFor(() => isShown("doctor"), { what: "the doctor to show it" });
      fs.fchmodSync(fd, 0o600);
      fs.closeSync(fd);
      expect(await pool.result("t")).toMatchObject({ attempts: 1 });
    },
  );

  it("the same file may be dropped again and again", async () => {
    const pool = newPool();
    await pool.start();
    for (const expected of [true, false, true, false]) {
      fs.rmSync(join(control(pool, "outbox"), resultName(expected ? "p" : "r")), { force: true });
      expect(
        await drop(pool, expected ? "p" : "r", { command: expected ? "pause" : "resume" }),
      ).toMatchObject({ result: { paused: expected } });
    }
  });

  it("retry as a command puts a dead letter back, and it runs", async () => {
    const pool = newPool();
    await pool.start();
    const flag = join(pool.dir, "flag");
    pool.drop("t", { exec: ["test", "-e", flag], max_attempts: 1 });
    await pool.error("t");
    fs.writeFileSync(flag, "");
    expect(await drop(pool, "again", { command: "retry", args: { node: "t" } })).toMatchObject({
      result: { retried: "t" },
    });
    await pool.result("t");
    expect(fs.readdirSync(pool.failed)).toEqual([]);
  });

  it("remembers set-workers for the next run with --once, and says so", async () => {
    const pool = newPool();
    const gate = join(pool.dir, "go");
    pool.drop("t", { exec: until(gate) });
    const run = pool.spawn(["run", "--once", "--workers", "1"]);
    await waitFor(() => running(pool).includes("t"), { what: "t to run" });
    expect(
      await drop(pool, "more", { command: "set-workers", args: { workers: 4 } }),
    ).toMatchObject({ result: { workers: 1, next_run: 4 } });
    fs.writeFileSync(gate, "");
    expect((await run.ended).exitCode).toBe(0);
  });

  it("stop ends it and gives running work back; drain lets it end first", async () => {
    const pool = newPool();
    const gate = join(pool.dir, "go");
    const first = await pool.start(["--workers", "1"]);
    pool.drop("t", { exec: until(gate), max_attempts: 1 });
    await waitFor(() => running(pool).includes("t"), { what: "t to run" });
    expect((await pool.run(["stop"])).code).toBe(0);
    expect((await first.ended).exitCode).toBe(0);
    expect(running(pool)).toEqual([]);
    const second = await pool.start(["--workers", "1"]);
    await waitFor(() => running(pool).includes("t"), { what: "t to run again" });
    const stop = pool.run(["stop", "--drain"]);
    await waitFor(() => pool.supervisor()?.status === "draining", { what: "draining" });
    fs.writeFileSync(gate, "");
    expect((await stop).code).toBe(0);
    expect((await second.ended).exitCode).toBe(0);
    expect(await pool.result("t")).toMatchObject({ attempts: 1 });
    expect((await pool.run(["stop"])).code).toBe(5);
  });
});
