/** Tasks of an account that has used up its quota wait, hold up no others, and go on one by one when its time has come. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { closeGate, type GateDocument, openGate } from "../../src/agents/accounts/gate-rules.ts";
import { parseName } from "../../src/core/names.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { takeSome } from "../support/take-some.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const CLAUDE_TASKS = Array.from({ length: 10 }, (_, index) => `c${index}`);
const HOUR_MS = 3_600_000;

interface Bench {
  pool: Pool;
  gatePath: string;
  /** How many turns the program has begun. */
  turns(): number;
}

function makeBench(turns: readonly object[][] = [[{ say: "done" }]], workers = 4): Bench {
  const stateHome = tempDir();
  const agentState = tempDir();
  const pool = newPool({
    config: `
workers: ${workers}
durability: process
sweep_ms: 200
retry: {max_attempts: 2, backoff_ms: 20, backoff_max_ms: 100}
agents:
  - name: coder
    kind: claude
    program: ${programPath("fake-claude.mjs")}
    env: ${JSON.stringify({ FAKE_AGENT: JSON.stringify({ turns }), FAKE_AGENT_STATE: agentState })}
`,
    env: { XDG_STATE_HOME: stateHome },
  });
  const dir = join(stateHome, "mailchute", "accounts");
  fs.mkdirSync(dir, { recursive: true });
  return {
    pool,
    gatePath: join(dir, "default.json"),
    turns: () => fs.readdirSync(agentState).filter((name) => name.startsWith("turn-")).length,
  };
}

function closedUntil(untilMs: number, nowMs = Date.now()): GateDocument {
  const refusal = { untilMs, window: "five_hour", reason: "5-hour limit" };
  return closeGate(openGate("default"), refusal, nowMs, 0.5);
}

function close({ gatePath }: Bench, gate: GateDocument): void {
  fs.writeFileSync(gatePath, JSON.stringify(gate));
}

function dropClaudeTasks({ pool }: Bench, ids: readonly string[] = CLAUDE_TASKS): void {
  for (const id of ids) pool.drop(id, { agent: "coder", prompt: "work", priority: 5 });
}

const heldIds = (pool: Pool): string[] =>
  fs.readdirSync(pool.processing).flatMap((file) => {
    const name = parseName(file);
    return name?.stage === "hold" ? [name.id] : [];
  });

const eventsNamed = (pool: Pool, event: string): Record<string, unknown>[] =>
  pool.events().filter((line) => line["event"] === event && String(line["task_id"])[0] === "c");

/** Everything of the account ended well, and no wait has used up a run. */
async function expectAllDone({ pool }: Bench, ids: readonly string[] = CLAUDE_TASKS) {
  for (const id of ids) expect(await pool.result(id)).toMatchObject({ attempts: 1 });
  expect(pool.errors()).toEqual([]);
}

function readIfThere(path: string): string {
  try {
    return fs.readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}

describe("tasks of an account at its limit", () => {
  it("stay in the inbox while it is closed, and hold up no task of another agent", async () => {
    const bench = makeBench();
    const { pool } = bench;
    close(bench, closedUntil(Date.now() + HOUR_MS));
    dropClaudeTasks(bench);
    pool.drop("other", { exec: ["true"] });
    await pool.start();
    await pool.result("other");
    expect(fs.readdirSync(pool.inbox)).toHaveLength(CLAUDE_TASKS.length);
    const status = await pool.run(["status"]);
    expect(status.stdout).toContain("account default: no run before");
    expect(status.stdout).toContain("5-hour limit");
    const waited = await pool.run(["wait", "c0", "--timeout", "300ms"]);
    expect(waited.stderr).toContain("it waits: account default: no run before");
    expect(eventsNamed(pool, "selected")).toEqual([]);
    const untilMs = Date.now() + 1000;
    close(bench, closedUntil(untilMs));
    await expectAllDone(bench);
    for (const { t } of eventsNamed(pool, "selected"))
      expect(Number(t)).toBeGreaterThanOrEqual(untilMs);
    expect(bench.turns()).toBe(CLAUDE_TASKS.length);
  });

  it("are held when a run is refused, also over the death of everything, and then go on", async () => {
    const resetsAt = Math.ceil(Date.now() / 1000) + 3600;
    const bench = makeBench([[{ limit: resetsAt }], [{ say: "done" }]], 1);
    const { pool } = bench;
    dropClaudeTasks(bench);
    await pool.start();
    await waitFor(() => heldIds(pool).length > 0 && eventsNamed(pool, "held").length > 0, {
      what: "a held task",
    });
    pool.drop("other", { exec: ["true"] });
    await pool.result("other");
    const [id = ""] = heldIds(pool);
    const listed = await pool.run(["ls", "--state-is", "held"]);
    expect(listed.stdout).toContain("held:quota-default");
    await waitFor(
      async () =>
        /waits +account default: no run before/.test((await pool.run(["show", id])).stdout),
      { what: "show to say why it waits" },
    );
    await pool.killAll();
    await pool.start();
    pool.drop("another", { exec: ["true"] });
    await pool.result("another");
    expect(heldIds(pool)).toContain(id);
    expect(bench.turns()).toBe(1);
    close(bench, closedUntil(Date.now() + 1000));
    await expectAllDone(bench);
    expect(bench.turns()).toBe(CLAUDE_TASKS.length + 1);
    expect(JSON.parse(fs.readFileSync(bench.gatePath, "utf8"))).toEqual(openGate("default"));
  });

  it("can be cancelled while they are held", async () => {
    const resetsAt = Math.ceil(Date.now() / 1000) + 3600;
    const bench = makeBench([[{ limit: resetsAt, until: resetsAt }]]);
    const { pool } = bench;
    dropClaudeTasks(bench, ["c0"]);
    await pool.start();
    await waitFor(() => heldIds(pool).length === 1, { what: "the held task" });
    expect((await pool.run(["cancel", "c0"])).code).toBe(0);
    expect(await pool.error("c0")).toMatchObject({ kind: "cancelled" });
    expect(heldIds(pool)).toEqual([]);
  });

  it("leave the nodes of a plan open while it is closed; other nodes run", async () => {
    const bench = makeBench();
    const { pool } = bench;
    close(bench, closedUntil(Date.now() + HOUR_MS));
    const roadmap = join(pool.state, "roadmap.yaml");
    fs.writeFileSync(
      roadmap,
      "nodes:\n  - {id: first, agent: coder, result: optional}\n  - {id: other, exec: ['true']}\n",
    );
    await pool.start();
    await pool.result("other");
    const statusOf = (id: string): unknown => {
      // In the instant in which it is replaced the file may not be there.
      const text = readIfThere(roadmap);
      return new RegExp(`id: ${id},.*status: (\\w+)`).exec(text)?.[1];
    };
    await waitFor(() => statusOf("other") === "done", { what: "the other node to be done" });
    expect(statusOf("first")).toBeUndefined();
    const waited = await pool.run(["wait", "first", "--timeout", "1500ms"]);
    expect(waited.stderr).toContain("it waits: account default: no run before");
    expect(fs.readdirSync(pool.inbox)).toEqual([]);
    fs.rmSync(bench.gatePath);
    await waitFor(() => statusOf("first") !== undefined, { what: "the node to be launched" });
  });

  it("do not keep a single pass over the plan from its end", async () => {
    const bench = makeBench();
    const { pool } = bench;
    close(bench, closedUntil(Date.now() + HOUR_MS));
    fs.writeFileSync(join(pool.state, "roadmap.yaml"), "nodes:\n  - {id: first, agent: coder}\n");
    expect((await pool.run(["run", "--once"])).code).toBe(0);
    expect(bench.turns()).toBe(0);
  });

  it("go on at once when a person removes the file of the gate", async () => {
    const bench = makeBench();
    const { pool, gatePath } = bench;
    close(bench, closedUntil(Date.now() + HOUR_MS));
    dropClaudeTasks(bench, ["c0", "c1"]);
    pool.drop("other", { exec: ["true"] });
    await pool.start();
    await pool.result("other");
    expect(fs.readdirSync(pool.inbox)).toHaveLength(2);
    fs.rmSync(gatePath);
    await expectAllDone(bench, ["c0", "c1"]);
  });

  it.each([
    ["is no JSON", "{"],
    ["is no gate", '{"v": 1, "status": "shut", "until_ms": 99999999999999}'],
    [
      "was closed by a clock that was a year ahead",
      JSON.stringify(closedUntil(Date.now() + 8766 * HOUR_MS, Date.now() + 8765 * HOUR_MS)),
    ],
    [
      "is closed for longer than any window of a quota",
      JSON.stringify({ ...closedUntil(Date.now() + HOUR_MS), until_ms: Date.now() + 9e11 }),
    ],
  ])("run when the file of the gate %s", async (_what, text) => {
    const bench = makeBench();
    fs.writeFileSync(bench.gatePath, text);
    dropClaudeTasks(bench);
    await bench.pool.start();
    await expectAllDone(bench);
  });
});
