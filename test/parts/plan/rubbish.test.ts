/** Plans that are rubbish by the megabyte: each is judged in a time that grows with its size, in messages that people can read. */
import { expect, it } from "vitest";
import { YAML_PARTS_MAX } from "../../../src/core/limits.ts";
import { parseRoadmap } from "../../../src/parts/plan/read/document.ts";
import { Planner } from "../../../src/parts/plan/rules/next.ts";
import { finishedContainers } from "../../../src/parts/plan/rules/progress.ts";
import { takeSome } from "../../support/take-some.ts";
import { timeLimitMs } from "../../support/time-limit.ts";

takeSome();

const COUNT = 10_000;
/** A tenth of it is what they take; by the square of their size it would be minutes. */
const READ_MS_MAX = 15_000;
const MEGABYTES = "k".repeat(8_000_000);

const nodes = (lineOf: (i: number) => string, count = COUNT): string =>
  `nodes:\n${Array.from({ length: count }, (_, i) => `  - ${lineOf(i)}\n`).join("")}`;
const one = (key: string): string => nodes(() => `{ id: a, exec: [x], ${key} }`, 1);
/** Each stands for ten times what the one before does. */
const laughs = (lineOf: (before: string) => string): string =>
  Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} ${lineOf(`*l${i} `)}\n`).join("");
const ten = (text: string): string => Array.from({ length: 10 }, () => text).join(", ");

it.each([
  [
    "each belongs to the next, a task",
    nodes((i) => `{ id: n${i}, exec: [x], parent: n${i + 1} }`),
    "the parent n1 of n0 is a task",
  ],
  [
    "each belongs to the next",
    nodes((i) => `{ id: n${i}, type: epic, parent: n${i + 1} }`),
    "the parent n10000 of n9999 is not there",
  ],
  [
    "each belongs to the one before",
    nodes((i) => `{ id: n${i}, type: epic, parent: n${i - 1} }`),
    "the parent n-1 of n0 is not there",
  ],
  [
    "a ring of parents",
    nodes((i) => `{ id: n${i}, type: epic, parent: n${(i + 1) % COUNT} }`),
    "a circle of dependencies: n0 → n1 → n2 → n3 → n4 → n5 → n6 → n7 → n8 → n9 → n10 → n11 → … (10000 in all) → n0",
  ],
  [
    "a ring of dependencies",
    nodes((i) => `{ id: n${i}, exec: [x], dependencies: [n${(i + 1) % COUNT}] }`),
    "a circle of dependencies: n0 → n1",
  ],
  [
    "as many rings as nodes",
    nodes((i) => `{ id: n${i}, exec: [x], dependencies: [n${(i + 1) % COUNT}, n0] }`),
    "a circle of dependencies: n0 → n1",
  ],
  [
    "rings of two",
    nodes((i) => `{ id: n${i}, exec: [x], dependencies: [n${i ^ 1}] }`),
    "a circle of dependencies: n0 → n1 → n0",
  ],
  [
    "dependencies that are not there",
    one(`dependencies: [${"b, ".repeat(200_000)}]`),
    "a depends on b, which does not exist",
  ],
  ["the same id", nodes(() => "{ id: a, exec: [x] }"), "the id a is used twice, first in line 2"],
  ["a dependency of megabytes", one(`dependencies: [${MEGABYTES}]`), "kkkk, which does not exist"],
  ["an alias of megabytes", one(`goal: *${MEGABYTES}`), "kkkk has no anchor"],
  ["a tag of megabytes", one(`goal: !${MEGABYTES} x`), "Unresolved tag: !kkkk"],
  [
    "aliases of aliases in `<<`",
    `l0: &l0 { goal: x }\n${laughs((l) => `{ <<: [${ten(l)}] }`)}${one("<<: *l9 ")}`,
    `aliases stand for more than ${YAML_PARTS_MAX} values in all`,
  ],
  [
    "aliases of aliases in a payload",
    `l0: &l0 x\n${laughs((l) => `[${ten(l)}]`)}${one("payload: *l9 ")}`,
    "payload: expected plain data",
  ],
  [
    "a list of thousands in thousands of nodes",
    `l: &l [${"x, ".repeat(3000)}]\n${nodes((i) => `{ id: n${i}, exec: *l }`)}`,
    `aliases stand for more than ${YAML_PARTS_MAX} values in all`,
  ],
])("%s", (_what, text, message) => {
  const startedMs = performance.now();
  const { problems } = parseRoadmap(text);
  expect(performance.now() - startedMs).toBeLessThan(timeLimitMs(READ_MS_MAX));
  expect(problems[0]?.message).toContain(message);
  for (const problem of problems) expect(problem.message.length).toBeLessThan(400);
  expect(problems.length).toBeLessThanOrEqual(200);
});

it("a chain of plans as long as the file is in order, and how far it has come is found in no time", () => {
  const text = nodes(
    (i) =>
      `{ id: n${i}, type: plan, status: open, goal: x${i === 0 ? "" : `, parent: n${i - 1}`} }`,
  );
  const doc = parseRoadmap(text);
  expect(doc.problems).toEqual([]);
  const startedMs = performance.now();
  const [first] = doc.nodes;
  if (first === undefined) throw new Error("no node was read");
  const planner = new Planner();
  expect(planner.next(doc.nodes).ready).toHaveLength(COUNT);
  expect(planner.isDone(first)).toBe(false);
  expect(finishedContainers(doc.nodes)).toEqual([]);
  expect(performance.now() - startedMs).toBeLessThan(timeLimitMs(1000));
});
