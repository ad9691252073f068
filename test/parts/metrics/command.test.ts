/** `metrics` on a real pool: its numbers are those of the journals, also of a pool that was killed, and its file is whole. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readExposition, type Series } from "../../support/exposition.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { counted, recount } from "../../support/recount.ts";
import { waitFor } from "../../support/wait-for.ts";

async function numbersOf(pool: Pool, ...args: string[]): Promise<Series> {
  const { code, stdout, stderr } = await pool.run(["metrics", ...args]);
  expect([code, stderr]).toEqual([0, ""]);
  return readExposition(stdout);
}

function drop(pool: Pool, id: string, task: object): void {
  fs.writeFileSync(join(pool.inbox, `${id}.json`), JSON.stringify({ id, ...task }));
}

test("the numbers of a pool are those of its journals, while it runs and after it was killed", async () => {
  const pool = newPool();
  const { child } = await pool.start();
  for (let n = 0; n < 6; n++) drop(pool, `good-${n}`, { exec: ["true"] });
  drop(pool, "bad", { exec: ["false"], max_attempts: 3 });
  drop(pool, "late", { exec: ["sleep", "60"], timeout_ms: 50, max_attempts: 1 });
  drop(pool, "after", { exec: ["true"], metadata: { dependencies: ["late"] } });
  drop(pool, "slow", { exec: ["sleep", "60"] });
  const ended = (): number =>
    fs.readdirSync(pool.outbox).length + fs.readdirSync(pool.failed).length;
  await waitFor(() => ended() === 9, { what: "the ends of nine tasks" });
  await waitFor(
    async () =>
      counted(recount(pool.state))['mailchute_tasks_settled_total{result="skipped"}'] === 1,
    {
      what: "the last line",
    },
  );
  const numbers = await numbersOf(pool);
  expect(counted(numbers)).toEqual(counted(recount(pool.state)));
  expect(Object.fromEntries(numbers)).toMatchObject({
    mailchute_up: 1,
    'mailchute_tasks{state="done"}': 6,
    'mailchute_tasks{state="failed"}': 2,
    'mailchute_tasks{state="running"}': 1,
    'mailchute_tasks_settled_total{result="completed"}': 6,
    'mailchute_tasks_settled_total{result="skipped"}': 1,
    'mailchute_task_failures_total{kind="exit"}': 1,
    'mailchute_task_failures_total{kind="timeout"}': 1,
    'mailchute_task_retries_total{kind="exit"}': 2,
    mailchute_slots: 4,
    mailchute_slots_busy: 1,
    mailchute_task_wait_seconds_count: 9,
  });
  const heartbeat = numbers.get("mailchute_supervisor_heartbeat_timestamp_seconds") ?? 0;
  expect(Math.abs(heartbeat - Date.now() / 1000)).toBeLessThan(60);
  child.kill("SIGKILL");
  await waitFor(async () => (await numbersOf(pool)).get("mailchute_up") === 0, {
    what: "its death",
  });
  expect(counted(await numbersOf(pool))).toEqual(counted(recount(pool.state)));
});

test("the file for node_exporter is readable for all, whatever the umask says, and nothing is left beside it", async () => {
  const pool = newPool();
  fs.mkdirSync(pool.inbox, { recursive: true });
  const dir = join(pool.dir, "textfiles");
  fs.mkdirSync(dir);
  const path = join(dir, "pool.prom");
  const before = process.umask(0o077);
  try {
    fs.writeFileSync(path, "old");
    const args = ["metrics", "--textfile", path, "--label", "tree=a=b"];
    expect(await pool.run(args)).toEqual({ code: 0, stdout: "", stderr: "" });
  } finally {
    process.umask(before);
  }
  expect(fs.readdirSync(dir)).toEqual(["pool.prom"]);
  expect(fs.statSync(path).mode & 0o777).toBe(0o644);
  const numbers = readExposition(fs.readFileSync(path, "utf8"));
  expect(numbers.get('mailchute_up{tree="a=b"}')).toBe(0);
  // A folder stands there: it stays, and so does nothing else.
  fs.mkdirSync(join(dir, "taken.prom"));
  const { code, stderr } = await pool.run(["metrics", "--textfile", join(dir, "taken.prom")]);
  expect([code, stderr]).toEqual([74, expect.stringContaining("cannot write")]);
  expect(fs.readdirSync(dir)).toEqual(["pool.prom", "taken.prom"]);
});

test.each([
  ["--textfile", "/tmp/pool.txt"],
  ["--label", "tree"],
  ["--label", "=x"],
  ["--label", "le=1"],
  ["--label", "__name__=x"],
  ["--label", "a b=x"],
  ["--label", "a=1", "--label", "a=2"],
])("what Prometheus would refuse is refused: %s %s", async (...args) => {
  const pool = newPool();
  const { code, stdout } = await pool.run(["metrics", ...args]);
  expect([code, stdout]).toEqual([2, ""]);
});
