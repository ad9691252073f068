/** What limits a run, and what an answer changes about it. */
import { describe, expect, it } from "vitest";
import {
  keysOf,
  limitNow,
  NOTHING_SPENT,
  questionId,
  questionText,
  reserveFor,
  type Spent,
  scopesOf,
} from "../../../src/agents/budget/limits.ts";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";

const NOW = Date.UTC(2026, 10, 24, 23, 0);
const OWNER = { taskId: "a", submission: "abcdefgh261124", agent: "coder" };
const NO_DAY = DEFAULT_SETTINGS.budgets;
const spent = (more: Partial<Spent>): Spent => ({ ...NOTHING_SPENT, runs: 1, ...more });

describe("scopes", () => {
  it("are none without a budget", () => {
    expect(scopesOf(OWNER, { task: undefined, agent: undefined, day: NO_DAY }, NOW)).toEqual([]);
  });

  it("take each field of a task's budget over that of its agent, and 0 as no limit", () => {
    const agent = { soft_usd: 1, hard_usd: 2, tokens: 1000 };
    const [task] = scopesOf(OWNER, { task: { soft_usd: 0.5, tokens: 0 }, agent, day: NO_DAY }, NOW);
    expect(task?.limits).toEqual([{ measure: "usd", soft: 500_000, hard: 2_000_000 }]);
  });

  it("are the task, the agent's day and the day, with the sums that a run counts for", () => {
    const agent = { soft_usd: 1, day_tokens: 5 };
    const scopes = scopesOf(
      OWNER,
      { task: undefined, agent, day: { ...NO_DAY, day_hard_usd: 3 } },
      NOW,
    );
    expect(scopes.map(({ key }) => key)).toEqual(keysOf(OWNER, NOW));
    expect(scopes.map(({ endsAtMs }) => endsAtMs)).toEqual([
      null,
      NOW + 3_600_000,
      NOW + 3_600_000,
    ]);
    // A hard limit alone asks when it is reached.
    expect(scopes[2]?.limits).toEqual([{ measure: "usd", soft: 3_000_000, hard: 3_000_000 }]);
  });
});

it("of each measure have a soft limit and a hard one, and a hard one alone asks when it is reached", () => {
  const task = { tokens: 100, hard_tokens: 200, turns: 3, hard_turns: 0, hard_time_ms: 60_000 };
  const day = { ...NO_DAY, day_hard_tokens: 5, day_turns: 6, day_hard_turns: 7, day_time_ms: 8 };
  const scopes = scopesOf(OWNER, { task, agent: undefined, day }, NOW);
  expect(scopes.map(({ limits }) => limits)).toEqual([
    [
      { measure: "tokens", soft: 100, hard: 200 },
      { measure: "turns", soft: 3, hard: undefined },
      { measure: "time", soft: 60_000, hard: 60_000 },
    ],
    [
      { measure: "tokens", soft: 5, hard: 5 },
      { measure: "turns", soft: 6, hard: 7 },
      { measure: "time", soft: 8, hard: undefined },
    ],
  ]);
});

it("of a node have its plan after the node, with a sum for the name of the plan", () => {
  const owner = { ...OWNER, plan: "release" };
  const scopes = scopesOf(
    owner,
    { task: { turns: 5 }, plan: { hard_usd: 2, time_ms: 60_000 }, agent: undefined, day: NO_DAY },
    NOW,
  );
  expect(scopes.map(({ key, agents }) => [key, agents])).toEqual([
    ["task.a.abcdefgh261124", []],
    ["plan.release", []],
  ]);
  expect(keysOf(owner, NOW)).toContain("plan.release");
  expect(scopes[1]?.limits).toEqual([
    { measure: "usd", soft: 2_000_000, hard: 2_000_000 },
    { measure: "time", soft: 60_000, hard: undefined },
  ]);
});

describe("answers", () => {
  const limit = { measure: "usd" as const, soft: 500_000, hard: 800_000 };

  it.each([
    [[], { soft: 500_000, hard: 800_000, isRefused: false }],
    [["yes"], { soft: 1_000_000, hard: 1_300_000, isRefused: false }],
    [["yes", "yes"], { soft: 1_500_000, hard: 1_800_000, isRefused: false }],
    [["0.8"], { soft: 800_000, hard: 1_100_000, isRefused: false }],
    [["0.8", "no"], { soft: 800_000, hard: 1_100_000, isRefused: true }],
    [["no", "yes"], { soft: 1_000_000, hard: 1_300_000, isRefused: false }],
    [["0.1"], { soft: 500_000, hard: 800_000, isRefused: false }],
    [["rubbish"], { soft: 500_000, hard: 800_000, isRefused: false }],
  ])("%j make it %j", (answers, now) => {
    expect(limitNow(limit, answers)).toEqual(now);
  });

  it("are asked for in the unit of the limit", () => {
    const [scope] = scopesOf(
      OWNER,
      { task: { soft_usd: 0.5 }, agent: undefined, day: NO_DAY },
      NOW,
    );
    if (scope === undefined) throw new Error("no scope");
    expect(questionText(scope, limit, limitNow(limit, []), 520_000)).toBe(
      "Task a: spent 0.52 of 0.50 USD. Go on to 1.00 USD?",
    );
    const minutes = { measure: "time" as const, soft: 90_000, hard: undefined };
    expect(questionText(scope, minutes, limitNow(minutes, []), 120_000)).toBe(
      "Task a: spent 2.0 of 1.5 minutes. Go on to 3.0 minutes?",
    );
  });
});

describe("the id of a question", () => {
  const hash = (): string => "0123456789abcdef";
  const scope = (key: string) => ({
    key,
    what: "",
    who: "",
    agents: [],
    limits: [],
    endsAtMs: null,
  });

  it("says what it is about", () => {
    expect(questionId(scope("day.2026-11-24"), "usd", 2, hash)).toBe("budget.day.2026-11-24.usd.2");
  });

  it.each([`task.${"x".repeat(96)}.s`, "agent.a b.2026-11-24", "agent.../x.2026-11-24"])(
    "is short and safe for %s",
    (key) => {
      expect(questionId(scope(key), "usd", 1, hash)).toBe("budget.0123456789abcdef.usd.1");
    },
  );
});

describe("the reserve for runs beside", () => {
  it("is what runs cost so far on average, or what these have used when that is more", () => {
    const before = spent({ usd: 300, runs: 3 });
    expect(reserveFor("usd", before, [])).toBe(0);
    expect(reserveFor("usd", before, [spent({ usd: 10 }), spent({ usd: 250 })])).toBe(350);
    expect(reserveFor("usd", NOTHING_SPENT, [spent({ usd: 10 })])).toBe(10);
  });
});
