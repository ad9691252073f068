/** Which limit is reached, what is said of it, and how soon the next look must come. */
import { expect, it } from "vitest";
import { overLimit, soonestMs } from "../../../src/parts/run-limits/judge.ts";

const MIB = 1024 * 1024;

it.each([
  ["memory", { memory_bytes: MIB }, { memoryBytes: MIB + 1 }, "had 1.0 MiB of memory"],
  ["processes", { processes: 5 }, { processes: 6 }, "it had 6 processes"],
  ["cpu", { cpu_ms: 1000 }, { cpuMs: 1010 }, "used 1.01 s of the processor"],
  ["disk", { disk_bytes: MIB }, { writtenBytes: 2 * MIB }, "wrote 2.0 MiB to the disk"],
] as const)("%s: over it, not at it", (kind, limits, use, found) => {
  expect(overLimit(limits, use)).toMatchObject({ kind });
  expect(overLimit(limits, use)?.message).toContain(found);
  expect(overLimit(limits, use)?.message).toContain(`run_limits.${Object.keys(limits)[0]} allows`);
  const [max] = Object.values(limits);
  expect(overLimit(limits, { [Object.keys(use)[0] ?? ""]: max })).toBeUndefined();
});

it("no limit, 0, or nothing known of it: nothing is over", () => {
  const use = { memoryBytes: 1e15, processes: 1e9, cpuMs: 1e12, writtenBytes: 1e15 };
  expect(overLimit({}, use)).toBeUndefined();
  expect(overLimit({ memory_bytes: 0, processes: 0, cpu_ms: 0, disk_bytes: 0 }, use)).toBe(
    undefined,
  );
  expect(overLimit({ memory_bytes: MIB, disk_bytes: MIB }, {})).toBeUndefined();
});

it("the nearest limit says when to look again", () => {
  const limits = { memory_bytes: 1000 * MIB, processes: 100 };
  expect(soonestMs(limits, { memoryBytes: 0, processes: 2 })).toBe(49);
  expect(soonestMs(limits, { memoryBytes: 990 * MIB, processes: 2 })).toBe(10);
  expect(soonestMs(limits, { memoryBytes: 2000 * MIB })).toBe(0);
  expect(soonestMs({}, {})).toBe(Number.POSITIVE_INFINITY);
});
