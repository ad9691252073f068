/** Tasks that depend on a failed one: they are skipped, through the whole graph, and wait again when that one is retried. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { errorName } from "../../../src/core/names.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";

takeSome();

const TRUE = { exec: ["true"] };
const after = (...dependencies: (string | object)[]): object => ({
  ...TRUE,
  metadata: { dependencies },
});

/** Fails until a person makes the file `good`. */
const failing = (pool: Pool): object => ({
  exec: ["test", "-e", "good"],
  cwd: pool.dir,
  max_attempts: 1,
});

const mend = (pool: Pool): void => fs.writeFileSync(join(pool.dir, "good"), "");
const failedIn = (pool: Pool): string[] =>
  fs.readdirSync(join(pool.state, "mailbox", "failed")).sort();
const drain = (pool: Pool): ReturnType<Pool["run"]> => pool.run(["run", "--drain", "--no-live"]);

it("what depends on a failed task is skipped, with the chain to it, and runs after a retry of that one", async () => {
  const pool = newPool();
  pool.drop("build", failing(pool));
  pool.drop("lint", after("build"));
  pool.drop("test", after("lint"));
  pool.drop("report", after({ id: "test", required_status: "terminal" }));
  pool.drop("both", after("report", { id: "build", required_status: "done" }));
  const { code, stdout } = await drain(pool);
  expect([code, stdout.trim()]).toEqual([1, "1 completed, 1 failed, 3 skipped"]);
  expect(await pool.error("test")).toMatchObject({
    status: "failed",
    kind: "dependency_failed",
    code: "ErrDependencyFailed",
    attempts: 0,
    error: "skipped, because build failed (build > lint)",
    cause: "lint",
    root: "build",
    depth: 2,
    chain: ["build", "lint"],
  });
  expect(await pool.error("both")).toMatchObject({ cause: "build", depth: 1 });
  const waited = await pool.run(["wait", "test"]);
  expect([waited.code, waited.stdout.trim()]).toEqual([
    1,
    "test  skipped, because build failed (build > lint)",
  ]);
  expect((await pool.run(["ls", "--state-is", "failed"])).stdout).toMatch(/lint +skipped/);
  const alone = await pool.run(["retry", "test"]);
  expect([alone.code, alone.stderr]).toEqual([4, expect.stringContaining("mailchute retry build")]);
  mend(pool);
  expect((await pool.run(["retry", "build"])).stderr).toContain("3 skipped tasks");
  expect((await drain(pool)).stdout.trim()).toBe("4 completed, 0 failed");
  expect(failedIn(pool)).toEqual([]);
});

it("a task that comes later is skipped, too, and so is what waits for a cancelled one", async () => {
  const pool = newPool();
  pool.drop("build", failing(pool));
  pool.drop("waits", { ...TRUE, not_before: 4_000_000_000 });
  pool.drop("second", after("WAITS"));
  await pool.start();
  await pool.error("build");
  pool.drop("late", after("BUILD"));
  expect(await pool.error("late")).toMatchObject({ cause: "build" });
  await pool.run(["cancel", "waits", "--wait"]);
  expect(await pool.error("second")).toMatchObject({ cause: "waits", root: "waits" });
  // A file that was refused is no failure: a mended one may come.
  pool.drop("patient", after("bad"));
  pool.drop("bad", { title: 1 });
  await pool.error("bad");
  await pool.stop();
  expect(fs.existsSync(join(pool.inbox, "patient.json"))).toBe(true);
  mend(pool);
  const { stderr } = await pool.run(["retry", "--failed"]);
  expect(stderr).toContain("5 put back");
});

it("a task whose id a refused file had is skipped under its own name, and runs after a retry", async () => {
  const pool = newPool();
  pool.drop("lint", { title: 1 });
  await pool.start();
  await waitFor(() => failedIn(pool).includes(errorName("lint")), { what: "the refusal" });
  pool.drop("lint", after("build"));
  pool.drop("build", failing(pool));
  await waitFor(() => pool.events().some(({ event }) => event === "skipped"), { what: "the skip" });
  await pool.stop();
  expect(await pool.error("lint")).toMatchObject({ kind: "dependency_failed" });
  mend(pool);
  await pool.run(["retry", "build"]);
  expect((await drain(pool)).stdout.trim()).toBe("2 completed, 0 failed");
});

it("a node of the plan that has failed skips nothing: the plan may open it again", async () => {
  const pool = newPool();
  const plan =
    "nodes: [{ id: plan-000, type: plan, exec: ['false'], retry_policy: { max_attempts: 1 } }]\n";
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), plan);
  pool.drop("d", after("plan-000"));
  pool.drop("e", after({ id: "plan-000", required_status: "terminal" }));
  await drain(pool);
  expect(fs.readdirSync(pool.inbox)).toEqual(["d.json"]);
  expect(await pool.result("e")).toMatchObject({ status: "completed" });
});

it("a graph whose skipper is killed in the middle is skipped to the last one, once, and runs after a retry", async () => {
  const pool = newPool();
  const count = 400;
  pool.drop("root", failing(pool));
  const tasks = Array.from({ length: count }, (_, i) => `t${i}`);
  for (const [i, id] of tasks.entries())
    pool.drop(id, i < 20 ? after("root") : after(`t${i - 20}`, `t${i - 7}`));
  await pool.start();
  await waitFor(() => failedIn(pool).length > 30, { what: "the first skips" });
  await pool.killAll();
  await drain(pool);
  expect(failedIn(pool)).toEqual(["root", ...tasks].map(errorName).sort());
  // Of the two lines of an end, a kill may fall between them; the second one counts.
  const ended = pool.events().filter(({ event }) => event === "completed");
  const skipped = ended.filter(({ kind }) => kind === "dependency_failed");
  expect(skipped.map(({ task_id: id }) => String(id)).toSorted()).toEqual(tasks.toSorted());
  mend(pool);
  await pool.run(["retry", "root"]);
  expect((await drain(pool)).stdout.trim()).toBe(`${count + 1} completed, 0 failed`);
});
