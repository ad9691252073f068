/** The real claude and codex through mailchute, against the mock API: stops, silences, sessions and limits. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { GateDocument } from "../../../src/agents/accounts/gate-rules.ts";
import type { CostRecord } from "../../../src/agents/cost-records.ts";
import type { Scenario, Step } from "../../../src/agents/mock-api/script.ts";
import { costsOf } from "../../../src/core/state-tree.ts";
import { filesOfDays } from "../../../src/journal/daily.ts";
import { readJson } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type AgentBench, newAgentBench, PROGRAMS } from "./agent-bench.ts";
import { isAlive, LONG_TOOL } from "./start.ts";

/** Programs start slowly on a machine that has other work. */
const SLOW_MS = 120_000;
/** A tool that leaves a server behind in a session of its own, and goes on itself. */
const LEAVES_SERVER = `setsid sh -c 'echo $$ > server.new; mv server.new server; exec sleep 300' & ${LONG_TOOL}`;
/** So long the service takes for an answer after a limit. */
const ANSWER_MS = 1500;
const ROUNDS = 20;
/** So many tasks run at once. */
const SLOTS = 4;

const IDS = Array.from({ length: ROUNDS }, (_, n) => `t${String(n).padStart(2, "0")}`);

const BUSY: Readonly<Record<string, Step>> = {
  "a tool call": { run: LEAVES_SERVER },
  "a background task": { run: LEAVES_SERVER, runWith: { run_in_background: true } },
};

/** Each task is kept busy until it is stopped. */
function busyScenario(busy: Step): Scenario {
  const conversations = IDS.map((id) => ({
    name: id,
    marker: `go: ${id}`,
    steps: [busy, { say: "It runs.", times: 1000 }],
  }));
  return { conversations };
}

/** The tool of this task runs, with what it leaves behind. @returns pids */
async function toolPids(dir: string): Promise<number[]> {
  const read = (name: string): number => Number(fs.readFileSync(join(dir, name), "utf8"));
  await waitFor(() => ["pid", "server"].every((name) => fs.existsSync(join(dir, name))), {
    what: `the tool in ${dir}`,
    timeoutMs: SLOW_MS,
  });
  return [read("pid"), read("server")];
}

/** Whatever runs for its agents is a process whose environment has a lease. */
function leftOf({ pool }: AgentBench): number[] {
  return pool.pids().filter((pid) => {
    try {
      return fs.readFileSync(`/proc/${pid}/environ`, "latin1").includes("MAILCHUTE_LEASE=");
    } catch {
      return false;
    }
  });
}

describe.each(PROGRAMS)("%s", (name, kind, agent) => {
  // Only claude has background tasks.
  it.each(name === "claude" ? Object.keys(BUSY) : ["a tool call"])(
    `leaves no process after a cancel in the middle of %s, ${ROUNDS} of ${ROUNDS}`,
    async (what) => {
      const bench = await newAgentBench(kind, busyScenario(BUSY[what] as Step), { agent });
      const { pool } = bench;
      await pool.start();
      const one = async (id: string): Promise<boolean> => {
        const pids = await toolPids(bench.drop(id));
        const { code } = await pool.run(["cancel", id]);
        expect(code).toBe(0);
        expect(await pool.error(id, SLOW_MS)).toMatchObject({ kind: "cancelled" });
        return !pids.some(isAlive);
      };
      let clean = 0;
      const ids = [...IDS];
      const lane = async (): Promise<void> => {
        for (let id = ids.shift(); id !== undefined; id = ids.shift()) if (await one(id)) clean++;
      };
      await Promise.all(Array.from({ length: SLOTS }, lane));
      expect(clean).toBe(ROUNDS);
      expect(leftOf(bench)).toEqual([]);
    },
  );

  it("leaves no process after its time, and after a stop of the supervisor", async () => {
    const bench = await newAgentBench(kind, [{ run: LEAVES_SERVER, times: 1000 }], { agent });
    const { pool } = bench;
    await pool.start();
    const late = await toolPids(bench.drop("late", { timeout_ms: 30_000, max_attempts: 1 }));
    expect(await pool.error("late", SLOW_MS)).toMatchObject({ kind: "timeout" });
    expect(late.some(isAlive)).toBe(false);
    const dirs = ["a", "b", "c"].map((id) => bench.drop(id));
    const pids = (await Promise.all(dirs.map(toolPids))).flat();
    await pool.stop();
    expect(pids.filter(isAlive)).toEqual([]);
    expect(pool.pids()).toEqual([]);
  });

  it("fails a task whose request is refused, goes on with the next one, and is paused for a wrong model", async () => {
    const conversations = [
      { name: "bad", marker: "go: bad", steps: [{ status: 400 }] },
      { name: "good", marker: "go: good", steps: [{ say: "Done." }] },
      { name: "model", marker: "go: model", steps: [{ status: 404 }] },
    ];
    const bench = await newAgentBench(kind, { conversations }, { agent });
    const { pool } = bench;
    await pool.start();
    bench.drop("bad");
    expect(await pool.error("bad", SLOW_MS)).toMatchObject({
      kind: "agent",
      code: "ErrAgentRequest",
      attempts: 1,
    });
    bench.drop("good");
    expect(await pool.result("good", SLOW_MS)).toMatchObject({ output: "Done." });
    bench.drop("model");
    expect(await pool.error("model", SLOW_MS)).toMatchObject({ code: "ErrAgentConfig" });
    const told = pool.alerts().filter(({ alert }) => String(alert).startsWith("agent_"));
    expect(told.map(({ alert }) => alert)).toEqual(["agent_paused"]);
  });

  it("leaves a silent tool call alone, and stops a run that is silent without one", async () => {
    const bench = await newAgentBench(
      kind,
      {
        conversations: [
          {
            name: "tool",
            marker: "go: tool",
            steps: [{ run: "sleep 14; echo built" }, { say: "Built." }],
          },
          { name: "hang", marker: "go: hang", steps: [{ hang: true }] },
          { name: "retry", marker: "go: retry", steps: [{ status: 529, times: 1000 }] },
        ],
      },
      { agent: { ...agent, idle_ms: 9000 }, retries: 10 },
    );
    const { pool } = bench;
    await pool.start();
    for (const id of ["tool", "hang", "retry"]) bench.drop(id, { max_attempts: 1 });
    for (const id of ["hang", "retry"])
      expect(await pool.error(id, SLOW_MS)).toMatchObject({ kind: "timeout", code: "ErrIdle" });
    expect(await pool.result("tool", SLOW_MS)).toMatchObject({ output: "Built." });
    expect(leftOf(bench)).toEqual([]);
  });

  it("goes on in its session after its worker was killed, and books each turn once", async () => {
    const bench = await newAgentBench(
      kind,
      [
        { think: "Hm.", run: LONG_TOOL, usage: { input: 100 } },
        { say: "Done.", usage: { input: 10 } },
      ],
      { agent },
    );
    const { api, pool } = bench;
    await pool.start();
    const dir = bench.drop("task");
    await waitFor(() => fs.existsSync(join(dir, "pid")), { what: "the tool", timeoutMs: SLOW_MS });
    const sessions = join(pool.state, "sessions");
    await waitFor(() => fs.existsSync(sessions) && fs.readdirSync(sessions).length > 1, {
      what: "the session",
    });
    const running = join(pool.state, "analytics", "running-costs");
    await waitFor(
      () =>
        fs
          .readdirSync(running)
          .some(
            (name) =>
              readJson<{ record: CostRecord }>(join(running, name))?.record.input_tokens === 100,
          ),
      { what: "what it has used so far" },
    );
    for (const { pid } of pool.workers()) process.kill(pid, "SIGKILL");
    expect(await pool.result("task", SLOW_MS)).toMatchObject({ output: "Done.", attempts: 2 });
    const last = api.requests.filter((request) => request.kind === "turn").at(-1);
    expect(last?.messages.join()).toContain("the process that ran it was killed");
    const costs = filesOfDays(costsOf({ dir: pool.state })).flatMap((file) =>
      fs
        .readFileSync(file, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as CostRecord),
    );
    expect(costs.map(({ outcome }) => outcome)).toEqual(["killed", "completed"]);
    expect(costs.map(({ input_tokens: input }) => input)).toEqual([100, 10]);
  });

  it("starts no run before the end of a usage limit, and ends ten tasks in three slots", async () => {
    const limit = { usageLimit: 0, until: 0 };
    const ok = { say: "ok", times: 1000, delayMs: ANSWER_MS };
    const bench = await newAgentBench(kind, [limit, ok], {
      isSubscription: true,
      agent: { ...agent, account: "limited" },
    });
    const { api, pool } = bench;
    const supervisor = await pool.start(["--workers", "3"]);
    const ids = Array.from({ length: 10 }, (_, n) => `t${n}`);
    // The programs need some seconds to ask, and the supervisor dies and comes again before the end of the limit.
    const untilS = Math.ceil(Date.now() / 1000) + 40;
    Object.assign(limit, { usageLimit: untilS, until: untilS });
    for (const id of ids) bench.drop(id, { max_attempts: 1 });
    const path = join(pool.dir, "user", "mailchute", "accounts", "limited.json");
    const gate = await waitFor(
      () => {
        const found = readJson<GateDocument>(path);
        return found?.status === "closed" ? found : undefined;
      },
      { what: "the closed gate", timeoutMs: SLOW_MS },
    );
    expect(gate.until_ms).toBe(untilS * 1000);
    supervisor.child.kill("SIGKILL");
    await waitFor(() => supervisor.child.signalCode !== null, { what: "its end" });
    await pool.start(["--workers", "3"]);
    for (const id of ids) expect(await pool.result(id, SLOW_MS)).toMatchObject({ attempts: 1 });
    const turns = api.requests.filter((request) => request.kind === "turn");
    const refused = turns.filter(({ atMs }) => atMs < untilS * 1000).length;
    expect(refused).toBeLessThanOrEqual(3);
    expect(turns.length).toBe(10 + refused);
    // The first ones after it come one by one: each when the one before has its answer.
    const first = turns.slice(refused, refused + 5).map(({ atMs }) => atMs);
    for (const [n, atMs] of first.slice(1).entries())
      expect(atMs - (first[n] as number)).toBeGreaterThanOrEqual(ANSWER_MS);
  });
});
