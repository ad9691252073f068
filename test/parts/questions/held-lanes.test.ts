/** Which tasks wait for the answer to a question. */
import { expect, it } from "vitest";
import { closes } from "../../../src/core/gates.ts";
import type { AgentSettings } from "../../../src/core/settings.ts";
import { readLane } from "../../../src/core/waiting-task.ts";
import { gateOf, HeldLanes } from "../../../src/parts/questions/held-lanes.ts";
import type { Question } from "../../../src/questions/question-file.ts";

const AGENTS: AgentSettings[] = [
  { name: "coder", kind: "claude" },
  { name: "reviewer", kind: "codex" },
  { name: "builder", kind: "exec", program: "make" },
];
const question = (id: string, agents: string[]): Question => ({
  id,
  agents,
  question: "",
  context: "",
  who: "",
  expects: "limit",
  asked_at_ms: 0,
  ends_at_ms: null,
});

/** The starts while these questions are open. */
function starts(...open: Question[]) {
  const lanes = new HeldLanes();
  let gates = open.map((one) => gateOf(one, AGENTS));
  return {
    mayStart: (lane: string): boolean =>
      !gates.some((gate) => closes(gate, readLane(lane))) || lanes.mayPass(readLane(lane)),
    note: (lane: string): void => lanes.noteStart(readLane(lane)),
    answer: (): void => {
      gates = [];
    },
  };
}

/** Lanes of which no second task starts. */
function heldBy(...open: Question[]): string[] {
  const pool = starts(...open);
  const gates = ["budget-day-1-usd-1", "budget-task-a-usd-1"];
  const all = ["coder", "reviewer", "builder", "", ...gates.map((gate) => `~${gate} builder`)];
  for (const lane of all) {
    expect(pool.mayStart(lane), lane).toBe(true);
    pool.note(lane);
  }
  return all.filter((lane) => !pool.mayStart(lane));
}

it.each([
  ["nothing", [], []],
  [
    "a day",
    [question("budget.day.1.usd.1", ["*"])],
    ["coder", "reviewer", "~budget-day-1-usd-1 builder"],
  ],
  ["an agent", [question("budget.agent.coder.usd.1", ["coder"])], ["coder"]],
  ["a task", [question("budget.task.a.usd.1", [])], ["~budget-task-a-usd-1 builder"]],
  ["a program", [question("x", ["builder"])], []],
])("a question about %s holds back its tasks, after one has tried", (_what, open, held) => {
  expect(heldBy(...open)).toEqual(held);
});

it("tasks of all agents that wait for one question wait together", () => {
  const pool = starts(question("budget.day.1.usd.1", ["*"]));
  pool.note("~budget-day-1-usd-1 coder");
  expect(pool.mayStart("~budget-day-1-usd-1 reviewer")).toBe(false);
});

it("an answer lets them go", () => {
  const pool = starts(question("budget.day.1.usd.1", ["*"]));
  pool.note("coder");
  expect(pool.mayStart("coder")).toBe(false);
  pool.answer();
  expect(pool.mayStart("coder")).toBe(true);
});

it("tasks that may find the answer by themselves are shut out when one has tried since the last end of a task", () => {
  const lanes = new HeldLanes();
  const lane = readLane("~base-1 coder");
  const again = { again_ms: 60_000 };
  expect(lanes.isShut(lane, again)).toBe(false);
  lanes.noteStart(lane);
  expect(lanes.isShut(lane, again)).toBe(true);
  lanes.noteEnd();
  expect(lanes.isShut(lane, again)).toBe(false);
  // Only a person can answer this one.
  expect(lanes.isShut(lane, {})).toBe(true);
});
