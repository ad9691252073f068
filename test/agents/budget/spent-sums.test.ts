/** What was spent, by the files of each day: right after any crash, also when a process reads only the last of them. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Assignment } from "../../../src/agents/agent.ts";
import { NOTHING_SPENT } from "../../../src/agents/budget/limits.ts";
import { RunBudget } from "../../../src/agents/budget/run-budget.ts";
import { RunningCosts } from "../../../src/agents/budget/running-costs.ts";
import { SpentSums } from "../../../src/agents/budget/spent-sums.ts";
import type { CostRecord } from "../../../src/agents/cost-records.ts";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { costsOf } from "../../../src/core/state-tree.ts";
import type { Task } from "../../../src/core/task.ts";
import { ownerSequence, thisProcess } from "../../../src/host/identity.ts";
import { fileOfDay } from "../../../src/journal/daily.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { tempDir } from "../../support/temp-dir.ts";

const DAY_S = 86_400;
const SEED = Number(process.env["MAILCHUTE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
/** Noon of the day so many days ago. */
const daysAgo = (days: number): number =>
  (Math.floor(Date.now() / 1000 / DAY_S) - days) * DAY_S + DAY_S / 2;
const TASK = "task.a.s";

function newTree(): string {
  const state = tempDir();
  fs.mkdirSync(join(state, "analytics"));
  return state;
}

let runs = 0;
const record = (at: number, more: Partial<CostRecord> = {}): CostRecord => ({
  at,
  task_id: "a",
  run: "a@s.1.0",
  lease: `s.1.x-${runs++}`,
  agent: "coder",
  kind: "claude",
  account: "default",
  model: "m",
  session_id: "one",
  input_tokens: 10,
  cached_input_tokens: 0,
  output_tokens: 1,
  cost_usd_micro: 100,
  outcome: "completed",
  ...more,
});

const book = (
  state: string,
  one: CostRecord,
  file = fileOfDay(costsOf({ dir: state }), one.at * 1000),
): void => fs.appendFileSync(file, `${JSON.stringify(one)}\n`);

/** As a process sees it that has just started. */
function sumOf(state: string, key = TASK): number {
  const sums = new SpentSums(state);
  sums.refresh(DEFAULT_SETTINGS);
  return sums.of(key).usd;
}

it("are read from the last day only, once the days before are summed", () => {
  const state = newTree();
  for (const days of [3, 2, 1, 0]) book(state, record(daysAgo(days)));
  expect(sumOf(state)).toBe(400);
  // Who read it again would miss it.
  const old = fileOfDay(costsOf({ dir: state }), daysAgo(2) * 1000);
  fs.writeFileSync(old, "x".repeat(fs.statSync(old).size));
  book(state, record(daysAgo(0)));
  expect(sumOf(state)).toBe(500);
  // What comes late for an earlier day counts, too.
  fs.appendFileSync(old, "\n");
  book(state, record(daysAgo(2)));
  expect(sumOf(state)).toBe(600);
});

it("keep the days whose files were removed, and forget tasks that had no run since", () => {
  const state = newTree();
  book(state, record(daysAgo(40)));
  book(state, record(daysAgo(40), { task_id: "old", run: "old@s.1.0" }));
  book(state, record(daysAgo(20)));
  book(state, record(daysAgo(0)));
  expect(sumOf(state)).toBe(300);
  fs.rmSync(fileOfDay(costsOf({ dir: state }), daysAgo(40) * 1000));
  expect(sumOf(state)).toBe(300);
  expect(sumOf(state, "task.old.s")).toBe(0);
});

it("have the single file of earlier versions in them, once", () => {
  const state = newTree();
  const single = costsOf({ dir: state });
  book(state, record(daysAgo(1)), single);
  book(state, record(daysAgo(0)), single);
  expect(sumOf(state)).toBe(200);
  book(state, record(daysAgo(0)));
  expect(sumOf(state)).toBe(300);
  expect(sumOf(state)).toBe(300);
  expect(
    JSON.parse(fs.readFileSync(join(state, "analytics", "costs-sums.json"), "utf8")),
  ).toMatchObject({
    files: { "costs.jsonl": fs.statSync(single).size },
  });
});

it.each(["{", '{"v": 2}', '{"v": 1, "files": {"costs.jsonl": 1000000}, "sums": {}}'])(
  "are summed anew when their document is %s",
  (text) => {
    const state = newTree();
    book(state, record(daysAgo(1)), costsOf({ dir: state }));
    fs.writeFileSync(join(state, "analytics", "costs-sums.json"), text);
    expect(sumOf(state)).toBe(100);
  },
);

it("are what was booked, in any order of bookings, starts, repeats and lost documents", () => {
  const random = seededRandom(SEED);
  console.log(`seed ${SEED}`);
  for (let round = 0; round < 100; round++) {
    const state = newTree();
    let follower = new SpentSums(state);
    let expected = 0;
    for (let step = 0; step < 30; step++) {
      const what = random.below(5);
      if (what <= 1) {
        const one = record(daysAgo(random.below(4)));
        book(state, one);
        // Two processes may book what a killed one had used.
        if (what === 1) book(state, one);
        expected += 100;
      } else if (what === 2)
        fs.rmSync(join(state, "analytics", "costs-sums.json"), { force: true });
      else if (what === 3) follower = new SpentSums(state);
      else {
        follower.refresh(DEFAULT_SETTINGS);
        expect(follower.of(TASK).usd, `round ${round}, step ${step}`).toBe(expected);
      }
    }
    expect(sumOf(state), `round ${round}`).toBe(expected);
  }
});

it("have a run once that was booked and whose process was killed before it could say so", async () => {
  const state = newTree();
  const one = record(daysAgo(3), { input_tokens: 700, cost_usd_micro: 7000 });
  book(state, one);
  for (const days of [2, 1, 0])
    book(state, record(daysAgo(days), { task_id: "b", run: "b@s.1.0" }));
  const running = new RunningCosts(state);
  const booked = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, costUsdMicro: 0 };
  const owner = ownerSequence({ ...thisProcess(), startTicks: 1 })();
  const left = { v: 1, owner, session_key: "a@s", booked } as const;
  running.write(one.lease ?? "", { ...left, record: { ...one, at: daysAgo(4) } });
  const lost = record(daysAgo(1));
  running.write(lost.lease ?? "", { ...left, record: lost });
  const assignment = {
    stateDir: state,
    lease: "s.2.me",
    task: { id: "a" } as Task,
    settings: DEFAULT_SETTINGS,
  } as Assignment;
  const budget = new RunBudget(assignment, { name: "coder", kind: "claude", capabilities: [] });
  await budget.bookLeft();
  expect(running.all()).toEqual([]);
  expect(sumOf(state)).toBe(7100);
  expect(new SpentSums(state).of(TASK)).toBe(NOTHING_SPENT);
});

it("do not hold others back for a run that has ended and could not be booked", async () => {
  const state = newTree();
  book(state, record(daysAgo(0), { task_id: "c", run: "c@s.1.0" }));
  const one = record(daysAgo(0), { cost_usd_micro: 50 });
  const running = new RunningCosts(state);
  const booked = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, costUsdMicro: 0 };
  const owner = ownerSequence()();
  const lease = one.lease ?? "";
  running.write(lease, { v: 1, owner, session_key: "a@s", booked, record: one });
  const assignment = {
    stateDir: state,
    lease: "s.2.me",
    task: { id: "b" } as Task,
    settings: DEFAULT_SETTINGS,
  } as Assignment;
  const budget = { day_usd: 0.000_18 };
  const next = new RunBudget(assignment, { name: one.agent, kind: "claude", budget });
  await next.bookLeft();
  expect(next.enter()).toMatchObject({ message: expect.stringContaining("runs in progress") });
  running.noteUnbooked(lease);
  await next.bookLeft();
  expect(next.enter()).toBeUndefined();
  expect(running.all()).toEqual([]);
  expect(sumOf(state)).toBe(50);
});
