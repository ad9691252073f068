/** Notifications of a real pool to a real receiver. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool, type Pool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newReceiver, type Receiver } from "./receiver.ts";

const FAILS = { exec: ["sh", "-c", "exit 3"], max_attempts: 1 };

function poolWith(...targets: object[]): Pool {
  return newPool({ config: `${QUICK_CONFIG}notify: ${JSON.stringify(targets)}\n` });
}

function titles({ received }: Receiver): string[] {
  return received.map(({ body }) => (JSON.parse(body) as { data: { title: string } }).data.title);
}

const ids = ({ received }: Receiver) => received.map(({ headers }) => headers["webhook-id"]);

it("many failures of a run are one message, and a run without news sends none", async () => {
  const receiver = await newReceiver();
  const pool = poolWith({ name: "ops", url: receiver.url });
  for (let i = 0; i < 12; i++) pool.drop(`t-${i}`, FAILS);
  pool.drop("good", { exec: ["true"] });
  expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(1);
  expect(titles(receiver)).toEqual([expect.stringMatching(/: 12 failed$/)]);
  pool.drop("good-2", { exec: ["true"] });
  expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(0);
  expect(receiver.received).toHaveLength(1);
});

it("a message keeps its id until it is received, also when the pool is killed meanwhile", async () => {
  const receiver = await newReceiver();
  receiver.answers.push(500, { status: 429, headers: { "retry-after": "0" } });
  const pool = poolWith({ name: "ops", url: receiver.url, every_ms: 0 });
  await pool.start();
  pool.drop("a", FAILS);
  await waitFor(() => receiver.received.length === 1, { what: "the first try" });
  const state = join(pool.state, "notify", "state.json");
  await waitFor(() => fs.readFileSync(state, "utf8").includes("answered 500"), {
    what: "the note of the first try",
  });
  await pool.killAll();
  const { stdout } = await pool.run(["notify", "ls"]);
  expect(stdout).toMatch(
    /ops: .*on\s+its\s+way,\s+tried\s+1\s+time:\s+mailchute\s.*:\s1\s+failed;\s+127\.0\.0\.1:\d+\s+answered\s+500/s,
  );
  pool.drop("b", FAILS);
  // The end of a run tries once more what is on its way; what came meanwhile goes with the next one.
  await pool.run(["run", "--drain", "--no-live"]);
  await pool.run(["run", "--drain", "--no-live"]);
  await pool.run(["run", "--drain", "--no-live"]);
  const [first, second, third, fourth] = ids(receiver);
  expect([second, third]).toEqual([first, first]);
  expect(fourth).toMatch(/^ops-2-/);
  expect(titles(receiver)[3]).toMatch(/: 1 failed$/);
  expect(receiver.received[3]?.body).toContain("b: ");
  expect(receiver.received).toHaveLength(4);
});

it("what happened while no supervisor ran is told by the next one, and each failure once", async () => {
  const receiver = await newReceiver();
  const pool = poolWith({ name: "ops", url: receiver.url, every_ms: 0 });
  await pool.start();
  await pool.stop();
  // As another worker would write it, and with a journal that was rotated since.
  const events = join(pool.state, "analytics", "supervisor_lifecycle.jsonl");
  const line = (id: string) =>
    `${JSON.stringify({ event: "failed", task_id: id, error: "exit 9", kind: "exit", t: 1 })}\n`;
  fs.appendFileSync(events, line("before"));
  fs.renameSync(events, events.replace(".jsonl", ".2026-01-01T00-00-00-000Z.jsonl"));
  fs.writeFileSync(events, line("after"));
  await pool.run(["run", "--drain", "--no-live"]);
  await pool.run(["run", "--drain", "--no-live"]);
  expect(receiver.received).toHaveLength(1);
  expect(receiver.received[0]?.body).toMatch(/before: exit 9.*after: exit 9/s);
});

it("a program gets the message as variables and on stdin, and nothing of it is a command", async () => {
  const pool = poolWith({
    name: "desk",
    command: [
      "sh",
      "-c",
      'printf "%s|%s|" "$MAILCHUTE_NOTIFY_TITLE" "$MAILCHUTE_NOTIFY_TOPICS" > got; cat >> got',
    ],
    on: ["failed", "drained"],
  });
  pool.drop("a", {
    exec: ["sh", "-c", "echo '$(touch owned) `touch owned`' >&2; exit 3"],
    max_attempts: 1,
  });
  await pool.run(["run", "--drain", "--no-live"]);
  const got = fs.readFileSync(join(pool.dir, "got"), "utf8");
  expect(got).toMatch(/^mailchute .*: 1 failed, all work is done\|failed,drained\|mailchute /);
  expect(got).toContain("failed: a: ");
  expect(got).toContain("no task waits or runs any more");
  expect(fs.existsSync(join(pool.dir, "owned"))).toBe(false);
});

it("the morning report comes once a day, when its time is over", async () => {
  const receiver = await newReceiver();
  const soon = { name: "phone", url: receiver.url, at: "00:00", on: ["morning"] };
  const pool = poolWith(soon);
  pool.drop("a", FAILS);
  await pool.run(["run", "--drain", "--no-live"]);
  // The target is new today, and its time was over.
  expect(receiver.received).toHaveLength(0);
  const path = join(pool.state, "notify", "state.json");
  const state = JSON.parse(fs.readFileSync(path, "utf8")) as {
    targets: { phone: { morning?: string } };
  };
  state.targets.phone.morning = "2026-01-01";
  fs.writeFileSync(path, JSON.stringify(state));
  await pool.start();
  await waitFor(() => receiver.received.length === 1, { what: "the report" });
  await pool.stop();
  expect(receiver.received).toHaveLength(1);
  expect(receiver.received[0]?.body).toMatch(/: report".*failed/s);
});

it("notify test says what a receiver answers, and sends to the one that is named", async () => {
  const receiver = await newReceiver();
  receiver.answers.push(403);
  const pool = poolWith(
    { name: "ops", url: receiver.url, token_env: "NOTIFY_TOKEN_OF_A_TEST" },
    { name: "desk", command: ["sh", "-c", "echo no display >&2; exit 4"] },
    { name: "open", url: receiver.url },
  );
  const all = await pool.run(["notify", "test"]);
  expect(all.code).toBe(1);
  expect(all.stdout).toContain("ops: not sent: the variable NOTIFY_TOKEN_OF_A_TEST is not set");
  expect(all.stdout).toContain("desk: not sent: sh ended with 4: no display");
  expect(all.stdout).toMatch(/open: not sent: 127\.0\.0\.1:\d+ answered 403 Forbidden/);
  const one = await pool.run(["notify", "test", "open"]);
  expect(one).toMatchObject({ code: 0, stdout: "open: sent\n" });
  expect((await pool.run(["notify", "test", "nobody"])).code).toBe(2);
});
