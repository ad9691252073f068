/** A service that misbehaves, with the real programs: what a person sees of it, and that no task is lost over it. */
import { describe, expect, it } from "vitest";
import type { Step } from "../../../src/agents/mock-api/script.ts";
import type { Pool } from "../../support/pool.ts";
import { newAgentBench, PROGRAMS } from "./agent-bench.ts";

/** Programs start slowly on a machine that has other work. */
const SLOW_MS = 180_000;

/** How the first answer of the service is wrong. */
const WRONG: Readonly<Record<string, Step>> = {
  "resets the connection in the middle": { say: "Half", cut: "reset" },
  "drops the connection in the middle": { say: "Half", cut: true },
  "ends its stream in the middle": { say: "Half", half: true },
  "answers 500": { status: 500 },
  "answers nothing": { status: 200, body: "" },
  "answers a page": {
    status: 200,
    headers: { "content-type": "text/html" },
    body: "<html><body>Please log in to the network.</body></html>",
  },
  "answers rubbish": { garbage: true },
};
const NAMES = Object.keys(WRONG);
const OVERLOADED: unknown = expect.stringMatching(/^the service is overloaded: ./);

/** Why a task was put off, each time. */
function putOff(pool: Pool, id: string): string[] {
  return pool
    .events()
    .filter(
      ({ event, task_id: task, error }) => event === "released" && task === id && error !== null,
    )
    .map(({ error }) => String(error));
}

describe.each(PROGRAMS)("%s", (_, kind, agent) => {
  it("does its work when the service is slow, and after each wrong answer", async () => {
    const conversations = NAMES.map((name) => ({
      name,
      marker: `"${name}"`,
      steps: [WRONG[name] as Step, { say: "Whole." }],
    }));
    conversations.push({
      name: "slow",
      marker: '"slow"',
      steps: [{ say: "Whole.", eventDelayMs: 700 }],
    });
    const { pool, drop } = await newAgentBench(kind, { conversations }, { agent, retries: 3 });
    await pool.start();
    const tasks = [...NAMES, "slow"].map((name, n) => ({ id: `t${n}`, name }));
    for (const { id, name } of tasks) drop(id, { prompt: `do "${name}"` });
    for (const { id, name } of tasks)
      expect([name, await pool.result(id, SLOW_MS)]).toMatchObject([
        name,
        { output: "Whole.", attempts: 1 },
      ]);
  });

  it("is put off while the service goes on like that, uses no attempt, and works when it is well again", async () => {
    const steps = NAMES.map((name) => ({
      name,
      marker: `"${name}"`,
      steps: [{ ...(WRONG[name] as Step), times: 6 }, { say: "Whole." }],
    }));
    const { pool, drop } = await newAgentBench(
      kind,
      { conversations: steps },
      { agent, retries: 1 },
    );
    await pool.start();
    const tasks = NAMES.map((name, n) => ({ id: `t${n}`, name }));
    for (const { id, name } of tasks) drop(id, { prompt: `do "${name}"` });
    for (const { id, name } of tasks) {
      const record = await pool.result(id, SLOW_MS);
      expect([name, record]).toMatchObject([name, { output: "Whole.", attempts: 1 }]);
      // A program may try so often by itself that nobody sees it.
      for (const why of putOff(pool, id)) expect([name, why]).toEqual([name, OVERLOADED]);
    }
    expect(NAMES.filter((_, n) => putOff(pool, `t${n}`).length > 0).length).toBeGreaterThan(3);
  });
});
