/** A plan that drives a real pool: what the specifications of the packets, the handoff and the controls ask for. */
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { newPool, type Pool, QUICK_CONFIG } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";

takeSome();

/** An agent that runs `script` with a shell, once a node. */
const agent = (script: string, more = ""): string =>
  `${QUICK_CONFIG}
agents:
  - name: mock
    kind: exec
    program: sh
    args: [-c, ${JSON.stringify(script)}]
    default: true
    phases: [IMPLEMENT]
${more}`;

const say = (result: object): string => `echo '<result>${JSON.stringify(result)}</result>'`;
const ONE_ITERATION = [
  "run",
  "--max-iterations",
  "1",
  "--interval-ms",
  "0",
  "--no-live",
  "--no-color",
];

function plan(pool: Pool, text: string): void {
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), text);
}

function readJson(path: string): Record<string, unknown> {
  return JSON.parse(fs.readFileSync(path, "utf8")) as Record<string, unknown>;
}

/** While it is being replaced there is no file for some microseconds: then we look again. */
function readReplaced(path: string): string {
  const untilMs = performance.now() + 5000;
  for (;;) {
    try {
      return fs.readFileSync(path, "utf8");
    } catch (error) {
      if (performance.now() > untilMs) throw error;
    }
  }
}

function statuses(pool: Pool): Record<string, string> {
  const text = readReplaced(join(pool.state, "roadmap.yaml"));
  const { nodes } = parse(text) as { nodes: { id: string; status: string }[] };
  return Object.fromEntries(nodes.map((node) => [node.id, node.status]));
}

function kv(pool: Pool, node: string): Record<string, unknown> {
  const text = fs.readFileSync(join(pool.state, "kv", `${node}.json`), "utf8");
  return Object.fromEntries(
    Object.entries(JSON.parse(text) as Record<string, { value: unknown }>).map(([key, entry]) => [
      key,
      entry.value,
    ]),
  );
}

const until = (pool: Pool, id: string, status: string): Promise<boolean> =>
  waitFor(() => statuses(pool)[id] === status, { what: `${id} to be ${status}` });

describe("the handoff from node to node", () => {
  it("leaves summary, paths and error of a failed run in kv", async () => {
    const pool = newPool({ config: agent(say({ status: "fail", summary: "boom" })) });
    plan(pool, "nodes:\n  - { id: plan-000, type: plan, retry_policy: { max_attempts: 1 } }\n");
    await pool.run(ONE_ITERATION);
    const values = kv(pool, "plan-000");
    expect(values).toMatchObject({ "out.summary": "boom", "err.summary": "boom" });
    const run = join(pool.state, "runs", pool.runs()[0] as string);
    expect(values["out.last_stdout_path"]).toBe(join(run, "stdout.log"));
    expect(values["out.last_result_path"]).toBe(join(run, "result.json"));
    expect(fs.existsSync(join(run, "stdout.log"))).toBe(true);
    expect(JSON.parse(fs.readFileSync(join(run, "result.json"), "utf8"))).toMatchObject({
      status: "fail",
    });
    expect(statuses(pool)).toEqual({ "plan-000": "failed" });
    expect(fs.existsSync(join(pool.state, "evidence", "plan-000", "summary.md"))).toBe(true);
  });

  it("forgets the error when a later run succeeds", async () => {
    const flaky = `if [ -e again ]; then ${say({ status: "success", summary: "fine" })}; else touch again; ${say({ status: "fail", summary: "boom" })}; fi`;
    const pool = newPool({ config: agent(flaky) });
    plan(pool, "nodes:\n  - { id: shaky, retry_policy: { max_attempts: 2 } }\n");
    const { code } = await pool.run(["run", "--drain", "--no-live"]);
    expect(code).toBe(0);
    expect(kv(pool, "shaky")["out.summary"]).toBe("fine");
    expect(kv(pool, "shaky")).not.toHaveProperty("err.summary");
  });

  it("shows a node its inputs in its packet", async () => {
    const pool = newPool({
      config: agent(`cp "$MAILCHUTE_PACKET" packet_seen.md; ${say({ status: "success" })}`),
    });
    plan(
      pool,
      `nodes:
  - id: plan-000
    type: plan
    status: open
    goal: find a way
    inputs: [{ nodeId: __run__, key: ctx.foo, as: foo }, { nodeId: __run__, key: ctx.none }]
`,
    );
    expect((await pool.run(["kv", "put", "__run__", "ctx.foo", "bar"])).code).toBe(0);
    await pool.run(ONE_ITERATION);
    const packet = fs.readFileSync(join(pool.dir, "packet_seen.md"), "utf8");
    const inputs = packet.slice(packet.indexOf("## Node Inputs"));
    expect(inputs).toContain("__run__:ctx.foo");
    expect(inputs).toContain("bar");
    expect(inputs).toContain("__run__:ctx.none");
    expect(packet).toContain("find a way");
  });
});

describe("what comes of a failure", () => {
  it("is escalated level by level up to the root, and the run ends with exit code 1", async () => {
    const pool = newPool({ config: agent(say({ status: "fail", summary: "no way" })) });
    plan(
      pool,
      `nodes:
  - { id: plan-root, type: plan, status: done }
  - { id: plan-child, type: plan, status: done, parent: plan-root }
  - { id: task-a, parent: plan-child, status: open, retry_policy: { max_attempts: 1 } }
`,
    );
    const { code } = await pool.run(["run", "--drain", "--no-live"]);
    expect(code).toBe(1);
    expect(statuses(pool)).toEqual({
      "plan-root": "done",
      "plan-child": "done",
      "task-a": "failed",
      "plan-escalate-task-a": "failed",
      "plan-escalate-plan-child": "failed",
    });
    const escalated = pool.events().filter((event) => event["event"] === "escalated");
    expect(escalated.map((event) => event["to"])).toEqual([
      "plan-escalate-task-a",
      "plan-escalate-plan-child",
    ]);
    expect(pool.alerts().map((alert) => alert["alert"])).toContain("escalation_stopped");
  });

  it("is told to an escalation that ran already when it came, as soon as that has ended", async () => {
    const planner = [
      `case "$MAILCHUTE_TASK_ID" in plan-escalate-task-*) ${say({ status: "fail", summary: "no way" })}; exit;; esac`,
      'cat "$MAILCHUTE_PACKET" >> packets.txt',
      "until grep -q 'id: plan-escalate-task-b, type: plan, status: failed' state/roadmap.yaml; do sleep 0.1; done",
      say({ status: "success", summary: "it is good" }),
    ].join("\n");
    const pool = newPool({ config: agent(planner) });
    const isUnderWay = "id: plan-escalate-plan-child, type: plan, status: in_progress";
    const late = `until grep -q '${isUnderWay}' state/roadmap.yaml; do sleep 0.1; done; exit 1`;
    plan(
      pool,
      `nodes:
  - { id: plan-root, type: plan, status: done }
  - { id: plan-child, type: plan, status: done, parent: plan-root }
  - { id: task-a, parent: plan-child, status: open, exec: ["false"], retry_policy: { max_attempts: 1 } }
  - { id: task-b, parent: plan-child, status: open, exec: [sh, -c, ${JSON.stringify(late)}], retry_policy: { max_attempts: 1 } }
`,
    );
    await pool.run(["run", "--drain", "--no-live", "--workers", "2"]);
    expect(statuses(pool)).toMatchObject({
      "plan-escalate-task-b": "failed",
      "plan-escalate-plan-child": "done",
    });
    const packets = fs.readFileSync(join(pool.dir, "packets.txt"), "utf8");
    expect(packets.split("plan-escalate-task-a:err.summary")).toHaveLength(2);
    expect(packets.split("plan-escalate-task-b:err.summary")).toHaveLength(2);
  });

  it("is resolved by a planner that adds a node and takes the failed one out of the way", async () => {
    const planner = say({
      status: "success",
      summary: "another way",
      next: {
        addNodes: [{ id: "task-b", title: "The other way", exec: ["true"] }],
        setStatus: [{ id: "task-a", status: "done" }],
      },
    });
    const pool = newPool({
      config: agent(
        "exit 1",
        `  - {name: planner, kind: exec, program: sh, args: [-c, ${JSON.stringify(planner)}], types: [planner]}\n`,
      ),
    });
    plan(
      pool,
      `nodes:
  - { id: plan-root, type: plan, status: done }
  - { id: task-a, parent: plan-root, status: open, retry_policy: { max_attempts: 1 } }
  - { id: last, parent: plan-root, status: open, exec: ["true"], dependencies: [task-a] }
`,
    );
    const { code, stdout } = await pool.run(["run", "--drain", "--no-live"]);
    expect(statuses(pool)).toEqual({
      "plan-root": "done",
      "task-a": "done",
      last: "done",
      "plan-escalate-task-a": "done",
      "task-b": "done",
    });
    expect(stdout).toContain("roadmap: 5 done");
    expect(code).toBe(0);
  });
});

describe("a question", () => {
  const asking = `if grep -q blue "$MAILCHUTE_PACKET"; then ${say({ status: "success", summary: "painted" })}; else ${say({ status: "checkpoint", checkpoint: { question: "Which colour?", options: ["red", "blue"] } })}; fi`;

  it("waits for a person, whose answer is in the packet of the next run", async () => {
    const pool = newPool({ config: agent(asking) });
    plan(pool, "nodes:\n  - { id: paint, status: open }\n");
    expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(1);
    expect(statuses(pool)).toEqual({ paint: "needs_human" });
    const answered = await pool.run(["answer", "PAINT", "blue", "--json"]);
    expect(JSON.parse(answered.stdout)).toEqual({
      id: "paint",
      question: "Which colour?",
      answer: "blue",
    });
    expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(0);
    expect(statuses(pool)).toEqual({ paint: "done" });
    expect(kv(pool, "paint")["out.summary"]).toBe("painted");
    const earlier = fs.readdirSync(join(pool.state, "evidence", "paint", "earlier"));
    expect(earlier).not.toEqual([]);
  });

  it("answers itself with its safe default when its time is over", async () => {
    const timed = asking.replace('"options"', '"timeout_ms":300,"default":"blue","options"');
    const pool = newPool({ config: agent(timed) });
    plan(pool, "nodes:\n  - { id: paint, status: open }\n");
    expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(0);
    expect(statuses(pool)).toEqual({ paint: "done" });
  });

  it("is not answered where none was asked", async () => {
    const pool = newPool();
    plan(pool, "nodes:\n  - { id: calm, status: open }\n");
    expect((await pool.run(["answer", "calm", "yes"])).code).toBe(4);
    expect((await pool.run(["answer", "nobody", "yes"])).code).toBe(3);
  });
});

/** Nodes that run until the file `go-ID` is there. */
function held(pool: Pool, ids: readonly string[]): string {
  const nodes = ids.map((id) => {
    const script = `while [ ! -e ${join(pool.dir, `go-${id}`)} ]; do sleep 0.1; done`;
    return `  - { id: ${id}, status: open, exec: [sh, -c, ${JSON.stringify(script)}] }`;
  });
  return `nodes:\n  - { id: plan-000, type: plan, status: done }\n${nodes.join("\n")}\n`;
}

const letGo = (pool: Pool, id: string): void => fs.writeFileSync(join(pool.dir, `go-${id}`), "");

describe("controls", () => {
  it("a node that waits for its retry leaves its worker to the others", async () => {
    const config = QUICK_CONFIG.replace(/retry:.*/, "retry: {max_attempts: 3, backoff_ms: 60000}");
    const pool = newPool({ config });
    const flaky = '  - { id: flaky, status: open, priority: high, exec: [sh, -c, "exit 75"] }\n';
    plan(pool, `nodes:\n${flaky}  - { id: other, status: open, exec: ["true"] }\n`);
    await pool.start(["--workers", "1"]);
    await until(pool, "other", "done");
    expect(statuses(pool)["flaky"]).toBe("in_progress");
  });

  it("a node that a person blocks, or has done himself, is not tried again", async () => {
    const config = QUICK_CONFIG.replace(/retry:.*/, "retry: {max_attempts: 3, backoff_ms: 60000}");
    const pool = newPool({ config });
    const flaky = 'status: open, exec: [sh, -c, "exit 75"]';
    plan(pool, `nodes:\n  - { id: mine, ${flaky} }\n  - { id: never, ${flaky} }\n`);
    const running = await pool.start(["--drain"]);
    await waitFor(
      () => pool.events().filter((event) => event["event"] === "released").length === 2,
      { what: "both to wait for their retry" },
    );
    expect((await pool.run(["node", "set-status", "mine", "done"])).code).toBe(0);
    expect((await pool.run(["node", "set-status", "never", "blocked"])).code).toBe(0);
    expect((await running.ended).exitCode).toBe(1);
    expect(statuses(pool)).toEqual({ mine: "done", never: "blocked" });
    expect([...fs.readdirSync(pool.inbox), ...fs.readdirSync(pool.processing)]).toEqual([]);
    expect(pool.settledCount()).toBe(0);
  });

  it("a node that a person blocks while no supervisor runs is not tried again by the next one", async () => {
    const config = QUICK_CONFIG.replace(/retry:.*/, "retry: {max_attempts: 3, backoff_ms: 60000}");
    const pool = newPool({ config });
    plan(pool, "nodes:\n  - { id: task, status: open, exec: [sh, -c, 'exit 1'] }\n");
    const first = await pool.start();
    await waitFor(() => pool.events().some((event) => event["event"] === "retry_scheduled"), {
      what: "the node to wait for its retry",
    });
    // Its worker lives on for a while, and keeps the output open.
    const gone = once(first.child, "exit");
    first.child.kill("SIGKILL");
    await gone;
    expect((await pool.run(["node", "set-status", "task", "blocked"])).code).toBe(0);
    const next = await pool.start(["--drain"]);
    expect((await next.ended).exitCode).toBe(1);
    expect(pool.events().filter((event) => event["event"] === "started")).toHaveLength(1);
    expect(statuses(pool)).toEqual({ task: "blocked" });
    expect([...fs.readdirSync(pool.inbox), ...fs.readdirSync(pool.processing)]).toEqual([]);
  });

  it("a node that is taken back while it waits for its retry begins anew with its new text", async () => {
    const config = QUICK_CONFIG.replace(/retry:.*/, "retry: {max_attempts: 3, backoff_ms: 60000}");
    const pool = newPool({ config });
    plan(pool, 'nodes:\n  - { id: task, status: open, exec: [sh, -c, "exit 75"] }\n');
    const running = await pool.start(["--drain"]);
    await waitFor(() => pool.events().some((event) => event["event"] === "released"), {
      what: "the node to wait for its retry",
    });
    expect((await pool.run(["node", "update", "task", "--", "true"])).code).toBe(0);
    const adoptions = (): number =>
      pool.events().filter((event) => event["event"] === "roadmap_loaded").length;
    await waitFor(() => adoptions() > 1, {
      what: "the new text to be in force",
    });
    expect((await pool.run(["cancel", "--requeue", "task", "--wait"])).code).toBe(0);
    expect((await running.ended).exitCode).toBe(0);
    expect(statuses(pool)).toEqual({ task: "done" });
  });

  it("cancel stops a node and opens it again, without using up an attempt", async () => {
    const pool = newPool();
    plan(pool, held(pool, ["task-long"]));
    const running = await pool.start(["--drain"]);
    await until(pool, "task-long", "in_progress");
    await waitFor(() => pool.events().some((event) => event["event"] === "started"), {
      what: "the node to run",
    });
    await pool.run(["pause", "--wait"]);
    const cancel = await pool.run(["control", "cancel", "--node", "task-long", "--wait"]);
    expect(cancel.code).toBe(0);
    await until(pool, "task-long", "open");
    expect(fs.readdirSync(pool.inbox).filter((file) => file.endsWith(".json"))).toEqual([]);
    expect(fs.readdirSync(pool.processing)).toEqual([]);
    const again = await pool.run(["control", "cancel", "--node", "task-long", "--wait"]);
    expect(again.stderr).toContain("not in flight");
    expect((await pool.run(["node", "set-status", "task-long", "done"])).code).toBe(0);
    await pool.run(["resume", "--wait"]);
    expect((await running.ended).exitCode).toBe(0);
    expect(statuses(pool)["task-long"]).toBe("done");
  });
});

describe("a person and the file", () => {
  it("keeps the last good plan in force while the text is broken, and says so", async () => {
    const pool = newPool();
    plan(pool, held(pool, ["a", "b", "c"]).replace("id: b, ", "id: b, dependencies: [a], "));
    const running = await pool.start(["--drain"]);
    await until(pool, "a", "in_progress");
    const path = join(pool.state, "roadmap.yaml");
    const good = fs.readFileSync(path, "utf8");
    const broken = `${good}  - { id: a, status: open }\n`;
    fs.writeFileSync(path, broken);
    await waitFor(() => pool.supervisor()?.roadmap_problem?.includes("roadmap.yaml:6:"), {
      what: "the supervisor to say what is wrong, and where",
    });
    letGo(pool, "a");
    letGo(pool, "b");
    await pool.result("b");
    expect(fs.readFileSync(path, "utf8")).toBe(broken);
    fs.writeFileSync(path, good.replace("nodes:", "# mended\nnodes:"));
    await until(pool, "b", "done");
    letGo(pool, "c");
    expect((await running.ended).exitCode).toBe(0);
    expect(statuses(pool)).toMatchObject({ a: "done", b: "done", c: "done" });
    expect(fs.readFileSync(path, "utf8")).toMatch(/^# mended\n/);
  });

  it("has a node fail, and its evidence say so, when a person's text no longer allows what it wants next", async () => {
    const wish = say({
      status: "success",
      next: { addNodes: [{ id: "task-b", title: "After the base", dependencies: ["base"] }] },
    });
    const planner = `while [ ! -e go-wish ]; do sleep 0.1; done; ${wish}`;
    const pool = newPool({
      config: agent(
        "exit 0",
        `  - {name: planner, kind: exec, program: sh, args: [-c, ${JSON.stringify(planner)}], types: [planner]}\n`,
      ),
    });
    const wanting = "  - { id: wish, type: plan, status: open }\n";
    plan(pool, `nodes:\n  - { id: base, exec: ["true"], status: done }\n${wanting}`);
    const running = await pool.start(["--drain"]);
    await until(pool, "wish", "in_progress");
    plan(pool, "nodes: [");
    await waitFor(() => pool.supervisor()?.roadmap_problem, { what: "the text to be refused" });
    letGo(pool, "wish");
    await pool.result("wish");
    const bundle = join(pool.state, "evidence", "wish");
    await waitFor(() => fs.existsSync(join(bundle, "summary.md")), { what: "the first evidence" });
    expect(readJson(join(bundle, "lifecycle.json"))).toMatchObject({ status: "done" });
    plan(pool, "nodes:\n  - { id: wish, type: plan, status: in_progress }\n");
    await until(pool, "wish", "failed");
    expect((await running.ended).exitCode).toBe(1);
    expect(statuses(pool)).not.toHaveProperty("task-b");
    const lifecycle = readJson(join(bundle, "lifecycle.json"));
    expect(lifecycle).toMatchObject({ status: "failed", ended: "completed" });
    expect(lifecycle["error"]).toContain("base");
    expect((lifecycle["events"] as unknown[]).length).toBeGreaterThan(3);
    expect(fs.readFileSync(join(bundle, "summary.md"), "utf8")).toMatch(
      /- status: failed.*What went wrong.*base/s,
    );
  });

  it("sets a node aside whose item cannot be changed, until another text says it in another way", async () => {
    const pool = newPool();
    const odd = '  - { id: odd, exec: ["true"], status: # mine\n        open }\n';
    plan(pool, `nodes:\n  - { id: even, status: open, exec: ["true"] }\n${odd}`);
    const told = (): number =>
      pool.alerts().filter((one) => String(one["message"]).includes("change status of odd")).length;
    expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(1);
    expect(told()).toBe(1);
    expect(statuses(pool)).toEqual({ even: "done", odd: "open" });
    await pool.start();
    await waitFor(() => told() === 2, { what: "the node to be set aside again" });
    plan(pool, 'nodes:\n  - { id: odd, exec: ["true"], status: open }\n');
    await until(pool, "odd", "done");
  });

  it("runs a node again when somebody sets it open, and keeps the record of its first run", async () => {
    const pool = newPool();
    plan(pool, 'nodes:\n  - { id: once, status: open, exec: ["true"] }\n');
    expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(0);
    expect((await pool.run(["node", "set-status", "once", "open"])).code).toBe(0);
    expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(0);
    const completed = pool.events().filter((event) => event["event"] === "completed");
    expect(completed).toHaveLength(2);
    expect(fs.readdirSync(join(pool.state, "evidence", "once", "earlier"))).toHaveLength(1);
  });

  it("runs done nodes again that commands set open, also all of them at once", async () => {
    const pool = newPool();
    const ids = ["a", "b", "c"];
    plan(pool, held(pool, ids));
    for (const id of ids) letGo(pool, id);
    await pool.start(["--workers", "3"]);
    for (const id of ids) await until(pool, id, "done");
    const completed = (): number =>
      pool.events().filter((event) => event["event"] === "completed").length;
    const codes = ids.map(async (id) => (await pool.run(["node", "set-status", id, "open"])).code);
    expect(await Promise.all(codes)).toEqual([0, 0, 0]);
    await waitFor(() => completed() === 6, { what: "all to have run twice" });
    for (const id of ids) await until(pool, id, "done");
    expect(pool.alerts()).toEqual([]);
  });

  it("leaves a foreign task of the same id alone", async () => {
    const pool = newPool();
    pool.drop("mine", { exec: ["true"], not_before: 4_000_000_000 });
    plan(pool, 'nodes:\n  - { id: mine, status: open, exec: ["true"] }\n');
    await pool.start();
    await waitFor(
      () => pool.alerts().some((alert) => String(alert["message"]).includes("not the plan's own")),
      { what: "an alert" },
    );
    expect(statuses(pool)).toEqual({ mine: "open" });
    expect(fs.readdirSync(pool.inbox)).toEqual(["mine.json"]);
  });

  it("lets a foreign task run again that has the id of a blocked node", async () => {
    const slowly = "retry: {backoff_ms: 1000, backoff_max_ms: 1000}";
    const pool = newPool({ config: `workers: 1\nsweep_ms: 100\n${slowly}\n` });
    const script = "echo run >> ran; test $(wc -l < ran) = 2";
    pool.drop("mine", { exec: ["sh", "-c", script], cwd: pool.dir, max_attempts: 2 });
    plan(pool, 'nodes:\n  - { id: mine, status: blocked, exec: ["true"] }\n');
    await pool.run(["run", "--drain", "--no-live"]);
    expect(fs.readFileSync(join(pool.dir, "ran"), "utf8")).toBe("run\nrun\n");
    expect(fs.readdirSync(pool.outbox)).toEqual(["mine_result.json"]);
    expect(statuses(pool)).toEqual({ mine: "blocked" });
  });

  it("runs a node once the foreign task of its id has gone", async () => {
    const pool = newPool();
    pool.drop("mine", { exec: ["true"], not_before: 4_000_000_000 });
    plan(pool, 'nodes:\n  - { id: mine, status: open, exec: ["true"] }\n');
    await pool.start();
    await waitFor(
      () => pool.alerts().some((alert) => String(alert["message"]).includes("not the plan's own")),
      { what: "an alert" },
    );
    fs.rmSync(join(pool.inbox, "mine.json"));
    await until(pool, "mine", "done");
  });

  it("does not launch a node again and again while something else stands where its result belongs", async () => {
    const pool = newPool();
    const path = join(pool.state, "roadmap.yaml");
    fs.mkdirSync(join(pool.outbox, "mine_result.json"));
    plan(pool, 'nodes:\n  - { id: mine, status: open, exec: ["true"] }\n');
    await pool.start();
    const isTold = (): boolean =>
      pool.alerts().some((alert) => String(alert["message"]).includes("not the plan's own"));
    const texts = new Set<string>();
    const hasSettled = (): boolean => {
      const stats = fs.statSync(path, { throwIfNoEntry: false });
      if (stats !== undefined) texts.add(`${stats.ino} ${stats.ctimeMs}`);
      return pool.settledCount() === 2;
    };
    await waitFor(isTold, { what: "an alert" });
    pool.drop("meanwhile", { exec: ["sleep", "2"] });
    await waitFor(hasSettled, { what: "some surveys of the plan" });
    expect(texts.size).toBeLessThanOrEqual(4);
    expect(statuses(pool)).toEqual({ mine: "open" });
    fs.rmdirSync(join(pool.outbox, "mine_result.json"));
    await until(pool, "mine", "done");
  });

  it("counts an epic as met for a task of the mailbox when all that is in it is done", async () => {
    const pool = newPool();
    plan(
      pool,
      'epics:\n  - id: E1\n    tasks:\n      - { id: in-it, status: pending, exec: ["true"] }\nnodes: []\n',
    );
    pool.drop("after", { exec: ["true"], metadata: { dependencies: ["E1"] } });
    await pool.start();
    await pool.result("after");
  });

  it("holds a task of the mailbox while something in the epic that it depends on is not done, whatever the epic says", async () => {
    const pool = newPool();
    const inEpic = (more: string): string =>
      `epics:\n  - id: E1\n    status: done\n    tasks:\n      - { id: in-it, status: done }\n${more}nodes: []\n`;
    plan(pool, inEpic('      - { id: later, status: open, exec: ["false"] }\n'));
    pool.drop("after", { exec: ["true"], metadata: { dependencies: ["e1"] } });
    const { code } = await pool.run(["run", "--drain", "--no-live"]);
    expect(code).toBe(1);
    expect(fs.readdirSync(pool.inbox)).toContain("after.json");
    plan(pool, inEpic(""));
    expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(0);
    await pool.result("after");
  });

  it("holds a task of the mailbox until the node that it depends on is done", async () => {
    const pool = newPool();
    plan(pool, held(pool, ["first"]));
    pool.drop("then", { exec: ["true"], metadata: { dependencies: ["first"] } });
    await pool.start();
    await until(pool, "first", "in_progress");
    expect(fs.readdirSync(pool.inbox)).toContain("then.json");
    letGo(pool, "first");
    await pool.result("then");
  });
});
