/** What the events of a period add up to. */
import { describe, expect, it } from "vitest";
import { percentileOf } from "../../../src/core/percentiles.ts";
import { Period } from "../../../src/parts/report/period.ts";

type Line = Record<string, unknown>;

const FROM = 1000;
const TO = 9000;

function periodOf(lines: readonly Line[], landingIds: readonly string[] = []): Period {
  const period = new Period(FROM, TO, new Set(landingIds));
  for (const line of lines) period.add(line);
  return period;
}

const selected = (id: string, t: number): Line => ({
  event: "selected",
  task_id: id,
  t,
  attempt: 1,
});
const completed = (id: string, t: number, more: Line = {}): Line => ({
  event: "completed",
  task_id: id,
  agent_id: "exec",
  t,
  attempt: 1,
  status: "completed",
  duration_ms: 10,
  ...more,
});
const failed = (id: string, t: number, error = "exit code 1", kind = "exit"): Line[] => [
  { event: kind === "cancelled" ? "cancelled" : "failed", task_id: id, t, error, kind },
  completed(id, t, { status: "failed" }),
];

describe("a period", () => {
  it("counts only what is in it: the start belongs to it, the end does not", () => {
    const { counts } = periodOf([
      completed("before", FROM - 1),
      completed("first", FROM),
      completed("last", TO - 1),
      completed("after", TO),
    ]);
    expect(counts.completed).toBe(2);
  });

  it("names failed tasks with their reason, and not those that completed later or were put back", () => {
    const period = periodOf([
      ...failed("bad", 2000),
      ...failed("mended", 2000),
      ...failed("again", 2000),
      selected("mended", 3000),
      completed("mended", 4000),
      selected("again", 5000),
    ]);
    expect([...period.failures.values()]).toEqual([
      { id: "bad", kind: "exit", error: "exit code 1", atMs: 2000, lease: "" },
    ]);
    expect([period.counts.completed, period.counts.mended]).toEqual([1, 1]);
  });

  it("lists what the last run of a task was denied, whether it completed or failed", () => {
    const denied = ["Bash", "Edit"];
    const period = periodOf([
      completed("went-on", 2000, { denied }),
      completed("stopped", 2000, { status: "failed", denied: ["Write"] }),
      completed("allowed-since", 2000, { status: "failed", denied }),
      completed("allowed-since", 3000),
      completed("odd", 3000, { denied: "Bash" }),
      completed("before", FROM - 1, { denied }),
    ]);
    expect([...period.denials]).toEqual([
      ["went-on", denied],
      ["stopped", ["Write"]],
    ]);
  });

  it("counts a cancelled task as cancelled, and one that only went back into the inbox as nothing", () => {
    const period = periodOf([
      ...failed("gone", 2000, "cancelled", "cancelled"),
      { event: "cancelled", task_id: "back", t: 2000, error: "it waits in the inbox again" },
      completed("back", 3000),
    ]);
    expect([period.counts.cancelled, period.failures.size, period.counts.completed]).toEqual([
      1, 0, 1,
    ]);
  });

  it("counts a node that asks a question as asked and not as completed", () => {
    const period = periodOf([
      completed("asks", 2000),
      { event: "blocked", task_id: "asks", t: 2001, reason: "needs_human" },
    ]);
    expect([period.counts.completed, period.completed]).toEqual([0, []]);
  });

  it("keeps landings apart from tasks", () => {
    const period = periodOf(
      [completed("a", 2000), completed("a.land", 3000), ...failed("b.land", 4000)],
      ["a.land", "b.land"],
    );
    expect(period.failures.size).toBe(0);
    expect([period.counts.completed, period.landed.map(({ id }) => id)]).toEqual([1, ["a.land"]]);
  });

  it("adds up waits at a gate, also of tasks that wait still", () => {
    const held = (id: string, t: number): Line => ({
      event: "held",
      task_id: id,
      t,
      gate: "quota-ada",
      error: "account ada: no run before 06:00",
    });
    const [wait] = periodOf([
      held("a", 2000),
      held("b", 2500),
      { event: "assigned", task_id: "a", t: 5000 },
    ]).gateWaits();
    expect(wait).toEqual({
      gate: "quota-ada",
      why: "account ada: no run before 06:00",
      waits: 2,
      from_ms: 2000,
      to_ms: null,
      total_ms: 3000 + TO - 2500,
    });
  });

  it("sees that a supervisor died, also one that had started before the period", () => {
    const started = (t: number): Line => ({ event: "supervisor_started", t });
    const stopped = (t: number): Line => ({ event: "supervisor_stopped", t });
    expect(periodOf([started(10), started(2000), stopped(3000), started(4000)]).crashes()).toEqual([
      { what: "the supervisor had died, and a new one went on", at_ms: 2000 },
    ]);
  });

  it("finds the slowest runs, and keeps the latest of very many tasks by name", () => {
    const lines = Array.from({ length: 1000 }, (_, n) =>
      completed(`t${n}`, 2000 + n, { duration_ms: (n * 7919) % 1000 }),
    );
    const { slowest, completed: kept, counts } = periodOf(lines);
    expect(slowest.map(({ durationMs }) => durationMs)).toEqual([999, 998, 997, 996, 995]);
    expect(counts.completed).toBe(1000);
    expect(kept.at(-1)?.id).toBe("t999");
    expect(kept.length).toBeLessThanOrEqual(400);
  });

  it("counts how long tasks were in the inbox, and how long they ran", () => {
    const lines = [10, 20, 30].flatMap((ms, n) => [
      { ...selected(`t${n}`, 2000), queue_ms: ms },
      completed(`t${n}`, 3000, { duration_ms: 10 * ms }),
    ]);
    const { waited, ran } = periodOf(lines);
    expect(percentileOf(waited.bins, 0.5)).toBeCloseTo(20, 0);
    expect(Math.abs((percentileOf(ran.bins, 0.5) ?? 0) - 200)).toBeLessThan(4);
  });

  it("passes over lines with fields of the wrong kind", () => {
    const odd: Line[] = [
      {},
      { t: "x", event: "completed" },
      { t: 2000 },
      { t: 2000, event: 7, task_id: {} },
      { t: 2000, event: "held", gate: 3 },
      { t: Number.NaN, event: "completed", status: "completed" },
      { t: 2000, event: "completed", task_id: null, status: [], duration_ms: "9" },
    ];
    expect(() => periodOf(odd).gateWaits()).not.toThrow();
  });
});
