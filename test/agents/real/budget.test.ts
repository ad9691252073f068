/** Budgets with the real programs: how far runs that are on at once get above a limit, and what a hard one interrupts. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CostRecord } from "../../../src/agents/cost-records.ts";
import type { Scenario } from "../../../src/agents/mock-api/script.ts";
import { costsOf } from "../../../src/core/state-tree.ts";
import { filesOfDays } from "../../../src/journal/daily.ts";
import { QuestionStore } from "../../../src/questions/question-store.ts";
import type { Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { KINDS, type Kind, newAgentBench, PROGRAMS } from "./agent-bench.ts";
import { LONG_TOOL } from "./start.ts";

/** Programs start slowly on a machine that has other work. */
const SLOW_MS = 180_000;
/** One answer costs that much: claude by its own price, codex by the settings. */
const TURN_USD = 0.1;
const PRICES = {
  "claude-sonnet-4-5": { input_usd: 3, output_usd: 15 },
  "mock-model": { input_usd: 3, output_usd: 15 },
};
const USAGE = { input: Math.round((TURN_USD / 3) * 1e6), output: 1 };

function costsIn({ state }: Pool): CostRecord[] {
  return filesOfDays(costsOf({ dir: state }))
    .flatMap((file) => fs.readFileSync(file, "utf8").split("\n").slice(0, -1))
    .map((line) => JSON.parse(line) as CostRecord);
}

function usdIn(pool: Pool): number {
  return costsIn(pool).reduce(
    (sum, { cost_usd_micro: micro, input_tokens: input }) => sum + (micro ?? input * 3) / 1e6,
    0,
  );
}

/** Waits for a question, and until no run is on. @returns its id */
function asked(pool: Pool): Promise<string> {
  const store = new QuestionStore(pool.state);
  const running = join(pool.state, "analytics", "running-costs");
  const isQuiet = (): boolean => !fs.existsSync(running) || fs.readdirSync(running).length === 0;
  return waitFor(() => (isQuiet() ? store.open(0)[0]?.id : undefined), {
    what: "a question, and no run that is on",
    timeoutMs: SLOW_MS,
  });
}

describe.each(KINDS)("%s", (kind: Kind) => {
  it("ends five runs at once not more than a turn of each above the limit, and goes on after the answer", async () => {
    const ids = Array.from({ length: 9 }, (_, n) => `t${n}`);
    const scenario: Scenario = {
      conversations: ids.map((id) => ({
        name: id,
        marker: `go: ${id}`,
        steps: [{ say: "Done.", usage: USAGE, delayMs: 1500 }],
      })),
    };
    const settings = { workers: 5, prices: PRICES, budgets: { day_usd: 0.5, day_turns: 1000 } };
    const { pool, drop } = await newAgentBench(kind, scenario, { settings });
    for (const id of ids) drop(id);
    await pool.start();
    const question = await asked(pool);
    expect(question).toMatch(/^budget\.day\..*\.usd\.1$/);
    const spent = usdIn(pool);
    expect(spent).toBeGreaterThanOrEqual(0.5 - 1e-4);
    expect(spent).toBeLessThanOrEqual(0.5 + 5 * TURN_USD);
    expect(await pool.run(["answer", question, "5"])).toMatchObject({ code: 0 });
    for (const id of ids) expect(await pool.result(id, SLOW_MS)).toMatchObject({ attempts: 1 });
    expect(usdIn(pool)).toBeCloseTo(ids.length * TURN_USD, 2);
    expect(costsIn(pool)).toHaveLength(ids.length);
  });
});

describe.each(PROGRAMS)("%s", (_, kind, agent) => {
  it("is interrupted above a hard limit, goes on in its session after the answer, and uses no attempt", async () => {
    const { api, pool, drop } = await newAgentBench(
      kind,
      [
        { think: "Hm.", run: LONG_TOOL, usage: { input: 2 * USAGE.input, output: 1 } },
        { say: "Done.", usage: USAGE },
      ],
      { agent, settings: { prices: PRICES } },
    );
    await pool.start();
    drop("t", { budget: { soft_usd: 0.15, hard_usd: 0.19 } });
    const question = await asked(pool);
    expect(question).toMatch(/^budget\.task\.t\.\w+\.usd\.1$/);
    expect(costsIn(pool)).toMatchObject([{ outcome: "deferred" }]);
    expect(usdIn(pool)).toBeCloseTo(2 * TURN_USD, 2);
    expect(await pool.run(["answer", question, "1"])).toMatchObject({ code: 0 });
    expect(await pool.result("t", SLOW_MS)).toMatchObject({ output: "Done.", attempts: 1 });
    const turns = api.requests.filter((request) => request.kind === "turn");
    expect(turns).toHaveLength(2);
    // The session has its call, which was interrupted, and is told why it goes on.
    expect(turns.at(-1)?.messages.join()).toMatch(/result ".*because its budget was used up/s);
    expect(usdIn(pool)).toBeCloseTo(3 * TURN_USD, 2);
  });
});
