/** A retry whose time a wrong clock has set: whoever finds it waits no longer than the longest backoff. Real processes. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Mailbox } from "../../src/index.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const FAR_SECONDS = 20 * 3600;

/** Left by a worker whose clock was a day ahead, in a pool whose longest backoff is 100 ms. */
function leaveReady(pool: Pool, id: string, task: object): void {
  const staged = join(pool.dir, id);
  fs.writeFileSync(staged, JSON.stringify({ exec: ["true"], ...task }));
  const seconds = Date.now() / 1000 + FAR_SECONDS;
  fs.utimesSync(staged, seconds, seconds);
  fs.renameSync(staged, join(pool.processing, `${id}@abcdefgh.2~ready.json`));
}

test("a supervisor runs a retry that a wrong clock has put off until tomorrow", async () => {
  const pool = newPool();
  leaveReady(pool, "late", {});
  await pool.start(["--no-live"]);
  const { attempts } = await pool.result("late");
  expect(attempts).toBe(2);
});

test("a worker without a supervisor runs it, too", async () => {
  const pool = newPool();
  leaveReady(pool, "late", {});
  pool.spawn(["worker"]);
  const { attempts } = await pool.result("late");
  expect(attempts).toBe(2);
});

test("a batch that a wrong clock has put off is run, too", async () => {
  const pool = newPool();
  const path = join(pool.processing, "many@abcdefgh.2~ready.ndjson");
  fs.writeFileSync(path, '{"exec":["true"]}\n{"exec":["true"]}\n');
  fs.utimesSync(path, Date.now() / 1000, Date.now() / 1000 + FAR_SECONDS);
  await pool.start(["--no-live"]);
  expect((await pool.result("many")).status).toBe("completed");
});

test("a program with the library claims it after the longest backoff", async () => {
  const pool = newPool();
  leaveReady(pool, "late", {});
  const mailbox = Mailbox.open(pool.mailbox, { backoffMaxMs: 100 });
  const task = await waitFor(
    () => {
      try {
        return mailbox.claim();
      } catch (error) {
        if ((error as { code?: string }).code === "ErrNoTasks") return undefined;
        throw error;
      }
    },
    { what: "the task that was put off" },
  );
  expect(task.task.id).toBe("late");
  await mailbox.complete(task);
});

test.each(["run", "worker"])(
  "%s: what is ready waits for its not_before all the same",
  async (verb) => {
    const pool = newPool();
    leaveReady(pool, "late", {});
    pool.spawn([verb, ...(verb === "run" ? ["--no-live"] : [])]);
    await pool.result("late");
    const notBefore = Math.ceil(Date.now() / 1000) + 1;
    leaveReady(pool, "wished", { not_before: notBefore });
    await pool.result("wished");
    const started = pool
      .events()
      .find(({ event, task_id }) => event === "started" && task_id === "wished");
    expect(Date.parse(String(started?.["timestamp"]))).toBeGreaterThanOrEqual(notBefore * 1000);
  },
);
