/** What a task waits for is named as it stands, down to what stands in the way. */
import { expect, test } from "vitest";
import { type DependencyState, describeUnmet, findUnmet } from "../../src/core/unmet.ts";

const MET: DependencyState = { is: "met", how: "" };
const RUNS: DependencyState = { is: "moving", how: "runs" };
const FAILED: DependencyState = { is: "stuck", how: "failed" };
const waitsFor = (...on: string[]): DependencyState => ({
  is: "moving",
  how: "waits its turn",
  on,
});

function explain(all: Record<string, DependencyState>, ...dependencies: string[]): string {
  const gone: DependencyState = { is: "stuck", how: "is not here" };
  const { named, count } = findUnmet("me", dependencies, (id) => all[id] ?? gone);
  return describeUnmet(named, count);
}

test("what is met is not named, and what does not go on by itself comes first", () => {
  expect(explain({ a: MET, b: RUNS, c: FAILED }, "a", "b", "c", "d")).toBe(
    "waits for c, which failed; d, which is not here; b, which runs",
  );
  expect(explain({ a: RUNS, b: RUNS, c: RUNS, d: RUNS, e: MET }, "a", "b", "c", "d", "e")).toBe(
    "waits for a, which runs; b, which runs; c, which runs; and 1 more",
  );
});

test("of a chain the end is named that stands in the way", () => {
  const chain = { a: waitsFor("b"), b: waitsFor("c", "x"), c: waitsFor("d"), d: RUNS, x: FAILED };
  expect(explain(chain, "c")).toBe("waits for c, which waits for d, which runs");
  expect(explain(chain, "b")).toBe("waits for b, which waits for x, which failed");
  expect(explain(chain, "a")).toBe("waits for a, which waits in the end for x, which failed");
  expect(explain({ a: waitsFor("b"), b: MET }, "a")).toBe("waits for a, which waits its turn");
});

test("a circle is named as one", () => {
  expect(explain({ a: waitsFor("me") }, "a")).toBe("waits for a, which waits for me in turn");
  expect(explain({ a: waitsFor("b"), b: waitsFor("ME") }, "a")).toBe(
    "waits for a, which waits for b, which waits for ME in turn",
  );
  expect(explain({ a: waitsFor("b"), b: waitsFor("a") }, "a")).toBe(
    "waits for a, which waits for b, which waits for a in turn",
  );
});

test("however many depend on each other, an explanation ends", () => {
  const all: Record<string, DependencyState> = {};
  const ids = Array.from({ length: 200 }, (_, i) => `n${i}`);
  ids.forEach((id, i) => {
    all[id] = waitsFor(...ids.slice(i + 1));
  });
  let looks = 0;
  const look = (id: string): DependencyState => {
    looks++;
    return all[id] ?? RUNS;
  };
  expect(findUnmet("me", ids, look).count).toBe(200);
  expect(looks).toBeLessThan(400);
});
