/** The timeline: which runs and waits it makes of the lines of a journal, and how it lays them out. */
import { describe, expect, it } from "vitest";
import { columnsOf, layOut, layOutCosts, ticksOf } from "../../src/view/timeline/lay-out.ts";
import { Timeline } from "../../src/view/timeline/timeline.ts";

const NOON = Date.parse("2026-03-01T12:00:00Z");
const MINUTE = 60_000;
const SPAN = { fromMs: NOON, toMs: NOON + 60 * MINUTE, nowMs: NOON + 60 * MINUTE };

type More = Record<string, unknown>;

class Journal {
  readonly timeline = new Timeline();

  task(id: string, minute: number, event: string, more: More = {}): this {
    const of = { task_id: id, submission: `s-${id}`, agent_id: "exec", attempt: 1 };
    this.timeline.add({ event, ...of, t: NOON + minute * MINUTE, ...more });
    return this;
  }

  pool(minute: number, event: string, more: More = {}): this {
    this.timeline.add({ event, submission: "", t: NOON + minute * MINUTE, ...more });
    return this;
  }
}

describe("the runs", () => {
  it("end as the journal says: done, failed, tried again, put back, killed, cancelled, or not yet", () => {
    const { timeline } = new Journal()
      .task("good", 0, "assigned")
      .task("good", 1, "completed", { status: "completed" })
      .task("bad", 0, "assigned")
      .task("bad", 1, "retry_scheduled", { error: "exit code 1" })
      .task("bad", 2, "assigned", { attempt: 2 })
      .task("bad", 3, "failed", { error: "exit code 2" })
      .task("bad", 3, "completed", { status: "failed", kind: "exit" })
      .task("held", 0, "assigned")
      .task("held", 1, "held", { gate: "quota-a", error: "no run before 13:00" })
      .task("dead", 0, "assigned")
      .task("dead", 5, "reclaimed", { reason: "dead" })
      .task("off", 0, "assigned")
      .task("off", 1, "cancelled", { error: "by a person" })
      .task("off", 1, "completed", { status: "failed", kind: "cancelled" })
      .task("on", 4, "assigned");
    const told = timeline.runs.map(({ id, attempt, end, why }) => [id, attempt, end, why]);
    expect(told).toEqual([
      ["good", 1, "done", ""],
      ["bad", 1, "again", "exit code 1"],
      ["bad", 2, "failed", "exit code 2"],
      ["held", 1, "back", "no run before 13:00"],
      ["dead", 1, "killed", "its worker had died"],
      ["off", 1, "cancelled", "by a person"],
      ["on", 1, null, ""],
    ]);
    expect(timeline.waits).toMatchObject([{ gate: "quota-a", to_ms: null }]);
  });

  it("that ended last are kept apart, with the end of a task whose last run is not known", () => {
    const { timeline } = new Journal()
      .task("slow", 0, "selected", { title: "A slow one" })
      .task("slow", 0, "assigned")
      .task("quick", 1, "assigned")
      .task("quick", 2, "retry_scheduled", { error: "exit code 1" })
      .task("quick", 3, "completed", { status: "completed" })
      .task("slow", 4, "completed", { status: "completed" })
      .task("dead", 5, "assigned")
      .task("dead", 6, "reclaimed", { reason: "dead" })
      .task("dead", 7, "failed", { error: "its worker died 3 times" })
      .task("dead", 7, "completed", { status: "failed", kind: "crashed" })
      .task("skipped", 8, "completed", { status: "failed", kind: "dependency_failed" });
    expect(timeline.latest).toMatchObject([
      { id: "quick", end: "done", from_ms: NOON + 3 * MINUTE, to_ms: NOON + 3 * MINUTE },
      { id: "slow", title: "A slow one", end: "done", from_ms: NOON, to_ms: NOON + 4 * MINUTE },
      { id: "dead", end: "failed", why: "its worker died 3 times", to_ms: NOON + 7 * MINUTE },
    ]);
    for (let n = 0; n < 500; n++)
      timeline.add({ event: "completed", submission: `${n}`, task_id: `t${n}`, t: NOON + n });
    expect(timeline.latest).toHaveLength(100);
    expect(timeline.latest.at(-1)).toMatchObject({ id: "t499" });
  });

  it("stand with their agent, their group, or the landings", () => {
    const group = "land-0123456789abcdef";
    const { timeline } = new Journal()
      .task("a", 0, "assigned", { agent_id: "coder", group: "gpu" })
      .task("b", 0, "assigned", { group: "gpu" })
      .task("c", 0, "assigned")
      .task("a.land", 0, "assigned", { group })
      .task("b.land", 0, "assigned", { group: "land-of-mine" });
    expect(timeline.runs.map(({ lane }) => lane)).toEqual([
      "coder",
      "gpu",
      "exec",
      "landing",
      "land-of-mine",
    ]);
  });

  it("that a dead supervisor has left are killed when the task runs again, and its death is marked", () => {
    const { timeline } = new Journal()
      .pool(0, "supervisor_started")
      .task("a", 1, "assigned")
      .pool(2, "supervisor_started")
      .task("a", 3, "assigned")
      .pool(4, "supervisor_stopped")
      .pool(5, "supervisor_started");
    expect(timeline.runs.map(({ end }) => end)).toEqual(["killed", null]);
    expect(timeline.marks).toEqual([
      { at_ms: NOON + 2 * MINUTE, what: "the supervisor had died, and a new one went on" },
    ]);
  });

  it("are forgotten from the oldest on when there are very many, and the timeline says since when it knows them", () => {
    const journal = new Journal();
    for (let n = 0; n < 50_001; n++) journal.task(`t${n}`, n, "assigned");
    expect(journal.timeline.runs.length).toBe(40_001);
    expect(journal.timeline.knownFromMs).toBe(NOON + 10_000 * MINUTE);
  });
});

describe("the drawing", () => {
  it("has a row for each run at a time, and one for each gate", () => {
    const { timeline } = new Journal()
      .task("a", 0, "assigned", { agent_id: "coder" })
      .task("b", 10, "assigned", { agent_id: "coder" })
      .task("a", 20, "completed", { status: "completed" })
      .task("c", 30, "assigned", { agent_id: "coder" })
      .task("b", 40, "held", { gate: "quota-x", error: "no run before 13:00" })
      .task("c", 50, "held", { gate: "quota-x", error: "no run before 13:00" })
      .pool(55, "worker_stopped", { id: "w-1", error: "SIGKILL" });
    const rows = layOut(timeline, SPAN);
    expect(rows.map(({ lane, bars }) => [lane, bars.map(({ box }) => [box[0], box[2]])])).toEqual([
      [
        "coder",
        [
          [0, 333.3],
          [500, 333.3],
        ],
      ],
      ["", [[166.7, 500]]],
      ["waits: quota-x", [[666.7, 333.3]]],
      ["pool", [[916.7, 2]]],
    ]);
    expect(rows[3]?.bars[0]?.tip).toContain("worker w-1 ended (SIGKILL)");
  });

  it("shows only what is in its time, cut at its ends", () => {
    const { timeline } = new Journal()
      .task("before", -20, "assigned")
      .task("before", -10, "completed", { status: "completed" })
      .task("across", -10, "assigned")
      .task("across", 30, "completed", { status: "completed" })
      .task("after", 70, "assigned");
    expect(
      layOut(timeline, SPAN).map(({ bars }) => bars.map(({ id, box }) => [id, box[0], box[2]])),
    ).toEqual([[["across", 0, 500]]]);
  });

  it("joins what is too short to be seen alone, tells its counts, and looks as the worst of it", () => {
    const journal = new Journal();
    for (let n = 0; n < 10; n++) {
      const at = n / 1000;
      journal.task(`t${n}`, at, "assigned");
      journal.task(`t${n}`, at, "completed", { status: n === 4 ? "failed" : "completed" });
    }
    const [row, ...more] = layOut(journal.timeline, SPAN);
    expect(more).toEqual([]);
    expect(row?.bars).toHaveLength(1);
    expect(row?.bars[0]).toMatchObject({ look: "bad" });
    expect(row?.bars[0]?.tip).toMatch(/^10 runs from .*: 9 done, 1 failed$/);
    expect(row?.bars[0]?.id).toBeUndefined();
  });

  it("stays small with 40,000 runs in 16 slots", () => {
    const journal = new Journal();
    for (let n = 0; n < 2500; n++)
      for (let slot = 0; slot < 16; slot++) {
        const id = `t${n}-${slot}`;
        const at = n * 0.024;
        journal.task(id, at, "assigned");
        journal.task(id, at + 0.02, "completed", { status: n % 7 ? "completed" : "failed" });
      }
    const rows = layOut(journal.timeline, SPAN);
    const bars = rows.reduce((sum, row) => sum + row.bars.length, 0);
    expect(rows.length).toBeLessThanOrEqual(17);
    expect(bars).toBeLessThanOrEqual(4000);
    expect(bars).toBeGreaterThan(1000);
  });

  it("has at most nine ticks, at round times, whatever its time", () => {
    for (const ms of [
      1000,
      90_000,
      15 * MINUTE,
      60 * MINUTE,
      12 * 60 * MINUTE,
      7 * 24 * 60 * MINUTE,
    ]) {
      const ticks = ticksOf({ fromMs: NOON + 123, toMs: NOON + 123 + ms });
      expect(ticks.length).toBeLessThanOrEqual(9);
      for (const [x, atMs] of ticks) {
        expect(atMs % 1000).toBe(0);
        expect(x).toBeGreaterThanOrEqual(0);
        expect(x).toBeLessThanOrEqual(1000);
      }
    }
  });

  it("draws the cost of a day up to now, with the limits that are near", () => {
    const points = [
      { at_ms: NOON - 60 * MINUTE, usd_micro: 1_000_000 },
      { at_ms: NOON + 30 * MINUTE, usd_micro: 2_000_000 },
    ];
    const limits = { day_usd: 4, day_hard_usd: 100 };
    const row = layOutCosts(points, { ...SPAN, nowMs: NOON + 45 * MINUTE }, limits);
    expect(row?.last).toBe(2_000_000);
    expect(row?.limits.map(({ text }) => text)).toEqual(["day_usd $4"]);
    expect(row?.d).toMatch(/^M0 [\d.]+H500V[\d.]+H750$/);
    expect(layOutCosts([], SPAN, limits)).toBeUndefined();
  });
});

it("as one line it has the runs at a time, the worst of each part, and nothing for what is not known", () => {
  const { timeline } = new Journal()
    .task("a", 0, "assigned")
    .task("b", 0, "assigned")
    .task("a", 15, "failed", { error: "no" })
    .task("a", 15, "completed", { status: "failed" })
    .task("b", 30, "held", { gate: "quota-x", error: "later" });
  const columns = columnsOf(timeline, { ...SPAN, nowMs: NOON + 50 * MINUTE }, 6);
  expect(columns.map((one) => one && [one.running, one.worst])).toEqual([
    [2, "running"],
    [1.5, "failed"],
    [1, "running"],
    [0, "back"],
    [0, "wait"],
    [0, "wait"],
  ]);
  expect(columnsOf(timeline, { ...SPAN, nowMs: NOON + 30 * MINUTE }, 6).slice(4)).toEqual([
    null,
    null,
  ]);
});
