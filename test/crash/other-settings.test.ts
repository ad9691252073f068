/** Workers that were started with other settings than those in force: they fail nothing, and give way. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startTicksOf } from "../../src/host/identity.ts";
import { checkState } from "../support/check-state.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { starts, steeredConfig, steps } from "../support/steered.ts";
import { waitFor } from "../support/wait-for.ts";

/** One more agent than before. */
function addAgent(pool: Pool): void {
  const module = programPath("steered-handler.mjs");
  fs.appendFileSync(
    join(pool.state, "config.yaml"),
    `  - {name: new, kind: module, module: ${module}}\n`,
  );
}

it("a worker leaves a task to others when its settings have no agent for it, and takes it once only", async () => {
  const config = steeredConfig();
  const pool = newPool({ config });
  addAgent(pool);
  await pool.start(["--workers", "1"]);
  const until = join(pool.dir, "go");
  // From then on only the one that is started by hand has room.
  pool.drop("first", steps(pool, { does: "await", until }));
  await waitFor(() => starts(pool, "first").length === 1, { what: "the first run" });
  fs.writeFileSync(join(pool.state, "config.yaml"), config);
  const byHand = pool.spawn(["worker"]);
  pool.drop("task", { agent: "new", max_attempts: 1, ...steps(pool, {}) });
  await waitFor(() => pool.events().some((e) => e["event"] === "released"), {
    what: "the task to be left to others",
  });
  // It looks around for each of these, and finds the task beside them.
  for (const id of ["a", "b", "c"]) {
    fs.writeFileSync(join(pool.dir, "staged"), JSON.stringify({ exec: ["true"] }));
    fs.renameSync(join(pool.dir, "staged"), join(pool.processing, `${id}@12345678.1~ready.json`));
    await pool.result(id);
  }
  fs.writeFileSync(until, "");
  expect((await pool.result("task")).attempts).toBe(1);
  const released = pool.events().filter((e) => e["event"] === "released");
  expect(released.map((e) => e["task_id"])).toEqual(["task"]);
  expect(byHand.stderr().match(/^.*task is left.*$/gm)).toEqual([
    'mailchute: task is left to workers with other settings: no agent "new" is configured',
  ]);
});

it("a new supervisor replaces workers that were started with other settings, as soon as they have nothing to do", async () => {
  const pool = newPool({ config: steeredConfig() });
  const first = await pool.start(["--workers", "2"]);
  const until = join(pool.dir, "go");
  pool.drop("old", steps(pool, { does: "await", until }));
  await waitFor(() => starts(pool, "old").length === 1, { what: "the run" });
  const [old] = pool.workers();
  first.child.kill("SIGKILL");
  first.child.stderr?.destroy();
  await first.ended;

  addAgent(pool);
  const second = await pool.start(["--workers", "2"]);
  pool.drop("new", { agent: "new", ...steps(pool, { does: "speak" }) });
  const { output, attempts } = await pool.result("new");
  expect(attempts).toBe(1);
  expect((output as { pid: number }).pid).not.toBe(old?.pid);
  expect(second.stderr()).toContain(`worker ${old?.id} has other settings`);
  fs.writeFileSync(until, "");
  expect((await pool.result("old")).attempts).toBe(1);
  await waitFor(() => startTicksOf(old?.pid ?? 0) === undefined, { what: "the end of the old" });
  expect(pool.workers()).toHaveLength(1);
  await pool.stop();
  expect(checkState(pool.state, ["old", "new"], { hadCrashes: true })).toEqual([]);
});

it("workers with other settings count for the number of tasks at once", async () => {
  const pool = newPool({ config: steeredConfig() });
  const first = await pool.start(["--workers", "1"]);
  const until = join(pool.dir, "go");
  pool.drop("old", steps(pool, { does: "await", until }));
  await waitFor(() => starts(pool, "old").length === 1, { what: "the run" });
  first.child.kill("SIGKILL");
  first.child.stderr?.destroy();
  await first.ended;

  addAgent(pool);
  await pool.start(["--workers", "1"]);
  pool.drop("next", { agent: "new", ...steps(pool, {}) });
  await waitFor(() => pool.workers().length === 2, { what: "the new worker" });
  fs.writeFileSync(until, "");
  await pool.result("old");
  await pool.result("next");
  const begins = starts(pool, "next")[0]?.t ?? 0;
  const ends = pool.events().find((e) => e["task_id"] === "old" && e["event"] === "completed");
  expect(begins).toBeGreaterThanOrEqual(Number(ends?.["t"]) - 50);
});
