/** Tasks of a group that the settings send to other machines wait for them, although their agent is one of this tree. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

test("without a machine they wait, and say why; other tasks of the same agent run here, and so do they without the setting", async () => {
  const pool = newPool({
    config: `${QUICK_CONFIG}
agents: [{name: near, kind: exec, program: sh, args: [-c, "true"]}]
groups: {train: {slots: 1}}
cluster: {groups: {render: gpu, train: gpu}}
`,
  });
  const run = await pool.start();
  const ids = ["a", "b"];
  for (const [n, group] of ["render", "train"].entries())
    pool.drop(ids[n] ?? "", { agent: "near", prompt: "?", group });
  pool.drop("here", { agent: "near", prompt: "?", group: "other" });
  expect(await pool.result("here")).toMatchObject({ status: "completed" });
  for (const id of ids)
    await waitFor(
      async () => (await pool.run(["why", id])).stdout.includes("no bridge runs here"),
      { what: `why ${id} waits` },
    );
  expect(fs.readdirSync(pool.inbox).filter((file) => file.endsWith(".json"))).toHaveLength(2);
  const obstacles = (await pool.run(["status"])).stdout.match(/no bridge runs here/g);
  expect(obstacles).toHaveLength(1);
  run.child.kill("SIGTERM");
  await run.ended;
  const path = join(pool.state, "config.yaml");
  fs.writeFileSync(path, fs.readFileSync(path, "utf8").replace(/^cluster:.*$/m, ""));
  await pool.start();
  for (const id of ids) expect(await pool.result(id)).toMatchObject({ status: "completed" });
});

test("a dropped program for an agent that cannot run it fails with the name of the agent, and one for other machines waits for them", async () => {
  const pool = newPool({
    config: `${QUICK_CONFIG}
agents: [{name: far, kind: remote, where: gpu}, {name: coder, kind: claude}]
`,
  });
  await pool.start();
  pool.drop("away", { agent: "far", exec: ["date"] });
  for (const agent of ["nosuch", "coder"]) pool.drop(agent, { agent, exec: ["date"] });
  expect(await pool.error("nosuch")).toMatchObject({ error: 'no agent "nosuch" is configured' });
  expect(await pool.error("coder")).toMatchObject({
    code: "ErrInvalidTask",
    error: "agent coder is of kind claude, which does not run an exec",
  });
  await waitFor(async () => (await pool.run(["why", "away"])).stdout.includes("no bridge runs"), {
    what: "the program waits for a machine",
  });
});

test("a dropped task with a misspelt group runs here, and an alert names the group that was perhaps meant", async () => {
  const pool = newPool({ config: `${QUICK_CONFIG}\ncluster: {groups: {render: gpu}}\n` });
  await pool.start();
  pool.drop("a", { exec: ["true"], group: "rendre" });
  pool.drop("b", { exec: ["true"], group: "nightly" });
  for (const id of ["a", "b"]) expect(await pool.result(id)).toMatchObject({ status: "completed" });
  expect(pool.alerts().map(({ message }) => message)).toEqual([
    'a.json: config.yaml has no group "rendre"; did it mean render?',
  ]);
});

test("a line of a batch for an agent at other machines is refused, and the batch ends", async () => {
  const pool = newPool({
    config: `${QUICK_CONFIG}
agents: [{name: far, kind: remote, where: gpu}]
`,
  });
  const lines = [{ agent: "far", prompt: "?" }, { exec: ["true"] }];
  const text = lines.map((line) => JSON.stringify(line)).join("\n");
  fs.writeFileSync(join(pool.dir, "b"), `${text}\n`);
  fs.renameSync(join(pool.dir, "b"), join(pool.inbox, "b.ndjson"));
  await pool.start();
  expect(await pool.result("b")).toMatchObject({ batch: { lines: 2, completed: 1, bad: 1 } });
  const results = fs.readFileSync(join(pool.outbox, "b_results.ndjson"), "utf8");
  expect(results).toMatch(/the agent far is at other machines/);
});
