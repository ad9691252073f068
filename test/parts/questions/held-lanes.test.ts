/** Which tasks wait for the answer to a question. */
import { expect, it } from "vitest";
import type { AgentSettings } from "../../../src/core/settings.ts";
import { HeldLanes } from "../../../src/parts/questions/held-lanes.ts";
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

/** Lanes of which no second task starts. */
function heldBy(...open: Question[]): string[] {
  const lanes = new HeldLanes();
  lanes.update(open, AGENTS);
  const gates = ["budget-day-1-usd-1", "budget-task-a-usd-1"];
  const all = ["coder", "reviewer", "builder", "", ...gates.map((gate) => `~${gate} coder`)];
  for (const lane of all) {
    expect(lanes.mayStart(lane), lane).toBe(true);
    lanes.noteStart(lane);
  }
  return all.filter((lane) => !lanes.mayStart(lane));
}

it.each([
  ["nothing", [], []],
  [
    "a day",
    [question("budget.day.1.usd.1", ["*"])],
    ["coder", "reviewer", "~budget-day-1-usd-1 coder"],
  ],
  ["an agent", [question("budget.agent.coder.usd.1", ["coder"])], ["coder"]],
  ["a task", [question("budget.task.a.usd.1", [])], ["~budget-task-a-usd-1 coder"]],
  ["a program", [question("x", ["builder"])], []],
])("a question about %s holds back its tasks, after one has tried", (_what, open, held) => {
  expect(heldBy(...open)).toEqual(held);
});

it("tasks of all agents that wait for one question wait together", () => {
  const lanes = new HeldLanes();
  lanes.update([question("budget.day.1.usd.1", ["*"])], AGENTS);
  lanes.noteStart("~budget-day-1-usd-1 coder");
  expect(lanes.mayStart("~budget-day-1-usd-1 reviewer")).toBe(false);
});

it("an answer lets them go", () => {
  const lanes = new HeldLanes();
  lanes.update([question("budget.day.1.usd.1", ["*"])], AGENTS);
  expect(lanes.noteStart("coder")).toBe(true);
  expect(lanes.mayStart("coder")).toBe(false);
  lanes.update([], AGENTS);
  expect(lanes.mayStart("coder")).toBe(true);
  expect(lanes.noteStart("coder")).toBe(false);
});
