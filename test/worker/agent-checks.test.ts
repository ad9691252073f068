/** An agent's own checks hold for its tasks, lines of batches and nodes that have none. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { withChecks } from "../../src/worker/task-defaults.ts";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";

const AGENTS = `
agents:
  - {name: writer, kind: exec, result: optional, program: sh, args: [-c, 'eval "$WORK"'], verify: [sh, -c, "test ! -e broken"], expect_files: [made]}
  - {name: free, kind: exec, program: "true"}
`;

it("a task without checks gets those of its agent; its own ones win, also when they are empty", async () => {
  const pool = newPool({
    config: `${QUICK_CONFIG.replace("max_attempts: 3", "max_attempts: 1")}${AGENTS}`,
  });
  const place = (name: string): string => {
    fs.mkdirSync(join(pool.dir, name));
    return join(pool.dir, name);
  };
  await pool.start();
  pool.drop("good", { agent: "writer", env: { WORK: "touch made" }, cwd: place("a") });
  pool.drop("no-file", { agent: "writer", env: { WORK: "true" }, cwd: place("b") });
  pool.drop("red", { agent: "writer", env: { WORK: "touch made broken" }, cwd: place("c") });
  pool.drop("own", {
    agent: "writer",
    env: { WORK: "touch broken" },
    cwd: place("d"),
    verify: ["test", "-e", "broken"],
    expect_files: [],
  });
  pool.drop("none", {
    agent: "writer",
    env: { WORK: "touch broken" },
    cwd: place("e"),
    verify: [],
    expect_files: [],
  });
  pool.drop("other", { agent: "free" });
  for (const id of ["good", "own", "none", "other"])
    expect(await pool.result(id)).toMatchObject({ status: "completed" });
  expect(await pool.error("no-file")).toMatchObject({
    kind: "verify",
    error: expect.stringContaining("expect_files"),
  });
  expect(await pool.error("red")).toMatchObject({
    kind: "verify",
    error: expect.stringContaining("exit code 1"),
  });
  // The record has the task as it was dropped.
  expect(await pool.error("red")).toMatchObject({
    task: expect.not.objectContaining({ verify: expect.anything() }),
  });
});

it("a line of a batch and a node of the plan are checked, too", async () => {
  const pool = newPool({
    config: `${QUICK_CONFIG.replace("max_attempts: 3", "max_attempts: 1")}${AGENTS}`,
  });
  fs.writeFileSync(
    join(pool.state, "roadmap.yaml"),
    `nodes:\n  - {id: node, agent: writer, env: {WORK: "touch broken"}, cwd: ${pool.inbox}, retry_policy: {max_attempts: 1}}\n`,
  );
  const lines = [
    { agent: "writer", env: { WORK: "touch made" }, cwd: pool.dir },
    { agent: "writer", env: { WORK: "true" }, cwd: join(pool.dir, "state") },
  ];
  fs.writeFileSync(
    join(pool.dir, "lines.ndjson"),
    lines.map((one) => `${JSON.stringify(one)}\n`).join(""),
  );
  await pool.start();
  await pool.run(["enqueue", "--batch", "--id", "lines", "--file", join(pool.dir, "lines.ndjson")]);
  expect(await pool.result("lines")).toMatchObject({ batch: { failures: 1 } });
  expect(await pool.error("node")).toMatchObject({ kind: "verify" });
});

it("a task whose agent has no checks stays as it is", () => {
  const task = { id: "a", agent: "free" };
  expect(withChecks(task, { name: "free", kind: "exec" })).toBe(task);
});
