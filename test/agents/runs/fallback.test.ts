/** A task of several agents: when one is at its limit, paused or over its budget, the next one takes the work over. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { closeGate, openGate } from "../../../src/agents/accounts/gate-rules.ts";
import { GIT_ENVIRONMENT, newRepository } from "../../support/git-repository.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, type FakeAgent, newBench, type Step } from "./bench.ts";

takeSome();

const HOUR_MS = 3_600_000;
const inAnHour = (): number => Math.ceil((Date.now() + HOUR_MS) / 1000);
const AGENTS = ["coder", "coder-codex", "cheap"];

/** The first is a claude, the second a codex, the third of kind acp. */
function benchOf(
  turns: Record<string, readonly (readonly Step[])[]>,
  settings: Record<string, Record<string, unknown>> = {},
): Bench {
  const kinds = ["claude", "codex", "acp"] as const;
  const agents = AGENTS.map(
    (name, index): FakeAgent => ({
      name,
      kind: kinds[index] ?? "acp",
      turns: turns[name] ?? [],
      settings: settings[name] ?? {},
    }),
  );
  return newBench(agents, { place: { env: { ...GIT_ENVIRONMENT } } });
}

function closeAccount(bench: Bench, account: string): void {
  const path = bench.gatePath(account);
  const refusal = { untilMs: Date.now() + HOUR_MS, window: null, reason: "5-hour limit" };
  fs.mkdirSync(join(path, ".."), { recursive: true });
  fs.writeFileSync(path, JSON.stringify(closeGate(openGate(account), refusal, Date.now(), 0.5)));
}

const starts = (bench: Bench): number[] => AGENTS.map((name) => bench.starts(name).length);

describe("when the first agent is at its limit", () => {
  it("the second one goes on, and is told what the first one did", async () => {
    const bench = benchOf({
      coder: [[{ say: "half of it is done" }, { limit: inAnHour() }]],
      "coder-codex": [[{ say: "the other half" }]],
    });
    const { pool } = bench;
    await pool.start();
    pool.drop("task", { agents: AGENTS, prompt: "do task", max_attempts: 1 });
    const record = await pool.result("task");
    expect(record).toMatchObject({
      output: "the other half",
      attempts: 1,
      agent_id: "coder-codex",
      agents_before: ["coder"],
    });
    expect(starts(bench)).toEqual([1, 1, 0]);
    const [told] = bench.messages("coder-codex");
    expect(told).toContain("do task");
    expect(told).toContain("half of it is done");
    expect(bench.costs("coder-codex").map(({ outcome }) => outcome)).toEqual(["completed"]);
    // What comes later does not try the closed one.
    pool.drop("later", { agents: AGENTS, prompt: "do it", max_attempts: 1 });
    expect(await pool.result("later")).toMatchObject({ agent_id: "coder-codex" });
    expect(starts(bench)).toEqual([1, 2, 0]);
  });

  it("ten items all land, each once, also those that come after the limit", async () => {
    const work = { run: "echo done > $MAILCHUTE_TASK_ID.txt" };
    const bench = benchOf(
      {
        coder: [[work], [work], [work, { limit: inAnHour() }]],
        "coder-codex": [[work]],
      },
      {
        coder: {
          fallback: ["coder-codex"],
          worktree: "auto",
          land: "merge",
          verify: ["sh", "-c", "ls t*.txt"],
        },
      },
    );
    const { pool } = bench;
    const repo = newRepository(join(pool.dir, "repo"));
    const ids = Array.from({ length: 10 }, (_, n) => `t${n}`);
    for (const id of ids)
      pool.drop(id, { agent: "coder", prompt: id, max_attempts: 1, cwd: repo.dir });
    const { ended } = await pool.start(["--drain", "--workers", "1"]);
    expect(await ended).toMatchObject({ exitCode: 0 });
    const authors = await Promise.all(ids.map(async (id) => (await pool.result(id)).agent_id));
    expect(authors.filter((name) => name === "coder")).toHaveLength(2);
    expect(authors.filter((name) => name === "coder-codex")).toHaveLength(8);
    const of = (name: string): string[] =>
      bench
        .costs(name)
        .filter(({ outcome }) => outcome === "completed")
        .map(({ task_id: id }) => id);
    expect(of("coder")).toEqual(ids.filter((_, n) => authors[n] === "coder"));
    expect([...of("coder"), ...of("coder-codex")].sort()).toEqual(ids);
    for (const id of ids)
      expect(await pool.result(`${id}.land`)).toMatchObject({ output: { landing: "landed" } });
    const target = "mailchute/integration";
    expect(repo.git("log", "--format=%s", target).split("\n").sort()).toEqual(["first", ...ids]);
  });

  it("a session that has begun waits when the limit is over soon", async () => {
    const bench = benchOf({
      coder: [[{ say: "half" }, { limitForS: 3 }], [{ say: "whole" }]],
      "coder-codex": [[{ say: "not here" }]],
    });
    const { pool } = bench;
    await pool.start();
    pool.drop("task", { agents: AGENTS, prompt: "do task", max_attempts: 1 });
    expect(await pool.result("task")).toMatchObject({ output: "whole", agent_id: "coder" });
    expect(starts(bench)).toEqual([2, 0, 0]);
  });

  it("the settings of the agent say who stands in, for all its tasks", async () => {
    const bench = benchOf(
      { coder: [[{ say: "not now" }]], cheap: [[{ say: "cheap" }]] },
      { coder: { fallback: ["coder-codex", "cheap"] } },
    );
    const { pool } = bench;
    closeAccount(bench, "coder");
    closeAccount(bench, "coder-codex");
    await pool.start();
    pool.drop("task", { agent: "coder", prompt: "go", group: "night" });
    expect(await pool.result("task")).toMatchObject({ output: "cheap", agent_id: "cheap" });
    const status = (await pool.run(["status"])).stdout.replace(/\s+/g, " ");
    expect(status).toContain("tasks of coder go to coder-codex, cheap");
    expect(status).toContain("tasks of coder-codex wait");
    // A task that names only one agent waits for that one.
    pool.drop("own", { agents: ["coder"], prompt: "go" });
    const waited = await pool.run(["wait", "own", "--timeout", "1s"]);
    expect(waited.stderr).toContain("account coder: no run before");
    expect(starts(bench)).toEqual([0, 0, 1]);
  });

  it("waits while all are closed, says why, and goes on with the first one that opens", async () => {
    const bench = benchOf({ cheap: [[{ say: "cheap" }]] });
    const { pool } = bench;
    for (const name of AGENTS) closeAccount(bench, name);
    await pool.start();
    pool.drop("task", { agents: AGENTS, prompt: "go" });
    const waited = await pool.run(["wait", "task", "--timeout", "1s"]);
    expect(waited.stderr).toContain("account coder: no run before");
    expect((await pool.run(["why", "task"])).stdout).toContain("account coder");
    fs.rmSync(bench.gatePath("cheap"));
    expect(await pool.result("task")).toMatchObject({ agent_id: "cheap" });
    expect(starts(bench)).toEqual([0, 0, 1]);
  });

  it("a killed worker's task stays with the agent that has it", async () => {
    const bench = benchOf({
      "coder-codex": [[{ say: "begun" }, { sleepMs: 60_000 }], [{ say: "done" }]],
    });
    const { pool } = bench;
    closeAccount(bench, "coder");
    await pool.start();
    pool.drop("task", { agents: AGENTS, prompt: "go" });
    await waitFor(() => bench.starts("coder-codex").length === 1, { what: "the first run" });
    await waitFor(() => bench.session("task")?.session_id, { what: "its session" });
    await pool.killAll();
    await pool.start();
    expect(await pool.result("task", 60_000)).toMatchObject({
      output: "done",
      agent_id: "coder-codex",
    });
    expect(bench.resumed("coder-codex")[1]).toBeTypeOf("string");
    expect(starts(bench)).toEqual([0, 2, 0]);
  });
});

describe("when the first agent is not at its limit", () => {
  it("a paused one is passed over", async () => {
    const bench = benchOf({
      coder: [[{ fail: 401 }], [{ fail: 401 }]],
      "coder-codex": [[{ say: "ok" }]],
    });
    const { pool } = bench;
    await pool.start();
    // The account is not let in twice: that pauses the agent.
    pool.drop("task", { agents: AGENTS, prompt: "go", max_attempts: 1 });
    expect(await pool.result("task")).toMatchObject({ attempts: 1, agent_id: "coder-codex" });
    pool.drop("later", { agents: AGENTS, prompt: "go", max_attempts: 1 });
    expect(await pool.result("later")).toMatchObject({ agent_id: "coder-codex" });
    expect(starts(bench)).toEqual([2, 2, 0]);
  });

  it("one over its budget is passed over", async () => {
    const bench = benchOf(
      {
        coder: [[{ usage: { input: 10, cost: 0.1 } }, { say: "ok" }]],
        "coder-codex": [[{ say: "ok" }]],
      },
      { coder: { budget: { day_usd: 0.05 } } },
    );
    const { pool } = bench;
    await pool.start();
    pool.drop("first", { agents: AGENTS, prompt: "go" });
    expect(await pool.result("first")).toMatchObject({ agent_id: "coder" });
    pool.drop("second", { agents: AGENTS, prompt: "go" });
    expect(await pool.result("second")).toMatchObject({ agent_id: "coder-codex" });
    expect(starts(bench)).toEqual([1, 1, 0]);
  });

  it("one without slots runs nothing, also no retry of another one's task", async () => {
    const bench = benchOf(
      { "coder-codex": [[{ fail: 500 }], [{ say: "ok" }]] },
      { coder: { slots: 0, fallback: ["coder-codex"] }, "coder-codex": { slots: 1 } },
    );
    const { pool } = bench;
    for (const id of ["a", "b"]) pool.drop(id, { agent: "coder", prompt: "go", max_attempts: 3 });
    await (await pool.start(["--drain", "--workers", "3"])).ended;
    for (const id of ["a", "b"])
      expect(await pool.result(id)).toMatchObject({ agent_id: "coder-codex" });
    expect(starts(bench)).toEqual([0, 3, 0]);
  });

  it("a busy one is waited for", async () => {
    const bench = benchOf(
      { coder: [[{ sleepMs: 500 }, { say: "ok" }]] },
      { coder: { slots: 1, fallback: ["coder-codex"] } },
    );
    const { pool } = bench;
    for (const id of ["a", "b", "c"]) pool.drop(id, { agent: "coder", prompt: "go" });
    await (await pool.start(["--drain", "--workers", "3"])).ended;
    for (const id of ["a", "b", "c"])
      expect(await pool.result(id)).toMatchObject({ agent_id: "coder" });
    expect(starts(bench)).toEqual([3, 0, 0]);
  });
});

it("no two agents have a task at once, whatever is killed and closed", async () => {
  const seed = Number(process.env["MAILCHUTE_SEED"] ?? Math.floor(Math.random() * 1e6));
  const random = seededRandom(seed);
  // Each run holds a lock that its death frees.
  const work = {
    run: "flock -n $MAILCHUTE_TASK_ID.lock sleep 1 || echo $MAILCHUTE_TASK_ID >> doubled",
  };
  const turns = Object.fromEntries(AGENTS.map((name) => [name, [[work, { say: "ok" }]]]));
  const bench = benchOf(turns);
  const { pool } = bench;
  const ids = Array.from({ length: 12 }, (_, n) => `t${n}`);
  for (const id of ids) pool.drop(id, { agents: AGENTS, prompt: id, max_attempts: 99 });
  await pool.start();
  const acts = {
    killAll: async () => {
      await pool.killAll();
      await pool.start();
    },
    killWorker: async () => {
      // One that was killed before may still be named.
      const alive = new Set(pool.pids());
      for (const { pid } of pool.workers()) if (alive.has(pid)) process.kill(pid, "SIGKILL");
    },
    close: async () => closeAccount(bench, random.pick(["coder", ...AGENTS])),
    open: async () => fs.rmSync(bench.gatePath(random.pick(AGENTS)), { force: true }),
  };
  const done: string[] = [];
  for (let n = 0; n < 16; n++) {
    const ended = pool.results().length + random.below(2);
    await waitFor(() => pool.results().length >= Math.min(ended, ids.length), {
      what: `result ${ended}, seed ${seed}`,
      timeoutMs: 3000,
    }).catch(() => {});
    const act = random.pick(["killAll", "killWorker", "close", "close", "open"] as const);
    done.push(act);
    await acts[act]();
  }
  for (const name of AGENTS) fs.rmSync(bench.gatePath(name), { force: true });
  const how = `seed ${seed}: ${done.join(" ")}`;
  for (const id of ids) {
    const record = await pool.result(id, 60_000);
    const last = bench
      .costs(String(record.agent_id))
      .filter(({ task_id: of, outcome }) => of === id && outcome === "completed");
    expect(last, `${id}, ${how}`).not.toEqual([]);
  }
  const files = fs.readdirSync(pool.dir);
  for (const id of ids) expect(files, how).toContain(`${id}.lock`);
  expect(files, how).not.toContain("doubled");
  expect(pool.errors(), how).toEqual([]);
});

describe("work that is no plain task", () => {
  it("a node of the plan is taken over, also one that is launched later", async () => {
    const said = `<result>${JSON.stringify({ status: "success", summary: "done" })}</result>`;
    const settings = { phases: ["IMPLEMENT"] };
    const bench = benchOf(
      { coder: [[{ say: "half" }, { limit: inAnHour() }]], "coder-codex": [[{ say: said }]] },
      { coder: { ...settings, fallback: ["coder-codex"] }, "coder-codex": settings },
    );
    const { pool } = bench;
    fs.writeFileSync(
      join(pool.state, "roadmap.yaml"),
      "nodes:\n  - {id: one, agent: coder}\n  - {id: two, agent: coder, depends_on: [one]}\n",
    );
    await pool.start();
    expect(await pool.result("one")).toMatchObject({ agent_id: "coder-codex", attempts: 1 });
    expect(await pool.result("two")).toMatchObject({ agent_id: "coder-codex" });
    expect(starts(bench)).toEqual([1, 2, 0]);
  });

  it("a line of a batch stays with its agent, and fails as before", async () => {
    const bench = benchOf(
      { coder: [[{ fail: 400 }]], "coder-codex": [[{ say: "not here" }]] },
      { coder: { fallback: ["coder-codex"] } },
    );
    const { pool } = bench;
    const line = JSON.stringify({ id: "l", agent: "coder", prompt: "go", max_attempts: 1 });
    fs.writeFileSync(join(pool.inbox, "lines.ndjson"), `${line}\n`);
    await pool.start();
    expect(await pool.result("lines")).toMatchObject({ batch: { failures: 1 } });
    expect(bench.starts("coder-codex")).toEqual([]);
  });
});

describe("what a task sets for its agent", () => {
  it("is given to the program, in place of the agent's own", async () => {
    const bench = benchOf(
      { coder: [[{ say: "ok" }]], "coder-codex": [[{ say: "ok" }]] },
      { coder: { model: "small", effort: "low" } },
    );
    const { pool } = bench;
    await pool.start();
    const own = { model: "large", effort: "high", permissions: { mode: "read" } };
    pool.drop("a", { agent: "coder", prompt: "go", ...own });
    pool.drop("b", { agent: "coder-codex", prompt: "go", ...own });
    pool.drop("c", { agent: "coder", prompt: "go" });
    for (const id of ["a", "b", "c"]) await pool.result(id);
    const of = (name: string): string[] => bench.starts(name).map(({ args }) => args.join(" "));
    const large = of("coder").find((args) => args.includes("large"));
    expect(large).toMatch(/--model large --effort high .*--permission-mode default/);
    expect(of("coder").find((args) => args.includes("small"))).toMatch(
      /--model small --effort low .*--permission-mode bypassPermissions/,
    );
    expect(of("coder-codex")[0]).toMatch(/--model large .*model_reasoning_effort="high"/);
    expect(of("coder-codex")[0]).toContain('sandbox_mode="read-only"');
  });
});

describe("work in a worktree", () => {
  it("goes on in the same one, with the checks and the landing of the first agent", async () => {
    const bench = benchOf(
      {
        coder: [[{ say: "half" }, { run: "echo half > half.txt" }, { limit: inAnHour() }]],
        "coder-codex": [[{ run: "echo whole > whole.txt" }, { say: "done" }]],
      },
      {
        coder: {
          fallback: ["coder-codex"],
          worktree: "auto",
          land: "merge",
          verify: ["sh", "-c", "test -e half.txt && test -e whole.txt"],
        },
        // These are for its own tasks.
        "coder-codex": { target: "elsewhere", review_by: "coder", expect_files: ["none.txt"] },
      },
    );
    const { pool } = bench;
    const repo = newRepository(join(pool.dir, "repo"));
    await pool.start();
    pool.drop("task", { agent: "coder", prompt: "go", cwd: repo.dir });
    expect(await pool.result("task")).toMatchObject({ agent_id: "coder-codex" });
    expect(await pool.result("task.land")).toMatchObject({ output: { landing: "landed" } });
    expect(repo.git("ls-tree", "--name-only", "mailchute/integration")).toContain("half.txt");
  });
});
