/** The check after a storm over a cluster (`npm run test:cluster`) finds what it is to find. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, type Pool } from "../../support/pool.ts";
import { checkStorm, type Struck } from "./storm/check.ts";

const ACK_WAIT_MS = 3000;
const FIRST_MS = 1_000_000;

interface End {
  origin: Pool;
  machine: Pool;
  /** Lines of the runs of the machines. */
  runs: [machine: string, id: string, atMs: number][];
  struck: Struck[];
  late: Struck[];
}

function problemsOf(change: (end: End) => void): string[] {
  const end: End = { origin: newPool(), machine: newPool(), runs: [], struck: [], late: [] };
  change(end);
  for (const [machine, id, atMs] of end.runs)
    fs.appendFileSync(join(end.origin.dir, `${machine}.trace`), `start ${id} ${atMs}\nend ${id}`);
  const machines = ["m1", "m2"].map((name) => ({ name, pool: end.machine }));
  const { problems } = checkStorm({
    dir: end.origin.dir,
    origin: { name: "origin", pool: end.origin },
    machines,
    ids: [],
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
      struck.push({ whom, fromMs, toMs });
    });
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

test("so is a task that is lost, failed, or has completed without a run, and what is left at a machine", () => {
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
    const line = `start origin.tree0001.t.s.${attempt} 1\nend origin.tree0001.t.s.${attempt} ${endMs}\n`;
    fs.appendFileSync(join(end.origin.dir, `${machine}.trace`), line);
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
