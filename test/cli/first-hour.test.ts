/** What a newcomer meets in the first hour: lists that `awk` can read, and the same end of a wait for each way to enqueue. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { LISTED_STATES } from "../../src/view/page-of-tasks.ts";
import { stateWord, type TaskRow } from "../../src/view/task-rows.ts";
import { newPool } from "../support/pool.ts";

it("ls: each state is one word, so that the columns stay in their places", () => {
  const row: TaskRow = {
    id: "a",
    state: "done",
    attempt: null,
    priority: null,
    time_ms: null,
    pid: null,
    title: "",
    error: null,
    failed_lines: 0,
    gate: null,
    group: null,
    agent: null,
  };
  const gates = [null, "quota-ada", "land-0a1b2c3d4e5f6071.main", "question-colour"];
  const texts = [...LISTED_STATES, "delayed", "orphaned", "skipped", "cancelled"].flatMap((state) =>
    gates.flatMap((gate) =>
      [0, 5].map((failedLines) => stateWord({ ...row, state, gate, failed_lines: failedLines })),
    ),
  );
  for (const text of texts) expect(text).toMatch(/^\S+$/);
  expect(stateWord({ ...row, failed_lines: 5 })).toBe("done-not-all");
});

it("enqueue --like --wait tells the end and prints what the program wrote, as enqueue -- does", async () => {
  const pool = newPool();
  await pool.start();
  const first = await pool.run(["enqueue", "--id", "a", "--wait", "--", "echo", "hello"]);
  const like = await pool.run(["enqueue", "--like", "a", "--id", "b", "--wait"]);
  expect([first.stdout, like.stdout]).toEqual(["a\nhello\n", "b\nhello\n"]);
  const bad = ["enqueue", "--like", "a", "--id", "c", "--max-attempts", "1", "--wait", "--"];
  expect(await pool.run([...bad, "sh", "-c", "echo no >&2; exit 3"])).toMatchObject({
    code: 1,
    stdout: "c\n",
    stderr: expect.stringContaining("c failed: no"),
  });
  expect((await pool.run(["ls"])).stdout).toMatch(/^c +failed +1 /m);
});

it("settings that were saved while the pool runs are said not to be in force, until the next start", async () => {
  const pool = newPool();
  await pool.start();
  const told = async (): Promise<boolean[]> =>
    await Promise.all(
      [["status"], ["group", "ls"], ["config"], ["top", "--json"]].map(async (words) => {
        const { stdout, stderr } = await pool.run(words);
        return /config\.yaml was saved after the supervisor had started/.test(
          `${stdout}${stderr}`.replace(/\n +/g, " "),
        );
      }),
    );
  expect(await told()).toEqual([false, false, false, false]);
  fs.appendFileSync(join(pool.state, "config.yaml"), "groups: {gpu: {slots: 1}}\n");
  expect(await told()).toEqual([true, true, true, true]);
  await pool.stop();
  await pool.start();
  expect(await told()).toEqual([false, false, false, false]);
});

it("enqueue --batch says how many lines are no tasks, and submits it as it is", async () => {
  const pool = newPool();
  fs.writeFileSync(
    join(pool.dir, "lines"),
    '{"exec":["true"]}\nnot JSON\n\n[1]\n{"exec":["true"]}\n',
  );
  const batch = ["enqueue", "--batch", "--id", "b", "--file", join(pool.dir, "lines")];
  const { code, stdout, stderr } = await pool.run(batch);
  expect([code, stdout]).toEqual([0, "b\n"]);
  expect(stderr).toContain("4 lines");
  expect(stderr).toContain("2 of them are no tasks and will fail, first line 2");
});
