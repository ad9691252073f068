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

/** A pool with a function that writes the file which its prompt names. */
function poolOfFunction(): Pool {
  const pool = newPool();
  const module = join(pool.dir, "writer.mjs");
  fs.writeFileSync(
    module,
    'import fs from "node:fs";\nexport default ({ prompt }) => prompt === "nothing" || fs.writeFileSync(prompt, "x");\n',
  );
  fs.appendFileSync(
    join(pool.state, "config.yaml"),
    `agents:\n  - {name: writer, kind: module, module: ${JSON.stringify(module)}, default: true}\n`,
  );
  return pool;
}

it("takes the file of a function, also when no other task has run that day", async () => {
  const pool = poolOfFunction();
  const file = join(pool.dir, "made");
  await pool.start();
  pool.drop("good", { prompt: file, expect_files: [file], max_attempts: 1 });
  await pool.result("good");
});

it("takes the file of a function in a line of a batch, and no older one", async () => {
  const pool = poolOfFunction();
  const [made, old] = ["made", "old"].map((name) => join(pool.dir, name));
  put(pool, "old", new Date(Date.now() - 60_000));
  await pool.start();
  const lines = [
    { prompt: made, expect_files: [made] },
    { prompt: "nothing", expect_files: [old], max_attempts: 1 },
  ];
  fs.writeFileSync(join(pool.dir, "b"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  fs.renameSync(join(pool.dir, "b"), join(pool.inbox, "b.ndjson"));
  expect(await pool.result("b")).toMatchObject({ batch: { completed: 1, failures: 1 } });
});

it("fails a function that has left an old file as it was, also when other tasks ran before that file was written", async () => {
  const pool = poolOfFunction();
  const file = join(pool.dir, "old");
  await pool.start();
  pool.drop("other", { exec: ["true"] });
  await pool.result("other");
  pool.drop("writes-it", { prompt: file });
  await pool.result("writes-it");
  pool.drop("lazy", { prompt: "nothing", expect_files: [file], max_attempts: 1 });
  expect((await pool.error("lazy")).error).toBe(
    `expect_files: ${file} is older than the task's first run`,
  );
});
