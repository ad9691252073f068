/** What runs when a task has ended: once for each end, with the result in its environment. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Mailbox } from "../../src/app/mailbox.ts";
import { decodeTask } from "../../src/codec/task-codec.ts";
import { decodeSettings } from "../../src/config/decode-settings.ts";
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

/** Writes a line of what it is told. */
const TELL = [
  "sh",
  "-c",
  'echo "$MAILCHUTE_CALLBACK $MAILCHUTE_OF_ID $MAILCHUTE_OF_STATUS $MAILCHUTE_OF_KIND. $MAILCHUTE_OF_EXIT_CODE. $MAILCHUTE_OF_ATTEMPTS $OWN" >> "$TOLD"',
];

function told(pool: Pool): string[] {
  const path = join(pool.dir, "told");
  return fs.existsSync(path)
    ? fs.readFileSync(path, "utf8").split("\n").filter(Boolean).sort()
    : [];
}

const untilTold = (pool: Pool, count: number): Promise<unknown> =>
  waitFor(() => told(pool).length === count, { what: `${count} calls` });

/** A callback that says where to write. */
const tell = (pool: Pool): object => ({ exec: TELL, env: { TOLD: join(pool.dir, "told") } });

test("each end of a task calls what it, its group or the settings say, once, and a callback calls nothing", async () => {
  const pool = newPool();
  const callback = JSON.stringify(tell(pool));
  fs.writeFileSync(
    join(pool.state, "config.yaml"),
    `${QUICK_CONFIG}on_failure: ${callback}\non_settled: ${callback}\ngroups: {quiet: {on_settled: none}}\n`,
  );
  const own = { env: { TOLD: join(pool.dir, "told"), OWN: "mine" } };
  pool.drop("good", { exec: ["true"], on_success: TELL, on_settled: "none", ...own });
  pool.drop("bad", { exec: ["sh", "-c", "exit 3"], max_attempts: 2, group: "quiet" });
  pool.drop("after", {
    exec: ["true"],
    metadata: { dependencies: ["bad"] },
    on_failure: TELL,
    ...own,
  });
  // What it calls fails, and that calls nothing.
  pool.drop("sad", {
    exec: ["true"],
    on_success: { exec: ["false"], max_attempts: 1 },
    on_settled: "none",
  });
  pool.drop("later", { exec: ["true"], not_before: 4_000_000_000, on_settled: "none" });
  await pool.start();
  await untilTold(pool, 3);
  expect((await pool.run(["cancel", "later"])).code).toBe(0);
  await untilTold(pool, 4);
  await pool.run(["wait"]);
  expect(told(pool)).toEqual([
    "on_failure after failed dependency_failed. . 0 mine",
    "on_failure bad failed exit. 3. 2 ",
    "on_failure later failed cancelled. . 0 ",
    "on_success good completed . 0. 1 mine",
  ]);
  const [called] = pool.results().filter(({ task_id: id }) => id.startsWith("good."));
  const task = (called as unknown as { task: Record<string, unknown> } | undefined)?.task ?? {};
  expect(task).toMatchObject({ callback_of: "good", group: "callbacks", priority: 1 });
  const { MAILCHUTE_OF_RECORD: record = "", MAILCHUTE_OF_RUN: run = "" } = task["env"] as Record<
    string,
    string
  >;
  expect(JSON.parse(fs.readFileSync(record, "utf8"))).toMatchObject({ task_id: "good" });
  expect(fs.existsSync(run)).toBe(true);
  // A retried task ends once more.
  expect((await pool.run(["retry", "later"])).code).toBe(0);
  expect((await pool.run(["cancel", "later"])).code).toBe(0);
  await untilTold(pool, 5);
});

test("a drain waits for what the last task calls", async () => {
  const pool = newPool();
  for (const id of ["a", "b"]) pool.drop(id, { exec: ["true"], on_settled: tell(pool) });
  expect((await pool.run(["run", "--drain"])).code).toBe(0);
  expect(told(pool)).toHaveLength(2);
  expect(fs.readdirSync(pool.inbox)).toEqual([]);
});

test("a program that settles with the library calls what the task says", async () => {
  const mailbox = Mailbox.open(join(tempDir(), "mailbox"), { durability: "process" });
  await mailbox.enqueue({ id: "a", title: "x", on_failure: ["echo"], priority: 2 });
  await mailbox.fail(mailbox.claim(), "no", { canRetry: false });
  const { task } = mailbox.claim();
  expect(task).toMatchObject({ exec: ["echo"], callback_of: "a", priority: 3 });
  expect(task.env).toMatchObject({ MAILCHUTE_OF_STATUS: "failed", MAILCHUTE_OF_ERROR: "no" });
});

test("of a task without callbacks nothing more is asked of the system", async () => {
  const mailbox = Mailbox.open(join(tempDir(), "mailbox"), { durability: "process" });
  await mailbox.enqueue({ id: "a", title: "x" });
  await mailbox.complete(mailbox.claim());
  expect(fs.existsSync(join(mailbox.dir, ".once"))).toBe(false);
});

test.each([
  [{ on_success: [] }, "on_success: expected a program with its arguments, or a task"],
  [{ on_success: [""] }, "on_success: the program's name is empty"],
  [{ on_failure: "mail me" }, "on_failure: expected a program with its arguments, or a task"],
  [
    { on_failure: { title: "x", on_settled: ["y"] } },
    "a callback has no callbacks: take on_settled out",
  ],
  [{ on_failure: { title: "x", id: "y" } }, "mailchute gives it its id: take that out"],
  [{ on_settled: {} }, "on_settled: nothing to run"],
  [{ on_settled: { exec: [] } }, "on_settled: exec: "],
])("%j is refused", (fields, words) => {
  const text = JSON.stringify({ exec: ["true"], ...fields });
  expect(() => decodeTask(Buffer.from(text), "a")).toThrow(words);
});

test("settings with a callback that cannot run are refused", () => {
  const decode = (text: string): unknown =>
    decodeSettings({ path: "config.yaml", text, env: {}, flags: {} }).settings.on_failure;
  expect(DEFAULT_SETTINGS.on_failure).toBe("none");
  expect(decode("on_failure: [echo, hi]")).toEqual(["echo", "hi"]);
  expect(() => decode("on_failure: {id: x, exec: [a]}")).toThrow(
    "on_failure: mailchute gives it its id",
  );
  expect(() => decode("groups: {g: {on_success: {}}}")).toThrow(
    "groups.g.on_success: nothing to run",
  );
});
