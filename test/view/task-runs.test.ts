/** The runs of a task, from its journal lines, and what it has cost: also over several runs. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { stateTree } from "../../src/core/state-tree.ts";
import { TaskPast } from "../../src/view/task-past.ts";
import { runsOf } from "../../src/view/task-runs.ts";
import { newPool } from "../support/pool.ts";

const line = (
  event: string,
  t: number,
  owner: string,
  more: object = {},
): Record<string, unknown> => ({
  event,
  t,
  attempt: 1,
  lease: "s.1",
  owner,
  worker: `w-${owner}`,
  ...more,
});

it("waits, runs, and what came between them", () => {
  const events = [
    line("selected", 1000, "", { queue_ms: 400 }),
    line("assigned", 1010, "a"),
    line("started", 1010, "a"),
    line("held", 2000, "a", { error: "at its limit", cpu_ms: 40, peak_memory_bytes: 5 }),
    line("started", 5000, "b"),
    line("reclaimed", 6000, "b", { reason: "dead" }),
    line("selected", 6001, "", { attempt: 2, lease: "s.2" }),
    line("started", 6010, "c", { attempt: 2, lease: "s.2" }),
    line("failed", 7000, "c", { attempt: 2, lease: "s.2", error: "exit code 1" }),
    line("retry_scheduled", 7001, "c", { attempt: 2, lease: "s.2", error: null }),
    line("started", 7500, "d", { attempt: 3, lease: "s.3" }),
    line("completed", 7900, "d", { attempt: 3, lease: "s.3", status: "failed" }),
    line("started", 9000, "e", { attempt: 1, lease: "z.1" }),
  ];
  const runs = runsOf(events.toReversed());
  expect(
    runs.map(({ attempt, waited_ms: w, began_ms: b, ended_ms: e, end, why }) => [
      attempt,
      w,
      b,
      e,
      end,
      why,
    ]),
  ).toEqual([
    [1, 410, 1010, 2000, "held", "at its limit"],
    [1, 3000, 5000, 6000, "reclaimed", "its worker was dead"],
    [2, 10, 6010, 7001, "retry_scheduled", "exit code 1"],
    [3, 499, 7500, 7900, "failed", ""],
    [1, 1100, 9000, null, null, ""],
  ]);
  const used = runs.map(({ cpu_ms: cpu, peak_memory_bytes: bytes }) => [cpu, bytes]);
  expect(used).toEqual([[40, 5], ...Array(4).fill([null, null])]);
});

it("lines that are no records, or lack what they should have, are passed over", () => {
  expect(
    runsOf([{}, { event: "started" }, { event: "completed", t: 1 }, { event: 7, t: 2 }]),
  ).toEqual([]);
  expect(runsOf([{ event: "started", t: 5 }])).toMatchObject([
    { attempt: 0, waited_ms: null, why: "" },
  ]);
});

it("the runs and the cost of a task are the same as its journal and `cost` have", async () => {
  const pool = newPool({
    config: "workers: 1\ndurability: process\nretry: {max_attempts: 2, backoff_ms: 20}\n",
  });
  pool.drop("bad", { exec: ["false"] });
  pool.drop("other", { exec: ["true"] });
  await pool.run(["run", "--drain"]);
  const cost = {
    at: 1,
    agent: "a",
    kind: "claude",
    account: "a",
    model: "m",
    session_id: "s",
    outcome: "completed",
  };
  const used = { input_tokens: 10, cached_input_tokens: 0, output_tokens: 3, cost_usd_micro: 500 };
  const [{ lease } = { lease: "" }] = new TaskPast(stateTree(pool.state), {}).look("bad").runs;
  const of = (task_id: string, run: string, more: object = {}): string =>
    JSON.stringify({ ...cost, ...used, task_id, run, ...more });
  const lines = [
    of("bad", "1"),
    of("bad", "1"),
    of("other", "2"),
    of("bad", "3", { lease }),
    "{rubbish bad",
  ];
  fs.writeFileSync(join(pool.state, "analytics/costs.2026-01-01.jsonl"), `${lines.join("\n")}\n`);
  const past = new TaskPast(stateTree(pool.state), {}).look("bad");
  expect(past.runs.map(({ attempt, end }) => [attempt, end])).toEqual([
    [1, "retry_scheduled"],
    [2, "failed"],
  ]);
  expect(past.cost).toMatchObject({
    runs: 2,
    input_tokens: 20,
    output_tokens: 6,
    cost_usd_micro: 1000,
  });
  expect(past.costs.get(lease)).toMatchObject({
    account: "a",
    cost: { runs: 1, cost_usd_micro: 500 },
  });
  const { stdout } = await pool.run(["cost", "--task", "bad", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ total: { runs: 2, cost_usd_micro: 1000 } });
});
