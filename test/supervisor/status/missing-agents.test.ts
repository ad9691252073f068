/** What no agent fits: people hear of it, be it a task or a node of the plan. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool, type Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

const NODE = 'node c cannot run: no agent "nosuch" is configured';
const TASK = 'task t cannot run: no agent "none" is configured';

const told = (pool: Pool): unknown[] =>
  pool
    .alerts()
    .filter(({ alert }) => alert === "no_agent")
    .map(({ message }) => message);

it("a node and a task that no agent fits each leave one alert, and a line in what run says", async () => {
  const pool = newPool();
  fs.writeFileSync(
    join(pool.state, "roadmap.yaml"),
    'nodes:\n  - { id: b, exec: ["true"] }\n  - { id: c, agent: nosuch, dependencies: [b] }\n',
  );
  pool.drop("t", { agent: "none", prompt: "x" });
  const run = await pool.start();
  await waitFor(() => told(pool).length === 2, { what: "both alerts" });
  expect(new Set(told(pool))).toEqual(new Set([NODE, TASK]));
  // Looked at again and again, told once.
  const { heartbeat_at: first } = pool.supervisor() ?? {};
  await waitFor(() => pool.supervisor()?.heartbeat_at !== first, { what: "another heartbeat" });
  expect(told(pool)).toHaveLength(2);
  for (const line of [NODE, TASK]) expect(run.stderr().split(line)).toHaveLength(2);
});

it("a drain that ends at once tells of them, too", async () => {
  const pool = newPool();
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), "nodes:\n  - { id: c, agent: nosuch }\n");
  expect((await pool.run(["run", "--drain"])).code).toBe(1);
  expect(told(pool)).toEqual([NODE]);
});
