/** `wait`: it says what does not start, and what is open when the time is over; and it knows the nodes of the plan. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool } from "../support/pool.ts";
import { readPlan } from "../support/read-plan.ts";
import { timeLimitMs } from "../support/time-limit.ts";
import { waitFor } from "../support/wait-for.ts";
import { newCli, put } from "./run-cli.ts";

const TRUE = { exec: ["true"] };
const after = (...dependencies: string[]): object => ({ ...TRUE, metadata: { dependencies } });

it("without ids it says at the end of its time what is open, and why", async () => {
  const pool = newPool();
  pool.drop("build", { exec: ["false"], max_attempts: 1 });
  pool.drop("test", after("agent"));
  pool.drop("typo", after("biuld"));
  pool.drop("chain", after("test"));
  pool.drop("agent", { prompt: "x", agent: "nosuch" });
  pool.drop("later", { ...TRUE, not_before: 4_000_000_000 });
  pool.drop("long", { exec: ["sleep", "60"] });
  await pool.start();
  await pool.error("build");
  await waitFor(() => fs.readdirSync(pool.processing).some((name) => name.includes("~w-")), {
    what: "the long task to run",
  });
  const { code, stdout, stderr } = await pool.run([
    "wait",
    "--timeout",
    `${Math.round(timeLimitMs(3000))}ms`,
  ]);
  expect(code).toBe(124);
  expect(stdout).toBe("");
  const reasons = {
    test: 'waits for agent, which cannot run: no agent "nosuch" is configured',
    typo: "waits for biuld, which is not here (did you mean build?)",
    chain:
      'waits for test, which waits for agent, which cannot run: no agent "nosuch" is configured',
    agent: 'cannot run: no agent "nosuch" is configured',
    later: "waits for its time, 2096-10-02T07:06:40.000Z",
  };
  const ended = [...Object.entries(reasons), ["long", "runs"]].map(
    ([id, why]) => `mailchute: ${id} has not settled in time: it ${why}`,
  );
  const lines = stderr.trim().split("\n");
  expect(new Set(lines.slice(-6))).toEqual(new Set(ended));
  // What does not start is told as soon as that is sure.
  const early = Object.entries(reasons).map(
    ([id, why]) => `mailchute: ${id} does not start: it ${why}`,
  );
  expect(new Set(lines.slice(0, -6))).toEqual(new Set(early));
  const json = JSON.parse((await pool.run(["wait", "test", "--timeout", "0", "--json"])).stdout);
  expect(json).toEqual({
    settled: [],
    pending: ["test"],
    open: [{ id: "test", why: reasons.test }],
    unknown: [],
  });
});

it("what holds back everything is told, too: no supervisor, a pause, no slots", async () => {
  const pool = newPool();
  pool.drop("a", TRUE);
  const why = async (): Promise<string> =>
    JSON.parse((await pool.run(["wait", "a", "--timeout", "0", "--json"])).stdout).open[0].why;
  expect(await why()).toBe("waits: no supervisor runs on this state tree (mailchute run)");
  await pool.start(["--paused"]);
  // Until the inbox was read, that is the reason.
  await waitFor(async () => !(await why()).includes("is being read"), { what: "the first look" });
  expect(await why()).toMatch(
    /^waits: claiming is paused since \S+ by command run --paused \(mailchute resume\)$/,
  );
  await pool.run(["set-workers", "0", "--wait"]);
  await pool.run(["resume", "--wait"]);
  expect(await why()).toBe("waits: the number of slots is set to 0 (mailchute set-workers N)");
  await pool.run(["set-workers", "1", "--wait"]);
  expect((await pool.run(["wait", "a"])).stdout).toBe("a  completed\n");
});

it("knows the nodes of a plan that is being replaced when it looks", async () => {
  const pool = newPool();
  const plan = join(pool.state, "roadmap.yaml");
  fs.writeFileSync(plan, "nodes: [{ id: a, exec: ['true'] }]\n");
  let isThere = true;
  let changedMs = performance.now();
  let longestMs = 0;
  const replacing = setInterval(() => {
    if (!isThere) longestMs = Math.max(longestMs, performance.now() - changedMs);
    fs.renameSync(isThere ? plan : `${plan}.aside`, isThere ? `${plan}.aside` : plan);
    isThere = !isThere;
    changedMs = performance.now();
  }, 15);
  try {
    for (let n = 0; n < 8; ) {
      longestMs = 0;
      const { code, stderr } = await pool.run(["wait", "a", "--timeout", "0"]);
      if (!isThere) longestMs = Math.max(longestMs, performance.now() - changedMs);
      // A plan that was away for 50 ms, because our timer was late, is gone.
      if (longestMs >= 50) continue;
      expect({ code, stderr }).toMatchObject({ code: 124 });
      n++;
    }
  } finally {
    clearInterval(replacing);
  }
});

it("waits for nodes of the plan that are not launched yet, by whatever they end", async () => {
  const pool = newPool();
  const gate = join(pool.dir, "gate");
  const open = `until [ -e ${gate} ]; do sleep 0.1; done`;
  fs.writeFileSync(
    join(pool.state, "roadmap.yaml"),
    `nodes:
  - { id: E, type: epic }
  - { id: first, parent: E, exec: [sh, -c, '${open}'] }
  - { id: second, parent: E, dependencies: [first], exec: ['true'] }
  - { id: bad, dependencies: [second], exec: ['false'], retry_policy: { max_attempts: 1 } }
  - { id: never, dependencies: [bad], exec: ['true'] }
  - { id: old, status: done }
`,
  );
  await pool.start();
  const waiting = pool.spawn(["wait", "second", "E", "bad", "old", "--json"]);
  const quiet = pool.spawn(["wait"]);
  const look = await pool.run(["wait", "second", "secnod", "--timeout", "0"]);
  expect(look.stderr).toContain('no plan has "secnod" (did you mean second?)');
  expect(look.stderr).toMatch(
    /second has not settled in time: it waits for first, which (runs|waits its turn)/,
  );
  expect(look.code).toBe(3);
  fs.writeFileSync(gate, "");
  await waiting.ended;
  const { settled, pending, unknown } = JSON.parse(waiting.stdout());
  expect({ pending, unknown }).toEqual({ pending: [], unknown: [] });
  const ends = settled.map(({ id, status }: { id: string; status: string }) => `${id} ${status}`);
  expect(new Set(ends)).toEqual(
    new Set(["second completed", "E completed", "bad failed", "old completed"]),
  );
  // Nothing was in the mailbox between two nodes; and what can never run is not waited for.
  expect((await quiet.ended).exitCode).toBe(1);
  expect(quiet.stdout()).toBe("bad  failed\n");
  const never = await pool.run(["wait", "never", "--timeout", "0"]);
  expect(never.stderr).toBe(
    "mailchute: never has not settled in time: it waits for bad, which failed\n",
  );
  expect(never.code).toBe(124);
});

it("without ids waits for a plan that a supervisor which has just started has not read yet", async () => {
  const pool = newPool();
  const done = Array.from({ length: 20_000 }, (_, n) => `  - { id: n${n}, status: done }\n`);
  const open = "  - { id: last, exec: ['true'] }\n";
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), `nodes:\n${done.join("")}${open}`);
  await pool.start();
  expect((await pool.run(["wait"])).code).toBe(0);
  expect(await pool.result("last")).toMatchObject({ status: "completed" });
  expect(readPlan(join(pool.state, "roadmap.yaml"))).not.toContain(open);
});

it("without a supervisor a node is known as well", async () => {
  const cli = newCli();
  put(cli, "roadmap.yaml", "nodes:\n  - { id: a, exec: ['true'] }\n");
  const { code, stderr } = await cli(["wait", "a", "--timeout", "0"]);
  expect(code).toBe(124);
  expect(stderr).toContain("a has not settled in time: it waits: no supervisor runs");
});
