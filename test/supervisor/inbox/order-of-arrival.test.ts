/** Tasks of one burst run in the order in which they came, as closely as the file system tells. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Mailbox } from "../../../src/index.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

const EARLY_SECONDS = 1_700_000_000;

async function orderOf(pool: Pool, count: number): Promise<unknown[]> {
  await pool.start(["--workers", "1", "--no-live"]);
  await waitFor(() => pool.settledCount() === count, { what: "all to settle" });
  return pool
    .events()
    .filter(({ event }) => event === "started")
    .map(({ task_id }) => task_id);
}

/** File systems stamp many files with the same time: the next one is dropped when theirs has moved on. */
async function nextTick(pool: Pool, after: string): Promise<void> {
  const probe = join(pool.dir, "probe");
  const { ctimeMs } = fs.statSync(after);
  await waitFor(
    () => {
      fs.writeFileSync(probe, "");
      return fs.statSync(probe).ctimeMs > ctimeMs;
    },
    { what: "a later time" },
  );
}

async function dropInOrder(pool: Pool, ids: readonly string[], task: object): Promise<void> {
  for (const id of ids) {
    const path = join(pool.inbox, `${id}.json`);
    pool.drop(id, { exec: ["true"], ...task });
    // As if all had been written within one second.
    fs.utimesSync(path, EARLY_SECONDS, EARLY_SECONDS);
    await nextTick(pool, path);
  }
}

test("a burst of numbered tasks without created_at runs in their order", async () => {
  const pool = newPool();
  const ids = Array.from({ length: 24 }, (_, n) => `j${n + 1}`);
  for (const id of ids) pool.drop(id, { exec: ["true"] });
  expect(await orderOf(pool, ids.length)).toEqual(ids);
});

test.each([
  ["without created_at", {}],
  ["with the same created_at", { created_at: EARLY_SECONDS }],
])("%s, who came first runs first, whatever the ids", async (_, task) => {
  const pool = newPool();
  const ids = ["late", "j10", "j9", "early", "a"];
  await dropInOrder(pool, ids, task);
  expect(await orderOf(pool, ids.length)).toEqual(ids);
});

test("what the command line enqueues one after the other runs in that order", async () => {
  const pool = newPool();
  const ids = ["c", "b", "a"];
  for (const id of ids)
    expect((await pool.run(["enqueue", "--id", id, "--", "true"])).code).toBe(0);
  expect(await orderOf(pool, ids.length)).toEqual(ids);
});

test("a program with the library claims them in that order, too", async () => {
  const pool = newPool();
  const ids = ["late", "j10", "j9", "early"];
  await dropInOrder(pool, ids, {});
  const mailbox = Mailbox.open(pool.mailbox);
  expect(ids.map(() => mailbox.claim().task.id)).toEqual(ids);
});
