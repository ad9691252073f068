/** Dependencies of tasks: when they count as met, whoever spells them and however often a supervisor is started. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { resultName } from "../../src/core/names.ts";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const TRUE = { exec: ["true"] };
const after = (...dependencies: string[]): object => ({ ...TRUE, metadata: { dependencies } });

it("a dependency is met by the task of its id in any case, whether it settles before or after", async () => {
  const pool = newPool();
  pool.drop("A1", TRUE);
  await pool.start();
  await pool.result("A1");
  pool.drop("d1", after("a1", "A1"));
  pool.drop("d2", after("a2", "LATE"));
  await pool.result("d1");
  pool.drop("A2", TRUE);
  pool.drop("Late", TRUE);
  await pool.result("d2");
  await pool.stop();
  // Nothing is known by now but what lies in the trays.
  pool.drop("d3", after("a1", "LATE"));
  const show = await pool.run(["show", "d3", "--json"]);
  expect(JSON.parse(show.stdout).dependencies).toEqual([
    { id: "a1", state: "done", landing: null },
    { id: "LATE", state: "done", landing: null },
  ]);
  await pool.run(["run", "--drain", "--no-live"]);
  await pool.result("d3");
});

it("a run that drains also starts what waits for an epic of the plan", async () => {
  const pool = newPool();
  fs.writeFileSync(
    join(pool.state, "roadmap.yaml"),
    "epics: [{ id: E, milestones: [{ id: M, tasks: [{ id: a, exec: [echo, done] }] }] }]\n",
  );
  pool.drop("d", after("E"));
  pool.drop("after-d", after("d"));
  expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(0);
  expect(pool.results()).toHaveLength(3);
});

it("what depends on one that failed under another spelling is skipped, and runs when that is retried", async () => {
  const pool = newPool();
  pool.drop("Fails", { exec: ["test", "-e", "good"], cwd: pool.dir, max_attempts: 1 });
  await pool.start();
  await pool.error("Fails");
  pool.drop("d", after("fails"));
  expect(await pool.error("d")).toMatchObject({ kind: "dependency_failed", root: "Fails" });
  await pool.run(["enqueue", "--id", "other", "--wait", "--", "mkdir", "good"]);
  expect((await pool.run(["retry", "Fails"])).code).toBe(0);
  await pool.result("d");
});

it("what a waiting task depends on is kept past its retention, so that a later supervisor knows that it is met", async () => {
  const pool = newPool();
  for (const id of ["a", "x"]) pool.drop(id, TRUE);
  await pool.run(["run", "--drain", "--no-live"]);
  const results = ["a", "x"].map((id) => join(pool.outbox, resultName(id)));
  const longAgo = Date.now() / 1000 - 90 * 86_400;
  for (const path of results) fs.utimesSync(path, longAgo, longAgo);
  const areThere = (): boolean[] => results.map((path) => fs.existsSync(path));
  pool.drop("d", after("A", "b"));
  // Swept once by a supervisor, and once by hand when none runs.
  await pool.start();
  await waitFor(() => !fs.existsSync(results[1] ?? ""), { what: "the sweep" });
  expect(areThere()).toEqual([true, false]);
  await pool.stop();
  expect((await pool.run(["clean"])).stdout).toContain("removed 0 results");
  await pool.start();
  pool.drop("b", TRUE);
  await pool.result("d");
  await pool.stop();
  // The second supervisor may have swept it already.
  await pool.run(["clean"]);
  expect(areThere()).toEqual([false, false]);
});
