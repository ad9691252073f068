/**
 * Five groups, limits that they share, rates and weights, with kills of workers and supervisors: a reader that knows nothing of
 * mailchute finds in the journal that no limit was passed. `MAILCHUTE_LIMITS_TASKS=10000` for the long form.
 */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { waitFor } from "../support/wait-for.ts";
import { findPassed, mostTaken, type Rules, startsOf } from "./limits-reader.ts";

const TASKS = Number(process.env["MAILCHUTE_LIMITS_TASKS"] ?? 300);
const KILL_EVERY = Math.max(40, Math.floor(TASKS / 60));
const PER_S = Math.max(50, Math.floor(TASKS / 100));

const GROUPS = {
  two: { slots: 2 },
  heavy: { slots: 4 },
  shared: { slots: 3, limits: ["both"] },
  rated: { limits: ["rate"] },
  shut: { slots: 0 },
};
const LIMITS = { both: 2, rate: { rate: `${PER_S}/s`, burst: 4 } };

interface Kind {
  group?: string;
  weight?: number;
  limits?: string[];
}

const KINDS: readonly Kind[] = [
  { group: "two" },
  { group: "heavy" },
  { group: "heavy", weight: 2 },
  { group: "heavy", weight: 3 },
  { group: "shared" },
  { limits: ["both"] },
  { group: "rated" },
  { group: "two", limits: ["rate"] },
  {},
];

function takesOf({ group, weight = 1, limits = [] }: Kind): Record<string, number> {
  const own: Record<string, number> = group === undefined ? {} : { [group]: weight };
  if (group === "shared" || limits.includes("both")) own["both"] = 1;
  return own;
}

test("no limit is passed at any instant, whatever dies, and no group holds up another", {
  timeout: 1_200_000,
}, async () => {
  const seed = Number(process.env["MAILCHUTE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  const config = `${QUICK_CONFIG.replace("workers: 4", "workers: 12\nprocesses: 3").replace("max_attempts: 3", "max_attempts: 40")}
groups: ${JSON.stringify(GROUPS)}
limits: ${JSON.stringify(LIMITS)}
`;
  const pool = newPool({ config });
  const kinds = new Map<string, Kind>();
  const exec = ["sh", "-c", "sleep 0.0$1", "sh"];
  for (let n = 0; n < TASKS; n++) {
    const kind = KINDS[n % KINDS.length] as Kind;
    kinds.set(`t${n}`, kind);
    // Some fail at first, so that retries are among them.
    const argv =
      n % 10 === 3
        ? ["sh", "-c", "test $MAILCHUTE_ATTEMPT -gt 1"]
        : [...exec, String(random.below(4))];
    pool.drop(`t${n}`, { exec: argv, priority: random.below(3), ...kind });
  }
  // First in the queue, and never to start.
  for (let n = 0; n < 5; n++)
    pool.drop(`shut${n}`, {
      exec: ["true"],
      group: "shut",
      limits: ["both", "rate"],
      priority: 99,
    });
  await pool.start();
  let kills = 0;
  while (pool.settledCount() < TASKS) {
    const goal = Math.min(TASKS, pool.settledCount() + KILL_EVERY / 2 + random.below(KILL_EVERY));
    await waitFor(() => pool.settledCount() >= goal, { timeoutMs: 120_000, what: `${goal} tasks` });
    if (goal === TASKS) break;
    kills++;
    const workers = pool.workers();
    if (random() < 0.6 && workers.length > 0) tryKill(random.pick(workers).pid);
    else {
      if (random() < 0.4) await pool.killAll();
      else tryKill(pool.supervisor()?.pid);
      await pool.start();
    }
  }
  await pool.stop();
  const told = `seed ${seed}, ${kills} kills`;
  expect(pool.errors(), told).toEqual([]);
  expect(fs.readdirSync(pool.inbox).sort(), told).toEqual(
    [0, 1, 2, 3, 4].map((n) => `shut${n}.json`),
  );
  const rules: Rules = {
    takes: (id) => takesOf(kinds.get(id) ?? {}),
    slots: { two: 2, heavy: 4, shared: 3, both: 2, shut: 0 },
    rates: { rate: { perS: PER_S, burst: 4 } },
  };
  const lines = pool.events();
  expect(findPassed(lines, rules), told).toEqual([]);
  // The limits were reached, so something held them.
  expect(mostTaken(lines, rules), told).toMatchObject({ two: 2, heavy: 4, both: 2 });
  const rated = [...kinds.values()].filter(
    ({ group, limits }) => group === "rated" || limits?.includes("rate") === true,
  ).length;
  expect(startsOf(lines, "rate").length, told).toBeGreaterThanOrEqual(rated);
  expect(fs.readdirSync(join(pool.state, "limits", "rate"))).toHaveLength(1);
  // A reader that sees a fault is needed, too: with one slot less there would be many.
  expect(findPassed(lines, { ...rules, slots: { ...rules.slots, two: 1 } })).not.toEqual([]);
  expect(
    findPassed(lines, { ...rules, rates: { rate: { perS: PER_S / 2, burst: 2 } } }),
  ).not.toEqual([]);
});

function tryKill(pid: number | undefined): void {
  try {
    if (pid !== undefined && pid > 0) process.kill(pid, "SIGKILL");
  } catch {
    // It has just ended by itself.
  }
}

test("groups and limits are changed while the pool runs, and the changes hold over a restart", async () => {
  const settings = "groups: {x: {slots: 2}, y: {}}\nlimits: {api: {rate: 1/d}, one: 1}\n";
  const pool = newPool({ config: `${QUICK_CONFIG}${settings}` });
  await pool.start();
  const say = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await pool.run(args);
    expect(code, stderr).toBe(0);
    return stdout;
  };
  expect(await say("group", "pause", "x", "--wait")).toContain("paused: true");
  pool.drop("held", { exec: ["true"], group: "x" });
  for (const id of ["api-1", "api-2"]) pool.drop(id, { exec: ["true"], limits: ["api"] });
  pool.drop("free", { exec: ["true"], group: "y" });
  await pool.result("free");
  await waitFor(() => pool.settledCount() === 2, { what: "the start of the day" });
  expect(fs.readdirSync(pool.inbox)).toHaveLength(2);
  const why = async (id: string): Promise<string> => await say("why", id);
  expect(await why("held")).toContain("group x is paused");
  const second =
    fs
      .readdirSync(pool.inbox)
      .find((file) => file.startsWith("api"))
      ?.slice(0, 5) ?? "";
  await waitFor(async () => (await why(second)).includes("its rate of 1/d is used up"), {
    what: "why to say it",
  });
  process.kill(pool.supervisor()?.pid ?? 0, "SIGKILL");
  await pool.start();
  expect(await say("group", "ls")).toMatch(/x +0 +2 +- +paused, changed by a command/);
  await say("group", "resume", "x", "--wait");
  await pool.result("held");
  expect(fs.existsSync(join(pool.inbox, `${second}.json`))).toBe(true);
  await say("limit", "set", "api", "--rate", "1000/s", "--wait");
  await pool.result(second);
  await say("limit", "reset", "api", "--wait");
  const { limits } = JSON.parse(await say("limit", "ls", "--json")) as { limits: object[] };
  expect(limits).toMatchObject([
    { name: "api", rate: "1/d", changed: false, in_work: 0 },
    { name: "one", slots: 1, next_ms: null },
  ]);
  const changes = pool.events().filter(({ event }) => event === "limits_changed");
  expect(changes).toMatchObject([
    { kind: "group", name: "x", slots: 2, paused: true },
    { name: "x", slots: 2 },
    { kind: "limit", name: "api", rate: "1000/s" },
    { name: "api", rate: "1/d" },
  ]);
  for (const bad of [
    ["group", "set", "nope", "--slots", "1"],
    ["group", "set", "x"],
    ["limit", "set", "api", "--rate", "fast"],
    ["limit", "ls", "api"],
  ])
    expect((await pool.run(bad)).code, bad.join(" ")).toBe(2);
});
