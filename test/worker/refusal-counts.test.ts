/** The counts of refused tasks do not grow for ever: other workers may run these tasks. */
import { expect, it } from "vitest";
import { RefusalCounts } from "../../src/worker/intake.ts";

it("counts each task, and forgets those that were refused longest ago", () => {
  const counts = new RefusalCounts(3);
  expect(["a", "b", "c", "a"].map((id) => counts.add(id))).toEqual([1, 1, 1, 2]);
  // Now b is the oldest.
  expect(counts.add("d")).toBe(1);
  expect([counts.add("a"), counts.add("c"), counts.add("b")]).toEqual([3, 2, 1]);
  counts.forget("a");
  expect(counts.add("a")).toBe(1);
});

it("keeps some thousands", () => {
  const counts = new RefusalCounts();
  for (let n = 0; n < 10_000; n++) counts.add(`t-${n}`);
  expect([counts.add("t-9000"), counts.add("t-0")]).toEqual([2, 1]);
});
