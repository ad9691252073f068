/** Runs of coding agents that share a budget, with real processes and the stand-ins. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import { type MovedClock, newMovedClock } from "../../support/moved-clock.ts";
import type { Pool } from "../../support/pool.ts";
import { readPlan } from "../../support/read-plan.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, newBench, type Step } from "../runs/bench.ts";

takeSome();

/** A turn that takes a while and costs 0.10 USD. */
const TURN: readonly Step[] = [
  { sleepMs: 150 },
  { usage: { cost: 0.1, input: 1000, output: 10 } },
  { say: "Done." },
];

const usdOf = (bench: Bench, agent: string): number =>
  bench.costs(agent).reduce((sum, one) => sum + (one.cost_usd_micro ?? 0), 0) / 1e6;

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `t${n}`);

function dropAll(bench: Bench, count: number, more: object = {}): string[] {
  for (const id of ids(count))
    bench.pool.drop(id, { prompt: `Do ${id}.`, agent: "coder", ...more });
  return ids(count);
}

/** Waits for a question, and until no run is on. */
async function asked({ state }: Pool): Promise<string> {
  const store = new QuestionStore(state);
  const running = join(state, "analytics", "running-costs");
  return await waitFor(
    () => {
      const [first] = store.open(0);
      const isQuiet = !fs.existsSync(running) || fs.readdirSync(running).length === 0;
      return isQuiet ? first?.id : undefined;
    },
    { what: "a question, and no run that is on", timeoutMs: 20_000 },
  );
}

async function answer(pool: Pool, id: string, text: string): Promise<void> {
  expect(await pool.run(["answer", id, text])).toMatchObject({ code: 0, stderr: "" });
}

async function allDone(bench: Bench, tasks: readonly string[]): Promise<void> {
  for (const id of tasks) {
    const record = await bench.pool.result(id, 60_000);
    expect(record, id).toMatchObject({ attempts: 1 });
  }
}

/** The bench with these lines in its config.yaml. */
function withSettings(bench: Bench, lines: Record<string, string>): Bench {
  const path = join(bench.pool.state, "config.yaml");
  let text = fs.readFileSync(path, "utf8");
  for (const [name, value] of Object.entries(lines))
    text = `${text.replace(new RegExp(`^${name}:.*\n`, "m"), "")}${name}: ${value}\n`;
  fs.writeFileSync(path, text);
  return bench;
}

describe("five runs at once and a cap of 0.50 USD for the day", () => {
  const newCapped = (
    turns: readonly (readonly Step[])[],
    cap: string,
    clock: MovedClock = newMovedClock(12),
  ): Bench =>
    withSettings(newBench([{ name: "coder", kind: "claude", turns }], { clock }), {
      workers: "5",
      budgets: `{day_usd: ${cap}}`,
    });

  it("spend at most one turn of each more, ask, and all end after the answers", async () => {
    const bench = newCapped([TURN], "0.5");
    // Of 20 there are more than five left when the second limit is reached, however many run at once.
    const tasks = dropAll(bench, 20);
    await bench.pool.start();
    const first = await asked(bench.pool);
    expect(first).toMatch(/^budget\.day\..*\.usd\.1$/);
    await waitFor(
      () => fs.readdirSync(bench.pool.processing).some((name) => name.includes("~hold-budget-day")),
      { what: "a task that is held" },
    );
    const claims = bench.pool.events().filter(({ event }) => event === "claimed").length;
    const shown = await bench.pool.run(["status"]);
    expect(shown.stdout).toContain(`mailchute answer ${first}`);
    expect(usdOf(bench, "coder")).toBeGreaterThanOrEqual(0.5);
    expect(usdOf(bench, "coder")).toBeLessThan(0.5 + 5 * 0.1);
    // Tasks that wait do not try again and again.
    const claimed = bench.pool.events().filter(({ event }) => event === "claimed").length;
    expect(claimed - claims).toBeLessThanOrEqual(5);
    await answer(bench.pool, first, "yes");
    const second = await asked(bench.pool);
    expect(second).toMatch(/usd\.2$/);
    expect(usdOf(bench, "coder")).toBeLessThan(1 + 5 * 0.1);
    await answer(bench.pool, second, "5");
    await allDone(bench, tasks);
    expect(usdOf(bench, "coder")).toBeCloseTo(2);
    expect(new QuestionStore(bench.pool.state).open(0)).toEqual([]);
  });

  it("go on without an answer when a new day begins", async () => {
    const clock = newMovedClock(23, 30);
    const bench = newCapped([TURN], "0.5", clock);
    const tasks = dropAll(bench, 8);
    await bench.pool.start();
    const question = await asked(bench.pool);
    expect(question).toContain(new Date(clock.nowMs()).toISOString().slice(0, 10));
    expect(bench.costs("coder").length).toBeLessThan(8);
    clock.goOnAt(0, 0);
    await allDone(bench, tasks);
    expect(new QuestionStore(bench.pool.state).open(0)).toEqual([]);
    const days = new Set(bench.costs("coder").map(({ at }) => Math.floor(at / 86_400)));
    expect(days.size).toBe(2);
  });

  it("begin no second turn above it, and go on in their sessions after the answer", async () => {
    const more: readonly Step[] = [
      { run: "sleep 5", background: true },
      { usage: { cost: 0.1, input: 1000, output: 10 } },
      { say: "Waiting." },
    ];
    const bench = newCapped([more, more, more, more, more, TURN], "0.45");
    const tasks = dropAll(bench, 5);
    await bench.pool.start();
    const question = await asked(bench.pool);
    expect(usdOf(bench, "coder")).toBeCloseTo(0.5);
    await answer(bench.pool, question, "5");
    await allDone(bench, tasks);
    expect(bench.resumed("coder").filter((id) => id !== undefined)).toHaveLength(5);
    expect(usdOf(bench, "coder")).toBeCloseTo(1);
  });

  it("do the same when everything is killed in between", async () => {
    const bench = newCapped([TURN], "0.5");
    const tasks = dropAll(bench, 10);
    await bench.pool.start();
    await waitFor(() => bench.costs("coder").length >= 2, { what: "two runs that ended" });
    await bench.pool.killAll();
    await bench.pool.start();
    const question = await asked(bench.pool);
    expect(usdOf(bench, "coder")).toBeGreaterThanOrEqual(0.5);
    expect(usdOf(bench, "coder")).toBeLessThan(0.5 + 5 * 0.1);
    await bench.pool.killAll();
    await bench.pool.start();
    await answer(bench.pool, question, "5");
    for (const id of tasks) await bench.pool.result(id, 60_000);
  });
});

describe("the budget of a task", () => {
  /** Lines of one message, as the program prints them while it goes on. */
  const used = (input: number): Step[] => {
    const message = { id: `m${input}`, usage: { input_tokens: input, output_tokens: 0 } };
    const line = (text: string): Step => ({
      line: { type: "assistant", message: { ...message, content: [{ type: "text", text }] } },
    });
    return [line("a"), line("b")];
  };
  const PRICES = { prices: "{claude-sonnet-4-5: {input_usd: 1, output_usd: 1}}" };

  it.each([
    ["usd", { hard_usd: 0.8 }],
    ["tokens", { tokens: 500_000, hard_tokens: 800_000 }],
    ["time", { hard_time_ms: 2500 }],
  ])(
    "interrupts a turn above its hard limit in %s, and the session goes on after the answer",
    async (measure, budget) => {
      const turn = [...used(400_000), { sleepMs: 50 }, ...used(500_000), { hang: true }];
      const bench = withSettings(
        newBench([{ name: "coder", kind: "claude", turns: [turn, TURN] }]),
        PRICES,
      );
      bench.pool.drop("t", { prompt: "Do it.", agent: "coder", budget });
      await bench.pool.start();
      const question = await asked(bench.pool);
      expect(question).toMatch(new RegExp(`^budget\\.task\\.t\\.\\w+\\.${measure}\\.1$`));
      expect(bench.costs("coder")).toMatchObject([
        { outcome: "deferred", input_tokens: 900_000, cost_usd_micro: 900_000, turns: 0 },
      ]);
      await answer(bench.pool, question, measure === "tokens" ? "9000000" : "90");
      expect(await bench.pool.result("t")).toMatchObject({ attempts: 1, output: "Done." });
      expect(bench.resumed("coder")).toEqual([undefined, expect.any(String)]);
      expect(bench.costs("coder")).toMatchObject([{}, { cost_usd_micro: 100_000, turns: 1 }]);
    },
  );

  it("interrupts its turn above a hard limit in turns that a run beside it has passed", async () => {
    const turns = [[{ hang: true }], [{ run: "sleep 0.1", background: true }, ...TURN], TURN];
    const settings = { budget: { day_turns: 2, day_hard_turns: 2 } };
    const bench = newBench([{ name: "coder", kind: "claude", turns, settings }]);
    bench.pool.drop("first", { prompt: "Do it.", agent: "coder" });
    await bench.pool.start();
    await waitFor(() => bench.messages("coder").length === 1, { what: "the first run" });
    bench.pool.drop("beside", { prompt: "Do it.", agent: "coder" });
    const question = await asked(bench.pool);
    expect(question).toMatch(/^budget\.agent\.coder\..*\.turns\.1$/);
    expect(await bench.pool.result("beside")).toMatchObject({ attempts: 1 });
    await answer(bench.pool, question, "yes");
    expect(await bench.pool.result("first")).toMatchObject({ attempts: 1 });
    expect(bench.resumed("coder")).toEqual([undefined, undefined, expect.any(String)]);
  });

  it("has a codex app-server end its turn above a hard limit, and go on in its thread", async () => {
    const turn: readonly Step[] = [{ spend: { input: 900_000, output: 5 } }, { run: "sleep 60" }];
    const settings = { mode: "app-server" };
    const turns = [turn, [{ say: "Done." }]];
    const bench = newBench([{ name: "coder", kind: "codex", turns, settings }]);
    const { pool } = bench;
    pool.drop("t", { prompt: "Do it.", agent: "coder", budget: { hard_tokens: 800_000 } });
    await pool.start();
    const question = await asked(pool);
    expect(question).toMatch(/^budget\.task\.t\.\w+\.tokens\.1$/);
    const used = { outcome: "deferred", input_tokens: 900_000, output_tokens: 5 };
    expect(bench.costs("coder")).toMatchObject([used]);
    const stream = (): string =>
      pool
        .runs()
        .map((run) => fs.readFileSync(join(pool.state, "runs", run, "events.jsonl"), "utf8"))
        .join("");
    expect(stream()).toContain('"status":"interrupted"');
    await answer(pool, question, "yes");
    expect(await pool.result("t")).toMatchObject({ attempts: 1, output: "Done." });
    expect(bench.messages("coder")[1]).toContain("because its budget was used up");
    expect(new Set(bench.costs("coder").map(({ session_id: id }) => id)).size).toBe(1);
    // What its thread had used before is not counted again.
    expect(bench.costs("coder")[1]).toMatchObject({ input_tokens: 1000, turns: 1 });
  });

  it("counts codex, which tells no price, by the prices of the settings", async () => {
    const turns = [[{ usage: { input: 500_000, output: 0 } }, { say: "Done." }]];
    const settings = { model: "m", budget: { day_usd: 0.4 } };
    const bench = withSettings(newBench([{ name: "coder", kind: "codex", turns, settings }]), {
      prices: "{m: {input_usd: 1, output_usd: 1}}",
    });
    bench.pool.drop("t0", { prompt: "Do it.", agent: "coder" });
    await bench.pool.start();
    await bench.pool.result("t0");
    expect(bench.costs("coder")).toMatchObject([{ cost_usd_micro: null }]);
    bench.pool.drop("t1", { prompt: "Do it.", agent: "coder" });
    const question = await asked(bench.pool);
    expect(question).toMatch(/^budget\.agent\.coder\..*\.usd\.1$/);
    await answer(bench.pool, question, "yes");
    await bench.pool.result("t1");
  });

  it("fails when the answer is no", async () => {
    const turn = [{ run: "sleep 5", background: true }, ...TURN];
    const settings = { budget: { turns: 1 } };
    const bench = newBench([{ name: "coder", kind: "claude", turns: [turn], settings }]);
    bench.pool.drop("t", { prompt: "Do it.", agent: "coder" });
    await bench.pool.start();
    await answer(bench.pool, await asked(bench.pool), "no");
    expect(await bench.pool.error("t")).toMatchObject({ kind: "budget", code: "ErrBudget" });
  });
});

describe("the budget of a plan", () => {
  const SAID = `<result>{"status": "success", "summary": "done"}</result>`;
  const WORK: readonly Step[] = [...TURN.slice(0, -1), { say: SAID }];
  const writePlan = (bench: Bench, budget: string): void => {
    const nodes = ids(6).map(
      (id, n) =>
        `  - {id: ${id}, title: ${id}, agent: coder, dependencies: [${n < 2 ? "" : `t${n - 2}`}]}\n`,
    );
    const path = join(bench.pool.state, "roadmap.yaml");
    fs.writeFileSync(`${path}.new`, `name: release\n${budget}nodes:\n${nodes.join("")}`);
    fs.renameSync(`${path}.new`, path);
  };
  const newPlanned = (budget: string): Bench => {
    const settings = { phases: ["IMPLEMENT"] };
    const bench = newBench([{ name: "coder", kind: "claude", turns: [WORK], settings }]);
    writePlan(bench, budget);
    return bench;
  };

  it("holds its nodes, and no other tasks, until the answer", async () => {
    const bench = newPlanned("budget: {soft_usd: 0.2}\n");
    await bench.pool.start();
    const question = await asked(bench.pool);
    expect(question).toBe("budget.plan.release.usd.1");
    expect(usdOf(bench, "coder")).toBeCloseTo(0.2);
    bench.pool.drop("other", { prompt: "Do it.", agent: "coder" });
    await bench.pool.result("other");
    expect(bench.costs("coder")).toMatchObject([{ plan: "release" }, { plan: "release" }, {}]);
    expect(bench.costs("coder")[2]).not.toHaveProperty("plan");
    await answer(bench.pool, question, "yes");
    const second = await asked(bench.pool);
    expect(second).toBe("budget.plan.release.usd.2");
    await answer(bench.pool, second, "5");
    await allDone(bench, ids(6));
    const { stdout } = await bench.pool.run(["cost", "--by", "plan", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      rows: [
        { key: "release", cost_usd_micro: 600_000 },
        { key: "none", cost_usd_micro: 100_000 },
      ],
    });
  });

  it("goes on by itself when the limit is raised in the plan", async () => {
    const bench = newPlanned("budget: {turns: 2}\n");
    await bench.pool.start();
    expect(await asked(bench.pool)).toBe("budget.plan.release.turns.1");
    const holds = (): number => bench.pool.events().filter(({ event }) => event === "held").length;
    // Two nodes are held, and one of them has tried once more.
    await waitFor(() => holds() === 3, { what: "nodes that are held" });
    const next = readPlan(join(bench.pool.state, "roadmap.yaml"));
    fs.writeFileSync(join(bench.pool.state, "roadmap.yaml"), next.replace("turns: 2", "turns: 20"));
    await allDone(bench, ids(6));
    expect(new QuestionStore(bench.pool.state).open(0)).toEqual([]);
  });

  it("is beside that of a node, which counts for its runs", async () => {
    const turns = [[{ run: "sleep 5", background: true }, ...TURN], WORK];
    const settings = { phases: ["IMPLEMENT"] };
    const bench = newBench([{ name: "coder", kind: "claude", turns, settings }]);
    const node = "{id: t, title: t, agent: coder, budget: {soft_usd: 0.05}}";
    fs.writeFileSync(join(bench.pool.state, "roadmap.yaml"), `nodes:\n  - ${node}\n`);
    await bench.pool.start();
    const question = await asked(bench.pool);
    expect(question).toMatch(/^budget\.task\.t\.\w+\.usd\.1$/);
    await answer(bench.pool, question, "1");
    expect(await bench.pool.result("t")).toMatchObject({ attempts: 1 });
    expect(bench.resumed("coder")).toEqual([undefined, expect.any(String)]);
  });
});

describe("a run whose process was killed", () => {
  it.each(["claude", "codex"] as const)("is booked once, with what %s had used", async (kind) => {
    const turn: Step[] =
      kind === "claude"
        ? [
            {
              line: {
                type: "assistant",
                message: { id: "m", usage: { input_tokens: 700 }, content: [] },
              },
            },
            { hang: true },
          ]
        : [{ spend: { input: 700, output: 7 } }, { hang: true }];
    // codex tells two sums after it: one with what the killed run had used, and one without.
    const next = kind === "claude" ? TURN : [{ spend: { input: 300 } }, { sleepMs: 1500 }, ...TURN];
    const bench = newBench([{ name: "coder", kind, turns: [turn, next] }]);
    bench.pool.drop("t", { prompt: "Do it.", agent: "coder" });
    await bench.pool.start();
    const running = join(bench.pool.state, "analytics", "running-costs");
    await waitFor(
      () =>
        fs.existsSync(running) &&
        fs
          .readdirSync(running)
          .some((name) =>
            fs.readFileSync(join(running, name), "utf8").includes('"input_tokens": 700'),
          ),
      { what: "what the run has used" },
    );
    const shown = JSON.parse((await bench.pool.run(["cost", "--json"])).stdout) as unknown;
    expect(shown).toMatchObject({ total: { runs: 1, runs_not_completed: 1, input_tokens: 700 } });
    await bench.pool.killAll();
    await bench.pool.start();
    await bench.pool.result("t");
    expect(bench.costs("coder")).toMatchObject([
      { outcome: "killed", input_tokens: 700 },
      { outcome: "completed", input_tokens: kind === "claude" ? 1000 : 1300 },
    ]);
    expect(fs.readdirSync(running)).toEqual([]);
  });
});
