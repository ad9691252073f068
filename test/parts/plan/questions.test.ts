/** When a question of a node answers itself. */
import { expect, test } from "vitest";
import type { RoadmapNode } from "../../../src/core/roadmap.ts";
import { systemClock } from "../../../src/host/system-clock.ts";
import { KvStore } from "../../../src/kv/store.ts";
import { answer, answersOf, openQuestionOf, Questions } from "../../../src/parts/plan/answers.ts";
import { parseRoadmap } from "../../../src/parts/plan/read/document.ts";
import { tempDir } from "../../support/temp-dir.ts";

const QUESTION = { question: "Go on?", context: "", options: [], timeout_ms: 4000, default: "no" };
const SOURCE = { run: null, lease: null, attempt: 1, by: "test" };

function nodes(status: string): readonly RoadmapNode[] {
  return parseRoadmap(`nodes:\n  - { id: ask, status: ${status} }\n`).nodes;
}

test("a question that a person has answered does not answer itself, a new one does", async () => {
  let nowMs = 1_000_000;
  const clock = { ...systemClock, wallMs: () => nowMs };
  const kv = new KvStore(tempDir(), clock, "process");
  const questions = new Questions(kv, clock);
  await questions.ask("ask", QUESTION, SOURCE);
  expect(questions.due(nodes("needs_human"))).toEqual([]);
  nowMs += 1000;
  await answer(kv, "ask", "yes", "cli");
  expect(questions.due(nodes("done"))).toEqual([]);
  nowMs += 10_000;
  // Somebody wants to be asked once more; the old question is no longer open.
  expect(questions.due(nodes("needs_human"))).toEqual([]);
  expect(questions.nextInMs()).toBeUndefined();
  await questions.ask("ask", { ...QUESTION, question: "Really?" }, SOURCE);
  questions.due(nodes("needs_human"));
  expect(questions.nextInMs()).toBe(4000);
  nowMs += 4000;
  expect(questions.due(nodes("needs_human"))).toEqual(["ask"]);
  kv.close();
});

test("a new question waits for an answer of its own, also with a clock that was set back", async () => {
  let nowMs = 1_000_000;
  const clock = { ...systemClock, wallMs: () => nowMs };
  const kv = new KvStore(tempDir(), clock, "process");
  const questions = new Questions(kv, clock);
  await questions.ask("ask", QUESTION, SOURCE);
  await answer(kv, "ask", "yes", "cli");
  expect(openQuestionOf(kv, "ask")).toBeNull();
  nowMs -= 60_000;
  await questions.ask("ask", { ...QUESTION, question: "Really?" }, SOURCE);
  expect(openQuestionOf(kv, "ask")).toBe("Really?");
  await answer(kv, "ask", "yes", "cli");
  expect(openQuestionOf(kv, "ask")).toBeNull();
  expect(answersOf(kv, "ask")).toEqual([
    { question: "Go on?", answer: "yes" },
    { question: "Really?", answer: "yes" },
  ]);
  kv.close();
});
