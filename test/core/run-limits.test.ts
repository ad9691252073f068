/** The limits of a run: whose word counts, and what cannot be meant. */
import { expect, it } from "vitest";
import { explainBadRunLimits, NO_RUN_LIMITS, nearestLimits } from "../../src/core/run-limits.ts";

it("the task's word counts, then the agent's, then the tree's; 0 lifts a limit", () => {
  const tree = { ...NO_RUN_LIMITS, memory_bytes: 4e9, processes: 100 };
  const agent = { memory_bytes: 2e9, cpu_ms: 1000 };
  expect(nearestLimits({ cpu_ms: 0, disk_bytes: 5e9 }, agent, tree)).toEqual({
    memory_bytes: 2e9,
    processes: 100,
    cpu_ms: 0,
    disk_bytes: 5e9,
  });
});

it("without any limit there are none", () => {
  expect(nearestLimits(undefined, undefined, NO_RUN_LIMITS)).toBeUndefined();
  expect(nearestLimits({}, {}, NO_RUN_LIMITS)).toBeUndefined();
  const tree = { ...NO_RUN_LIMITS, cpu_ms: 5 };
  expect(nearestLimits({ cpu_ms: 0 }, undefined, tree)).toBeUndefined();
  expect(nearestLimits(undefined, undefined, tree)).toEqual(tree);
});

it.each([
  [{ memory_bytes: 2 }, "memory_bytes: 2 is too little"],
  [{ memory_bytes: 1024 * 1024 - 1 }, "in bytes, at least 1048576 (1.0 MiB)"],
  [{ disk_bytes: 5 }, "disk_bytes: 5 is too little"],
])("%j is refused", (limits, why) => {
  expect(explainBadRunLimits(limits)).toContain(why);
});

it("zero and numbers that programs can live with are accepted", () => {
  expect(explainBadRunLimits({ memory_bytes: 0, disk_bytes: 0, cpu_ms: 1 })).toBeUndefined();
  expect(explainBadRunLimits({ memory_bytes: 2 ** 20, disk_bytes: 4096 })).toBeUndefined();
});
