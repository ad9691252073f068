/** Tasks with one `dedup_key`: the first one is kept, and what depends on another one waits for that. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool, type Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

const TRUE = { exec: ["true"] };
const keyed = (more: object = {}): object => ({ ...TRUE, dedup_key: "k", ...more });
const after = (id: string): object => ({ ...TRUE, metadata: { dependencies: [id] } });
const drain = async (pool: Pool): Promise<[number | null, string]> => {
  const { code, stdout } = await pool.run(["run", "--drain", "--no-live"]);
  return [code, stdout.trim()];
};

/** Runs until a person makes the file `good`. */
const waiting = (pool: Pool): object => ({
  exec: ["sh", "-c", "until test -e good; do sleep 0.05; done"],
  cwd: pool.dir,
});
const mend = (pool: Pool): void => fs.writeFileSync(join(pool.dir, "good"), "");

it("while one waits or runs, another one does not run, and what depends on that one follows the first", async () => {
  const pool = newPool();
  await pool.start();
  pool.drop("first", keyed(waiting(pool)));
  await waitFor(() => pool.events().some(({ event }) => event === "started"), {
    what: "its start",
  });
  pool.drop("second", keyed());
  expect(await pool.error("second")).toMatchObject({
    kind: "duplicate_key",
    code: "ErrDuplicateKey",
    error: "not run: first has the same dedup_key",
    of: "first",
    attempts: 0,
  });
  pool.drop("third", after("second"));
  pool.drop("other", keyed({ dedup_key: "K" }));
  await pool.result("other");
  expect(fs.existsSync(join(pool.inbox, "third.json"))).toBe(true);
  mend(pool);
  await pool.result("third");
  await pool.stop();
  expect((await pool.run(["why", "second"])).stdout).toContain("first has the same dedup_key");
  // The key is free: a duplicate that is tried again runs.
  const all = await pool.run(["retry", "--failed"]);
  expect(all.stderr).toContain("1 cannot run again");
  await pool.run(["retry", "second"]);
  expect(await drain(pool)).toEqual([0, "1 completed, 0 failed"]);
});

it("of files that came while no supervisor ran the oldest is the first, and the others are no failure", async () => {
  const pool = newPool();
  pool.drop("a", keyed({ created_at: 30 }));
  pool.drop("b", keyed({ created_at: 20 }));
  pool.drop("c", keyed({ created_at: 10, not_before: 20 }));
  pool.drop("d", { ...after("a"), created_at: 40 });
  // A slow machine may need longer to read them than a pool waits.
  await pool.start(["--paused"]);
  for (const id of ["a", "b"]) expect(await pool.error(id)).toMatchObject({ of: "c" });
  await pool.run(["resume"]);
  await pool.result("d");
  await pool.stop();
  expect(await pool.result("c")).toMatchObject({ status: "completed" });
  // Nothing is left of it but the notes.
  pool.drop("e", after("b"));
  expect(await drain(pool)).toEqual([0, "1 completed, 0 failed"]);
});

it("a first one that fails frees the key, skips what depends on its duplicates, and puts that back when it is retried", async () => {
  const pool = newPool();
  const window = { dedup_window_ms: 3_600_000 };
  const failing = { exec: ["test", "-e", "good"], cwd: pool.dir, max_attempts: 1 };
  pool.drop("first", keyed({ ...failing, created_at: 10 }));
  pool.drop("second", keyed({ ...window, created_at: 20 }));
  pool.drop("third", after("second"));
  expect(await drain(pool)).toEqual([1, "0 completed, 1 failed, 1 skipped, 1 duplicate not run"]);
  expect(await pool.error("third")).toMatchObject({ cause: "second", root: "first", depth: 2 });
  mend(pool);
  expect((await pool.run(["retry", "first"])).stderr).toContain("1 skipped task put back");
  expect(await drain(pool)).toEqual([0, "2 completed, 0 failed"]);
  // It has completed now, so its window counts.
  pool.drop("fourth", keyed(window));
  pool.drop("fifth", keyed());
  expect(await drain(pool)).toEqual([0, "1 completed, 0 failed, 1 duplicate not run"]);
  expect(await pool.error("fourth")).toMatchObject({ of: "first" });
});
