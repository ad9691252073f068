/** The files that a task must leave decide whether it is done. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool, type Pool } from "../support/pool.ts";

function put(pool: Pool, name: string, time?: Date): void {
  const path = join(pool.dir, name);
  fs.writeFileSync(path, "x");
  if (time !== undefined) fs.utimesSync(path, time, time);
}

it("lets a task pass that has left its files, and fails one that has not", async () => {
  const pool = newPool();
  await pool.start();
  pool.drop("good", { exec: ["touch", "a", "b"], expect_files: ["a", "./b"] });
  await pool.result("good");
  pool.drop("bad", { exec: ["touch", "c"], expect_files: ["c", "d"], max_attempts: 1 });
  expect(await pool.error("bad")).toMatchObject({
    kind: "verify",
    code: "ErrVerify",
    error: "expect_files: d is not there",
  });
});

it("fails a task that has left an old file as it was", async () => {
  const pool = newPool();
  put(pool, "old", new Date(Date.now() - 60_000));
  fs.mkdirSync(join(pool.dir, "folder"));
  await pool.start();
  pool.drop("lazy", { exec: ["true"], expect_files: ["old", "folder"], max_attempts: 1 });
  expect((await pool.error("lazy")).error).toBe(
    "expect_files: old is older than the task's first run",
  );
  pool.drop("busy", { exec: ["sh", "-c", "echo x >> old"], expect_files: ["old", "folder"] });
  await pool.result("busy");
});

it("takes a file that an earlier run of the task has written", async () => {
  const pool = newPool();
  await pool.start();
  const once = "[ -e file ] && exit 0; touch file; exit 1";
  pool.drop("second", { exec: ["sh", "-c", once], expect_files: ["file"] });
  expect(await pool.result("second")).toMatchObject({ attempts: 2 });
});

it("looks for the files where the task runs, also for a node of the plan and a line of a batch", async () => {
  const pool = newPool();
  fs.mkdirSync(join(pool.dir, "work"));
  fs.writeFileSync(
    join(pool.state, "roadmap.yaml"),
    "nodes:\n  - {id: made, exec: [touch, out], cwd: work, expect_files: [out], retry_policy: {max_attempts: 1}}\n" +
      "  - {id: not-made, exec: ['true'], cwd: work, expect_files: [none], retry_policy: {max_attempts: 1}}\n",
  );
  await pool.start();
  await pool.result("made");
  expect(await pool.error("not-made")).toMatchObject({ kind: "verify" });
  const lines = [
    { id: "l1", exec: ["touch", "l1"], expect_files: ["l1"] },
    { id: "l2", exec: ["true"], expect_files: ["l2"], max_attempts: 1 },
  ];
  fs.writeFileSync(join(pool.dir, "b"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  fs.renameSync(join(pool.dir, "b"), join(pool.inbox, "b.ndjson"));
  expect(await pool.result("b")).toMatchObject({ batch: { completed: 1, failures: 1 } });
});
