/** A node's run: packet, phases, result, outputs, evidence; with a real supervisor, worker and agent. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Envelope } from "../../src/core/envelope.ts";
import type { Task } from "../../src/core/task.ts";
import { systemClock } from "../../src/host/system-clock.ts";
import { KvStore } from "../../src/kv/store.ts";
import type { PhasesDocument } from "../../src/parts/plan/run/phase-log.ts";
import { writeOutputsOfRecord } from "../../src/parts/plan/run/run-outputs.ts";
import { newPool, type Pool, QUICK_CONFIG, readJson } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { waitFor } from "../support/wait-for.ts";

const ALL = [
  "STRATEGIZE",
  "SPEC",
  "PLAN",
  "THINK",
  "IMPLEMENT",
  "VERIFY",
  "REVIEW",
  "PR",
  "MONITOR",
];

/** A pool whose agent `coder` is steered by files in `steps/`. @param more lines of the agent's settings */
function nodePool(
  more = "",
): Pool & { step(phase: string, script: string): void; calls(): string[] } {
  const pool = newPool();
  const steps = join(pool.dir, "steps");
  fs.mkdirSync(steps);
  const agent = `{name: coder, kind: exec, program: /bin/sh, args: [${programPath("steered-node.sh")}, ${steps}], default: true${more}}`;
  fs.writeFileSync(join(pool.state, "config.yaml"), `${QUICK_CONFIG}agents:\n  - ${agent}\n`);
  return Object.assign(pool, {
    step: (phase: string, script: string) => fs.writeFileSync(join(steps, `${phase}.sh`), script),
    calls: () =>
      fs.existsSync(join(steps, "calls"))
        ? fs.readFileSync(join(steps, "calls"), "utf8").trim().split("\n")
        : [],
  });
}

function node(
  type: string,
  brief: Record<string, unknown> = {},
  task: Partial<Task> = {},
): Partial<Task> {
  const { max_attempts = 1, ...rest } = task;
  const roadmap = { type, title: "the title", acceptance: [], inputs: [], ...brief };
  return { title: "the title", type, max_attempts, ...rest, metadata: { roadmap } };
}

function kvOf(pool: Pool, id: string): Record<string, unknown> {
  const document = readJson<Record<string, { value: unknown }>>(
    join(pool.state, "kv", `${id}.json`),
  );
  return Object.fromEntries(Object.entries(document ?? {}).map(([key, { value }]) => [key, value]));
}

function runFile(pool: Pool, run: unknown, file: string): string {
  return fs.readFileSync(join(pool.state, "runs", String(run), file), "utf8");
}

function phasesOf(pool: Pool, id: string): PhasesDocument["phases"] {
  return readJson<PhasesDocument>(join(pool.state, "evidence", id, "phases.json"))?.phases ?? [];
}

/** What `ls` shows. */
function list(dir: string): string[] {
  return fs
    .readdirSync(dir)
    .filter((name) => !name.startsWith("."))
    .sort();
}

const says = (envelope: object): string => `echo '<result>${JSON.stringify(envelope)}</result>'`;

describe("the outputs of a run", () => {
  it("are in kv after a failure, and err.summary until a success", async () => {
    const pool = nodePool();
    pool.step(
      "PLAN",
      `[ $MAILCHUTE_ATTEMPT = 2 ] && ${says({ status: "success", summary: "mended", outputs: { "ctx.port": 80 } })} && exit; ${says({ status: "fail", summary: "boom" })}`,
    );
    await pool.start();
    pool.drop("plan-000", node("plan"));
    const { run, kind, output, error } = await pool.error("plan-000");
    expect({ kind, error }).toEqual({ kind: "reported", error: "boom" });
    expect(output).toMatchObject({ status: "fail", summary: "boom" });
    const runDir = join(pool.state, "runs", String(run));
    expect(kvOf(pool, "plan-000")).toEqual({
      "out.summary": "boom",
      "out.last_stdout_path": join(runDir, "stdout.log"),
      "out.last_result_path": join(runDir, "result.json"),
      "err.summary": "boom",
    });
    expect(JSON.parse(runFile(pool, run, "result.json"))).toMatchObject({
      status: "fail",
      summary: "boom",
    });
    pool.drop("plan-001", node("plan", {}, { max_attempts: 2 }));
    const done = await pool.result("plan-001");
    expect(done).toMatchObject({ attempts: 2, verdict: "success", verdict_reason: "mended" });
    expect(kvOf(pool, "plan-001")).toMatchObject({ "out.summary": "mended", "ctx.port": 80 });
    expect(kvOf(pool, "plan-001")).not.toHaveProperty("err.summary");
    const history = fs.readFileSync(join(pool.state, "kv", "history.jsonl"), "utf8");
    expect(history).toContain('"key":"err.summary","op":"remove"');
    expect(history).toContain('"node":"plan-001","key":"err.summary","op":"put"');
  });

  it("are the same when they are made from the settled record", async () => {
    const pool = nodePool(", phases: [IMPLEMENT]");
    pool.step(
      "IMPLEMENT",
      `[ $MAILCHUTE_TASK_ID = good ] && ${says({ status: "success", summary: "done", outputs: { k: 1 } })}; exit $CODE`,
    );
    await pool.start();
    pool.drop("good", node("task", {}, { env: { CODE: "0" } }));
    pool.drop("bad", node("task", {}, { env: { CODE: "9" } }));
    pool.drop("silent", node("task", {}, { env: { CODE: "0" }, verify: [["true"]] }));
    const records = [
      await pool.result("good"),
      await pool.error("bad"),
      await pool.error("silent"),
    ];
    await pool.stop();
    const kv = new KvStore(join(pool.state, "kv"), systemClock, "process");
    const empty = new KvStore(join(pool.dir, "kv"), systemClock, "process");
    for (const record of records) {
      const runs = join(pool.state, "runs");
      expect(kv.get(record.task_id, "out.summary")?.run).toBe(record.run);
      expect(await writeOutputsOfRecord(kv, record, runs), record.task_id).toBe(false);
      expect(await writeOutputsOfRecord(empty, record, runs)).toBe(true);
      const values = [...empty.list(record.task_id)].map(([key, { value }]) => [key, value]);
      expect(Object.fromEntries(values)).toEqual(kvOf(pool, record.task_id));
    }
  });

  it("are there for nodes that run their own program, whatever becomes of it", async () => {
    const pool = nodePool();
    await pool.start();
    pool.drop("good", node("task", {}, { exec: ["echo", "hello"] }));
    const good = await pool.result("good");
    expect(good.output).toMatchObject({ status: "success", summary: "", output: "hello\n" });
    expect(JSON.parse(runFile(pool, good.run, "result.json"))).toEqual(good.output);
    expect(kvOf(pool, "good")["out.summary"]).toBe("");
    pool.drop(
      "own",
      node(
        "task",
        {},
        {
          exec: [
            "sh",
            "-c",
            `echo '{"summary": "in a file", "outputs": {"k": [1]}}' > $MAILCHUTE_RESULT_FILE`,
          ],
        },
      ),
    );
    const own = await pool.result("own");
    expect(runFile(pool, own.run, "result.json")).toBe(
      '{"summary": "in a file", "outputs": {"k": [1]}}\n',
    );
    expect(kvOf(pool, "own")).toMatchObject({ "out.summary": "in a file", k: [1] });
    pool.drop("bad", node("task", {}, { exec: ["sh", "-c", "echo it broke >&2; exit 3"] }));
    expect(await pool.error("bad")).toMatchObject({ kind: "exit", exit_code: 3 });
    expect(kvOf(pool, "bad")["err.summary"]).toBe("it broke (the program ended with exit code 3)");
    pool.drop("missing", node("task", {}, { exec: ["/nowhere/program"] }));
    await pool.error("missing");
    expect(kvOf(pool, "missing")["err.summary"]).toMatch(/^cannot start "\/nowhere\/program"/);
    expect(fs.existsSync(String(kvOf(pool, "missing")["out.last_stdout_path"]))).toBe(true);
    expect(fs.existsSync(String(kvOf(pool, "missing")["out.last_result_path"]))).toBe(true);
    expect(list(join(pool.state, "evidence", "good"))).toEqual(["implement.md", "phases.json"]);
  });
});

describe("the packet", () => {
  it("has the node's inputs, and is what MAILCHUTE_PACKET names", async () => {
    const pool = nodePool();
    const seen = join(pool.dir, "packet_seen.md");
    pool.step("PLAN", `cp $MAILCHUTE_PACKET ${seen}; ${says({ status: "success" })}`);
    await pool.run(["kv", "put", "__run__", "ctx.foo", "bar"]);
    await pool.start();
    const inputs = [
      { nodeId: "__run__", key: "ctx.foo", as: "foo" },
      { nodeId: "task-9", key: "out.summary" },
    ];
    pool.drop("plan-000", node("plan", { goal: "Reach it", acceptance: ["It works"], inputs }));
    const { run } = await pool.result("plan-000");
    const packet = fs.readFileSync(seen, "utf8");
    expect(packet).toBe(runFile(pool, run, "packet.md"));
    expect(packet).toContain(
      "## Node Inputs\n\n- __run__:ctx.foo (as foo)\n\n  ```text\n  bar\n  ```\n\n- task-9:out.summary\n",
    );
    expect(packet).toContain("## Goal\n\nReach it\n");
    expect(packet).toContain("## Acceptance\n\n- It works\n");
    pool.drop("exec", node("verify", {}, { exec: ["sh", "-c", "cat $MAILCHUTE_PACKET"] }));
    const { output } = await pool.result("exec");
    expect((output as Envelope).output).toContain("# Verify: the title");
    expect((output as Envelope).output).toContain("## Node Inputs\n\n- (none)\n");
  });

  it("of the next phase is written into no file that a phase has linked in its place", async () => {
    const pool = nodePool(", phases: [PLAN, IMPLEMENT, REVIEW]");
    const target = join(pool.dir, "target");
    fs.writeFileSync(target, "precious");
    for (const [phase, how] of [
      ["PLAN", "ln -sf"],
      ["IMPLEMENT", "ln -f"],
    ] as const)
      pool.step(phase, `${how} ${target} "$MAILCHUTE_PACKET"; ${says({ status: "success" })}`);
    await pool.start();
    pool.drop("T-1", node("task"));
    const { run } = await pool.result("T-1");
    expect(pool.calls()).toEqual(["1 PLAN", "1 IMPLEMENT", "1 REVIEW"]);
    expect(runFile(pool, run, "packet.md")).toContain("**REVIEW**");
    expect(fs.readFileSync(target, "utf8")).toBe("precious");
  });

  it("is made from the user's own template, and tells of a name in it that is not known", async () => {
    const pool = nodePool();
    pool.step("PLAN", says({ status: "success" }));
    fs.mkdirSync(join(pool.state, "templates"));
    fs.writeFileSync(
      join(pool.state, "templates", "planner.md"),
      "Mine: {{GOAL}} {{ typo }} {{node_id}}\n",
    );
    await pool.start();
    pool.drop("p", node("plan", { goal: "{{TITLE}} as it stands" }));
    const { run } = await pool.result("p");
    expect(runFile(pool, run, "packet.md")).toMatch(
      /^Mine: \{\{TITLE\}\} as it stands \{\{ typo \}\} p\n\n> Note: the template of this packet names \{\{typo\}\}, which/,
    );
  });
});

describe("the phases of a node", () => {
  it("are nine for a task, each with its call, packet, artefact and events", async () => {
    const pool = nodePool();
    pool.step(
      "SPEC",
      says({
        status: "success",
        summary: "the spec",
        outputs: { spec: 1 },
        filesChanged: ["spec.md"],
      }),
    );
    await pool.start();
    pool.drop("T-1", node("task"));
    const { run, output, verdict_reason } = await pool.result("T-1", 20_000);
    expect(pool.calls()).toEqual(ALL.map((phase) => `1 ${phase}`));
    expect(output).toMatchObject({
      summary: "did MONITOR",
      outputs: { spec: 1 },
      filesChanged: ["spec.md"],
    });
    expect(verdict_reason).toBe("did MONITOR");
    expect(phasesOf(pool, "T-1").map(({ phase, status }) => `${phase} ${status}`)).toEqual(
      ALL.map((phase) => `${phase} finished`),
    );
    const evidence = join(pool.state, "evidence", "T-1");
    for (const phase of ALL)
      expect(fs.readFileSync(join(evidence, `${phase.toLowerCase()}.md`), "utf8")).toContain(
        `# ${phase}: the title`,
      );
    expect(fs.readFileSync(join(evidence, "spec.md"), "utf8")).toContain(
      "## Summary\n\n```text\nthe spec\n```",
    );
    const events = pool
      .events()
      .filter((event) => event["task_id"] === "T-1" && event["phase"] !== undefined);
    expect(events.map((event) => `${String(event["phase"])} ${String(event["event"])}`)).toEqual(
      ALL.flatMap((phase) => [`${phase} phase_started`, `${phase} phase_finished`]),
    );
    expect(runFile(pool, run, "packet.md")).toContain("**MONITOR**");
    expect(runFile(pool, run, "packet.think.md")).toContain(
      "- SPEC is finished (attempt 1):\n\n  ```text\n  the spec\n  ```",
    );
    expect(kvOf(pool, "T-1")).toMatchObject({ "out.summary": "did MONITOR", spec: 1 });
  });

  it("go on after the last finished one when the worker was killed, and start anew for a new submission", async () => {
    const pool = nodePool();
    const killed = join(pool.dir, "killed");
    pool.step(
      "THINK",
      `[ -f ${killed} ] && ${says({ status: "success", summary: "thought" })} && exit; touch ${killed}; kill -9 $PPID; sleep 30`,
    );
    await pool.start();
    pool.drop("T-1", node("task", {}, { max_attempts: 3 }));
    const first = await pool.result("T-1", 25_000);
    expect(first.attempts).toBe(2);
    expect(pool.calls()).toEqual([
      ...ALL.slice(0, 4).map((phase) => `1 ${phase}`),
      ...ALL.slice(3).map((phase) => `2 ${phase}`),
    ]);
    expect(runFile(pool, first.run, "packet.md")).toContain(
      "- STRATEGIZE is finished (attempt 1):",
    );
    expect(phasesOf(pool, "T-1").map(({ phase, attempt }) => `${attempt} ${phase}`)).toEqual([
      ...ALL.slice(0, 3).map((phase) => `1 ${phase}`),
      ...ALL.slice(3).map((phase) => `2 ${phase}`),
    ]);
    fs.rmSync(join(pool.outbox, "T-1_result.json"));
    pool.drop("T-1", node("task", { again: 1 }));
    const second = await pool.result("T-1", 25_000);
    expect(pool.calls().slice(10)).toEqual(ALL.map((phase) => `1 ${phase}`));
    const submission = first.lease.split(".")[0] ?? "";
    expect(second.lease).not.toContain(submission);
    const earlier = join(pool.state, "evidence", "T-1", "earlier", submission);
    expect(list(earlier)).toEqual(
      [...ALL.map((phase) => `${phase.toLowerCase()}.md`), "phases.json"].sort(),
    );
  });

  it("are those that the agent sets, for every type of node", async () => {
    const pool = nodePool(", phases: [SPEC, IMPLEMENT]");
    await pool.start();
    pool.drop("T-1", node("task"));
    pool.drop("V-1", node("verify"));
    await pool.result("T-1");
    await pool.result("V-1");
    expect(pool.calls().sort()).toEqual(["1 IMPLEMENT", "1 IMPLEMENT", "1 SPEC", "1 SPEC"]);
  });

  it("are done again from IMPLEMENT when the work proves bad, by a phase or by a verify program", async () => {
    const pool = nodePool(", phases: [PLAN, IMPLEMENT, REVIEW]");
    const marks = join(pool.dir, "marks");
    pool.step(
      "REVIEW",
      `[ $MAILCHUTE_ATTEMPT = 1 ] && ${says({ status: "fail", summary: "sloppy" })} || ${says({ status: "success" })}`,
    );
    pool.step(
      "IMPLEMENT",
      `echo x >> ${marks}; ${says({ status: "success", next: { addNodes: [{ id: "X" }] } })}`,
    );
    await pool.start();
    pool.drop(
      "T-1",
      node(
        "task",
        {},
        {
          max_attempts: 4,
          verify: [["sh", "-c", `[ $(wc -l < ${marks}) -ge 3 ] || { echo too few; exit 1; }`]],
        },
      ),
    );
    const { run, output, attempts } = await pool.result("T-1");
    expect(attempts).toBe(3);
    expect(pool.calls()).toEqual([
      "1 PLAN",
      "1 IMPLEMENT",
      "1 REVIEW",
      "2 IMPLEMENT",
      "2 REVIEW",
      "3 IMPLEMENT",
      "3 REVIEW",
    ]);
    expect(output).toMatchObject({ next: { addNodes: [{ id: "X" }] } });
    expect(runFile(pool, run, "packet.implement.md")).toMatch(
      / {2}too few \(verify: "sh" ended with exit code 1\)/,
    );
    const earlier = join(pool.state, "evidence", "T-1", "earlier");
    expect(
      list(earlier)
        .map((name) => name.split(".")[1] ?? "")
        .sort(),
    ).toEqual(["1", "2"]);
    expect(kvOf(pool, "T-1")).not.toHaveProperty("err.summary");
  });

  it("share the time limit of the attempt", async () => {
    const pool = nodePool(", phases: [PLAN, IMPLEMENT]");
    pool.step("PLAN", `sleep 2; ${says({ status: "success" })}`);
    pool.step("IMPLEMENT", "sleep 60");
    await pool.start();
    pool.drop("T-1", node("task", {}, { timeout_ms: 4000 }));
    const message = "it ran longer than its limit of 4000 ms";
    expect(await pool.error("T-1")).toMatchObject({ kind: "timeout", error: message });
    expect(phasesOf(pool, "T-1").map(({ phase, status }) => `${phase} ${status}`)).toEqual([
      "PLAN finished",
      "IMPLEMENT failed",
    ]);
    expect(kvOf(pool, "T-1")["err.summary"]).toBe(message);
    const at = (name: string, phase?: string) =>
      Number(pool.events().find((e) => e["event"] === name && e["phase"] === phase)?.["t"]);
    // It had what the first phase had left of it.
    expect(at("failed") - at("phase_started", "IMPLEMENT")).toBeLessThan(4000);
  });
});

describe("the result of a node's run", () => {
  it("must be there and right when a program is the agent, unless the agent says otherwise", async () => {
    const pool = nodePool(", phases: [IMPLEMENT]");
    await pool.start();
    pool.step("IMPLEMENT", 'cat "$MAILCHUTE_PACKET"; echo done');
    pool.drop("silent", node("task"));
    const silent = await pool.error("silent");
    expect(silent).toMatchObject({ kind: "no_result", code: "ErrNoResult" });
    expect(silent.error).toContain("set `result: optional` on the agent");
    pool.step(
      "IMPLEMENT",
      `${says({ status: "success", summary: "good" })}; ${says({ status: "success", next: { setStatus: [{ id: "T-1", status: "finished" }] } })}`,
    );
    // The last valid block counts; what comes after it and cannot be used does not.
    pool.drop("later", node("task"));
    expect((await pool.result("later")).verdict_reason).toBe("good");
    pool.step("IMPLEMENT", says({ status: "sucess", next: { addNodes: [{ id: "../x" }] } }));
    pool.drop("wrong", node("task"));
    const wrong = await pool.error("wrong");
    expect(wrong).toMatchObject({ kind: "invalid_result", code: "ErrInvalidResult" });
    expect(wrong.error).toMatch(/did you mean "success"\?; next\.addNodes\[0\]\.id: "\.\.\/x"/);
    await pool.stop();

    const kind = nodePool(", phases: [IMPLEMENT], result: optional");
    kind.step("IMPLEMENT", "echo done");
    await kind.start();
    kind.drop("silent", node("task"));
    expect((await kind.result("silent")).output).toMatchObject({
      status: "success",
      output: "done\n",
    });
  });

  it("may be a question, which completes the run without its checks", async () => {
    const pool = nodePool(", phases: [PLAN, IMPLEMENT]");
    const checkpoint = {
      question: "Which one?",
      options: ["a", "b"],
      timeout_ms: 1000,
      default: "a",
    };
    pool.step("PLAN", says({ status: "checkpoint", checkpoint }));
    await pool.start();
    pool.drop("T-1", node("task", {}, { verify: [["false"]] }));
    expect(await pool.result("T-1")).toMatchObject({
      verdict: "checkpoint",
      verdict_reason: "Which one?",
      output: { status: "checkpoint", checkpoint },
    });
    expect(pool.calls()).toEqual(["1 PLAN"]);
    expect(kvOf(pool, "T-1")).toMatchObject({ "out.summary": "", "err.summary": "Which one?" });
    expect(phasesOf(pool, "T-1")).toMatchObject([{ phase: "PLAN", status: "checkpoint" }]);
  });

  it("of a module is what it returns: an envelope, or any value", async () => {
    const pool = newPool();
    const module = join(pool.dir, "agent.mjs");
    fs.writeFileSync(
      module,
      `import fs from "node:fs";
       export default (task, { phase, packetFile, log }) => {
         log("in", phase, fs.readFileSync(packetFile, "utf8").includes(task.title));
         return task.payload?.say ?? { phase };
       };`,
    );
    fs.writeFileSync(
      join(pool.state, "config.yaml"),
      `${QUICK_CONFIG}agents:\n  - {name: m, kind: module, module: ${module}, default: true, phases: [PLAN, IMPLEMENT]}\n`,
    );
    await pool.start();
    pool.drop("value", node("task"));
    const value = await pool.result("value");
    expect(value.output).toMatchObject({ status: "success", output: { phase: "IMPLEMENT" } });
    expect(runFile(pool, value.run, "stdout.log")).toBe("in PLAN true\nin IMPLEMENT true\n");
    pool.drop("fail", node("task", {}, { payload: { say: { status: "fail", errors: ["no"] } } }));
    expect(await pool.error("fail")).toMatchObject({ kind: "reported", error: "no" });
    expect(kvOf(pool, "fail")["err.summary"]).toBe("no");
  });
});

describe("a node's run that is stopped", () => {
  it("is put back with what it had finished, and goes on there", async () => {
    const pool = nodePool(", phases: [PLAN, IMPLEMENT]");
    const began = join(pool.dir, "began");
    pool.step(
      "IMPLEMENT",
      `[ -f ${began} ] && ${says({ status: "success", summary: "done" })} && exit; touch ${began}; sleep 60`,
    );
    await pool.start();
    pool.drop("T-1", node("task"));
    await waitFor(() => fs.existsSync(began), { what: "the second phase" });
    await pool.stop();
    expect(kvOf(pool, "T-1")["err.summary"]).toBe("it was interrupted (stop) and put back");
    await pool.start();
    expect(await pool.result("T-1")).toMatchObject({ attempts: 1, verdict_reason: "done" });
    expect(pool.calls()).toEqual(["1 PLAN", "1 IMPLEMENT", "1 IMPLEMENT"]);
    expect(kvOf(pool, "T-1")).not.toHaveProperty("err.summary");
  });
});
