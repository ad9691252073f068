/** What runs of coding agents used, added up. */
import { describe, expect, it } from "vitest";
import { type CostRecord, readCostRecord } from "../../src/agents/cost-records.ts";
import { CostSums, usdText } from "../../src/agents/cost-sums.ts";

const record = (more: Partial<CostRecord>): CostRecord => ({
  at: 1_795_478_400,
  task_id: "a",
  run: "a@s.1.0",
  agent: "coder",
  kind: "claude",
  account: "default",
  model: "m",
  session_id: "s1",
  input_tokens: 1000,
  cached_input_tokens: 200,
  output_tokens: 100,
  cost_usd_micro: 3450,
  outcome: "completed",
  ...more,
});

describe("sums of costs", () => {
  it("shows no price of runs of which none has one, and the known part of others", () => {
    const unpriced = record({ run: "b@s.1.0", session_id: "s2", cost_usd_micro: null });
    const sums = new CostSums("agent", {});
    sums.add(unpriced);
    expect(usdText(sums.total)).toBe("-");
    sums.add(record({}));
    expect(usdText(sums.total)).toBe("0.0034");
    expect(usdText(new CostSums("agent", {}).total)).toBe("0.0000");
  });

  it("adds up by group, with those of no group together", () => {
    const sums = new CostSums("group", {});
    for (const [run, group] of [
      ["a", "gpu"],
      ["b", undefined],
      ["c", "gpu"],
    ] as const)
      sums.add(record({ run, ...(group && { group }) }));
    expect(sums.rows().map(({ key, runs }) => [key, runs])).toEqual([
      ["gpu", 2],
      ["none", 1],
    ]);
  });

  it("counts a run of a session once, however often its line is there", () => {
    const sums = new CostSums("agent", {});
    sums.add(record({}));
    sums.add(record({}));
    sums.add(record({ run: "a@s.2.0", outcome: "failed" }));
    expect(sums.total).toMatchObject({ runs: 2, runs_not_completed: 1, cost_usd_micro: 6900 });
  });

  it("counts a run whose checks failed after it was booked as not done, once, and adds nothing else", () => {
    const sums = new CostSums("agent", {});
    const failed = record({
      input_tokens: 0,
      output_tokens: 0,
      cost_usd_micro: 0,
      outcome: "failed",
    });
    for (const one of [record({}), failed, failed, record({})]) sums.add(one);
    const once = { runs: 1, runs_not_completed: 1, input_tokens: 1000, cost_usd_micro: 3450 };
    expect(sums.total).toMatchObject({ ...once, runs_without_usage: 0 });
    expect(sums.rows()).toMatchObject([once]);
  });

  it("counts a run without usage by itself, and not as one without a price", () => {
    const sums = new CostSums("agent", {});
    const none = {
      input_tokens: 0,
      cached_input_tokens: 0,
      output_tokens: 0,
      cost_usd_micro: null,
    };
    sums.add(record(none));
    expect(sums.total).toMatchObject({ runs: 1, runs_without_usage: 1, runs_without_price: 0 });
  });

  it("counts a second session of one run by itself", () => {
    const sums = new CostSums("task", {});
    sums.add(record({ outcome: "lost_session" }));
    sums.add(record({ session_id: "s2" }));
    expect(sums.rows()).toMatchObject([{ key: "a", runs: 2, input_tokens: 2000 }]);
  });

  it("takes the settings' price where the program gives none, with cached input at its own", () => {
    const prices = { m: { input_usd: 2, cached_input_usd: 0.5, output_usd: 10 } };
    const sums = new CostSums("model", prices);
    sums.add(record({ cost_usd_micro: null }));
    expect(sums.total.cost_usd_micro).toBe(800 * 2 + 200 * 0.5 + 100 * 10);
    sums.add(record({ run: "b", model: "other", cost_usd_micro: null }));
    expect(sums.total).toMatchObject({ runs: 2, runs_without_price: 1 });
  });

  it("lists days in order, and others by what they cost", () => {
    const late = record({
      run: "b",
      at: 1_795_478_400 + 86_400,
      agent: "cheap",
      cost_usd_micro: 1,
    });
    const days = new CostSums("day", {});
    const agents = new CostSums("agent", {});
    for (const one of [late, record({})]) {
      days.add(one);
      agents.add(one);
    }
    expect(days.rows().map((row) => row.key)).toEqual(["2026-11-24", "2026-11-25"]);
    expect(agents.rows().map((row) => row.key)).toEqual(["coder", "cheap"]);
  });

  it.each([
    ["a foreign line", { event: "started" }],
    ["a cost that is text", { ...record({}), input_tokens: "12" }],
    ["a time that is no number", { ...record({}), at: null }],
  ])("reads no record from %s", (_, line) => {
    expect(readCostRecord(line)).toBeUndefined();
  });
});
