/** The check after a storm over a cluster (`npm run test:cluster`) finds what it is to find. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, type Pool } from "../../support/pool.ts";
import { checkStorm, type Span, type Struck } from "./storm/check.ts";
import { Pace } from "./storm/pace.ts";
import { Recovery } from "./storm/recovery.ts";
import { tracePath } from "./storm/trace.ts";

const ACK_WAIT_MS = 3000;
const FIRST_MS = 1_000_000;

interface End {
  origin: Pool;
  machine: Pool;
  /** Runs of the machines. The last time is that of the last sign of life of one that has no end. */
  runs: [machine: string, id: string, atMs: number, lastMs?: number][];
  struck: Struck[];
  late: Span[];
}

function problemsOf(change: (end: End) => void): string[] {
  const end: End = { origin: newPool(), machine: newPool(), runs: [], struck: [], late: [] };
  change(end);
  for (const [at, [machine, id, atMs, lastMs]] of end.runs.entries()) {
    const on = lastMs === undefined ? "" : `on ${id} ${lastMs} ${at}\n`;
    const lines = `start ${id} ${atMs} ${at}\n${on}end ${id}\n`;
    fs.appendFileSync(tracePath(end.origin.dir, machine), lines);
  }
  const machines = ["m1", "m2"].map((name) => ({ name, pool: end.machine }));
  const { problems } = checkStorm({
    dir: end.origin.dir,
    origin: { name: "origin", pool: end.origin },
    machines,
    ids: [],
    once: new Set(),
    struck: end.struck,
    late: end.late,
    ackWaitMs: ACK_WAIT_MS,
  });
  return problems;
}

const TWICE: End["runs"] = [
  ["m1", "origin.tree0001.t.s.1", FIRST_MS],
  ["m2", "origin.tree0001.t.s.1", FIRST_MS + 5000],
];

test("a run that happened twice is a problem, unless what struck its first machine explains it", () => {
  const unexplained = ["origin.tree0001.t.s.1 ran at m1 and at m2, and nothing had struck there"];
  expect(problemsOf(({ runs }) => runs.push(...TWICE))).toEqual(unexplained);
  const whenStruck = (whom: string, fromMs: number, toMs: number): string[] =>
    problemsOf(({ runs, struck }) => {
      runs.push(...TWICE);
      struck.push({ kind: "kill a bridge", whom, fromMs, toMs });
    });
  const workerKilled = (...of: End["runs"]): string[] =>
    problemsOf(({ runs, struck }) => {
      runs.push(...of);
      struck.push({ kind: "kill a worker", whom: "m1", fromMs: FIRST_MS, toMs: FIRST_MS });
    });
  expect(workerKilled(...TWICE)).toEqual(unexplained);
  expect(
    workerKilled(
      ["m1", "origin.tree0001.t.s.1", FIRST_MS],
      ["m1", "origin.tree0001.t.s.1", FIRST_MS + 5000],
    ),
  ).toEqual([]);
  expect(whenStruck("m2", FIRST_MS, FIRST_MS + 1000)).toEqual(unexplained);
  expect(whenStruck("m1", FIRST_MS + 6000, FIRST_MS + 7000)).toEqual(unexplained);
  expect(whenStruck("m1", 0, FIRST_MS - 100_000)).toEqual(unexplained);
  expect(whenStruck("m1", FIRST_MS, FIRST_MS + 1000)).toEqual([]);
  const whenLate = (whom: string, forMs: number): string[] =>
    problemsOf(({ runs, late }) => {
      runs.push(...TWICE);
      late.push({ whom, fromMs: FIRST_MS + 3000, toMs: FIRST_MS + 3000 + forMs });
    });
  expect(whenLate("m1", 500)).toEqual(unexplained);
  expect(whenLate("m2", 1500)).toEqual(unexplained);
  expect(whenLate("m1", 1500)).toEqual([]);
  expect(whenLate("servers", 1500)).toEqual([]);
  expect(whenStruck("servers", FIRST_MS + 1000, FIRST_MS + 1000)).toEqual([]);
});

test("two runs of a task at a time are a problem, unless the machine of the first could not stop it", () => {
  const first = "origin.tree0001.t.s.1";
  const second = "origin.tree0001.t.s.2";
  const runs: End["runs"] = [
    ["m1", first, FIRST_MS, FIRST_MS + 9000],
    ["m2", second, FIRST_MS + 7000, FIRST_MS + 8000],
  ];
  const problem = `${second} began at m2 while ${first} still ran at m1, for 2000 ms, and nothing explains it`;
  const when = (...struck: Struck[]): string[] =>
    problemsOf((end) => {
      end.runs.push(...runs);
      end.struck.push(...struck);
    });
  const of = (kind: Struck["kind"], whom: string, fromMs: number, toMs: number): Struck => {
    const ms = { fromMs: FIRST_MS + fromMs, toMs: FIRST_MS + toMs };
    return { kind, whom, ...ms };
  };
  expect(when()).toEqual([problem]);
  expect(when(of("stop a machine", "m1", 1000, 8000))).toEqual([]);
  expect(when(of("kill a bridge", "m1", 1000, 1000))).toEqual([]);
  expect(when(of("kill a server", "servers", -7000, -6000))).toEqual([]);
  // It has to stop what it runs before another one may begin it.
  expect(when(of("cut a machine off", "m1", 1000, 8000))).toEqual([problem]);
  expect(when(of("kill a worker", "m1", 1000, 1000))).toEqual([problem]);
  expect(when(of("stop a machine", "m2", 1000, 8000))).toEqual([problem]);
  expect(when(of("stop a machine", "origin", 1000, 8000))).toEqual([problem]);
  // Too late, and too early.
  expect(when(of("stop a machine", "m1", 7500, 8000))).toEqual([problem]);
  expect(when(of("stop a machine", "m1", -40_000, -9000))).toEqual([problem]);
  runs[0] = ["m1", first, FIRST_MS, FIRST_MS + 7000];
  expect(when()).toEqual([]);
  runs[0] = ["m2", first, FIRST_MS, FIRST_MS + 7001];
  expect(when()).toEqual([problem.replaceAll("m1", "m2").replace("2000 ms", "1 ms")]);
});

test("a fault of the servers lasts until enough tasks have settled after it", () => {
  const fault: Struck = { kind: "kill most servers", whom: "servers", fromMs: 0, toMs: 1000 };
  const recovery = new Recovery();
  recovery.watch(fault);
  const looks: [settled: number, nowMs: number, toMs: number][] = [
    [100, 999, 1000],
    [120, 1001, 1001],
    // Those that were at home already.
    [139, 9000, 9000],
    [140, 41_000, 41_000],
    [141, 42_000, 41_000],
  ];
  for (const [settled, nowMs, toMs] of looks) {
    recovery.look(settled, nowMs);
    expect(fault.toMs).toBe(toMs);
  }
});

test("a storm fails when nothing settles for long, and when it takes too long", () => {
  const times = { holdMs: 30_000, ackWaitMs: 6000, leaseMs: 3000 };
  const pace = new Pace({ tasks: 100, faults: 20, minutes: 10, ...times }, 0);
  expect(pace.stallMs).toBe(117_000);
  expect(pace.whyFailed("0", 116_000)).toBeUndefined();
  expect(pace.whyFailed("1", 117_000)).toBeUndefined();
  expect(pace.whyFailed("1", 233_999)).toBeUndefined();
  expect(pace.whyFailed("1", 234_000)).toBe("nothing has settled for 117 s");
  expect(pace.whyFailed("2", 599_999)).toBeUndefined();
  expect(pace.whyFailed("3", 600_000)).toBe("not over within 10 minutes");
  expect(pace.faultsDue(0, 0)).toBe(2);
  expect(pace.faultsDue(50, 0)).toBe(12);
  expect(pace.faultsDue(0, 240_000)).toBe(12);
  expect(pace.faultsDue(95, 0)).toBe(20);
});

test("a task that is lost, failed, or has completed without a run is a problem, and so is what is left at a machine", () => {
  const inState = (path: string, value: object) => (end: End) =>
    fs.writeFileSync(join(end.origin.state, "mailbox", path), JSON.stringify(value));
  const failed = inState("failed/t_error.json", { task_id: "t", status: "failed", error: "why" });
  expect(problemsOf(failed)).toContain("t_error.json: failed, which no task should: why");
  const done = { task_id: "t", status: "completed", attempts: 2, machine: "m1" };
  const never = inState("outbox/t_result.json", done);
  const unfounded = "t has completed with run 2 at m1, and that run has no end there";
  expect(problemsOf(never)).toContain(unfounded);
  const withTrace = (machine: string, attempt: number, endMs: number) => (end: End) => {
    never(end);
    const line = `start origin.tree0001.t.s.${attempt} 1 7\nend origin.tree0001.t.s.${attempt} ${endMs} 7\n`;
    fs.appendFileSync(tracePath(end.origin.dir, machine), line);
  };
  expect(problemsOf(withTrace("m1", 1, 2))).toContain(unfounded);
  expect(problemsOf(withTrace("m2", 2, 2))).toContain(unfounded);
  const late = "t has completed with run 2 at m1, and that run ended later";
  expect(problemsOf(withTrace("m1", 2, Date.now() + 60_000))).toContain(late);
  const good = problemsOf(withTrace("m1", 2, 2));
  expect(good).not.toContain(unfounded);
  expect(good).not.toContain(late);
  const left = problemsOf(({ machine }) => machine.drop("x", {}));
  expect(left).toContain("m1: x.json is left over");
});
