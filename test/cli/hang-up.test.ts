/** Closing the terminal stops a pool and a worker in order: what runs is given back, and nothing fails. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkState } from "../support/check-state.ts";
import { newPool } from "../support/pool.ts";
import { starts, steeredConfig, steps, trace } from "../support/steered.ts";
import { waitFor } from "../support/wait-for.ts";

it("a worker that is hung up on gives back what it runs", async () => {
  const pool = newPool({ config: steeredConfig({ grace_ms: 100 }) });
  await pool.start(["--workers", "1"]);
  const byHand = pool.spawn(["worker"]);
  await waitFor(() => pool.workers().length === 2, { what: "two workers" });
  const until = join(pool.dir, "go");
  for (const id of ["a", "b"])
    pool.drop(id, { max_attempts: 1, ...steps(pool, { does: "await", until }) });
  await waitFor(() => trace(pool).length === 2, { what: "both runs" });
  byHand.child.kill("SIGHUP");
  expect(await byHand.ended).toEqual({ exitCode: 0, signal: null });
  fs.writeFileSync(until, "");
  for (const id of ["a", "b"]) expect((await pool.result(id)).attempts).toBe(1);
  await pool.stop();
  expect(checkState(pool.state, ["a", "b"])).toEqual([]);
});

it("a pool that is hung up on, by shell and system, gives back what it runs, and says that it stopped", async () => {
  const pool = newPool({ config: steeredConfig({ grace_ms: 100 }) });
  const run = await pool.start(["--workers", "1"]);
  pool.drop("task", steps(pool, { does: "await", until: join(pool.dir, "never") }));
  await waitFor(() => starts(pool, "task").length === 1, { what: "the run" });
  for (let n = 0; n < 2; n++) run.child.kill("SIGHUP");
  expect(await run.ended).toEqual({ exitCode: 0, signal: null });
  expect(pool.supervisor()?.status).toBe("stopped");
  expect(pool.events().at(-1)).toMatchObject({ event: "supervisor_stopped", reason: "stop" });
  expect(fs.readdirSync(pool.processing)).toEqual([expect.stringMatching(/^task@\w+\.1~ready/)]);
  expect(pool.pids()).toEqual([]);
});
